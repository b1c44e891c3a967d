// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import "github.com/otelcol-fpm/otelcol-fpm/internal/fpm"

// observe adds the durations and token sums of a message: as points of its own,
// or, with gauge_interval, to the totals of its rank in this batch. Who takes only
// some of the gauges has no use for a point of each pass either.
//
// Invariant (TestTotalsCountEachMessage): totals are written with the batch, so
// that a message is in the points of the batch that it was delivered with and in
// no others.
func (p *metricsPipe) observe(workers *workerSet, state *seriesState, m *message) {
	if p.receiver.config.GaugeInterval == 0 {
		p.overflowed += workers.of(m.worker).Observed(m.pass(), &state.links)
		return
	}
	points := &m.rank.points
	if points.totals == nil {
		points.totals = fpm.NewTotals(p.form)
	}
	fits, overflowed := points.totals.Add(m.pass())
	if !fits {
		p.writeTotals(workers, m.rank)
		_, overflowed = points.totals.Add(m.pass())
	}
	p.overflowed += overflowed
}

// totalsBefore writes the totals of a rank when m is of other series.
func (p *metricsPipe) totalsBefore(workers *workerSet, state *seriesState, m *message, attributes fpm.RankAttributes) {
	if state.links.Began != m.began || state.worker != m.worker || state.attributes != attributes {
		p.writeTotals(workers, m.rank)
	}
}

// writeTotals adds the points of a rank's totals, if it has any.
func (p *metricsPipe) writeTotals(workers *workerSet, r *rank) {
	if totals := r.points.totals; totals != nil && !totals.Empty() {
		state := &r.points.next
		workers.of(state.worker).Write(totals, state.attributes, &state.links)
	}
}
