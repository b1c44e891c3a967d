// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import "github.com/otelcol-fpm/otelcol-fpm/internal/fpm"

// observe adds the durations and token sums of a message: as points of its own,
// or, with gauge_interval, to what its rank observed in this batch. Who has its
// gauges in parts of a second only has no use for a point of each pass.
//
// Invariant (TestObservedCountsEachMessage): what a batch adds up to is written
// with it, so that a message is in the points of the batch that it was delivered
// with and in no others.
func (p *metricsPipe) observe(workers *workerSet, state *seriesState, m *message) {
	if p.receiver.config.GaugeInterval == 0 {
		p.overflowed += workers.of(m.worker).Observed(m.pass(), &state.links)
		return
	}
	points := &m.rank.points
	if points.observed == nil {
		points.observed = fpm.NewObserved(p.form)
	}
	fits, overflowed := points.observed.Add(m.pass())
	if !fits {
		p.writeObserved(workers, m.rank)
		_, overflowed = points.observed.Add(m.pass())
	}
	p.overflowed += overflowed
}

// observedBefore writes what a rank observed when m is of other series.
func (p *metricsPipe) observedBefore(workers *workerSet, state *seriesState, m *message, attributes fpm.RankAttributes) {
	if state.links.Began != m.began || state.worker != m.worker || state.attributes != attributes {
		p.writeObserved(workers, m.rank)
	}
}

// writeObserved adds the points of what a rank observed in this batch, if it did.
func (p *metricsPipe) writeObserved(workers *workerSet, r *rank) {
	if observed := r.points.observed; observed != nil && !observed.Empty() {
		state := &r.points.next
		workers.of(state.worker).Write(observed, state.attributes, &state.links)
	}
}
