// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// rankPoints is what the metrics pipe knows of a rank: committed as delivered,
// next as it will be when the batch at hand is.
type rankPoints struct {
	committed, next seriesState
	// touched: next may differ from committed. heard: a message of this batch is
	// why.
	touched, heard bool
	// totals are what the messages of this batch add up to; nil before the first of
	// the rank, and without gauge_interval.
	totals *fpm.Totals
}

// seriesState links a rank's next points to its last ones.
type seriesState struct {
	links      fpm.Links
	worker     *worker
	attributes fpm.RankAttributes
	last       pcommon.Timestamp
	lost       fpm.Lost
	// ended: the gauges ended with a point without a value.
	ended bool
	// held is about gauge_interval.
	held heldGauges
}

// metricsPipe turns messages into metrics. It is one goroutine's.
//
// Invariant (TestOnlyDeliveredPointsLinkTheNext): state that links the points
// of a series changes only with a batch that was delivered.
type metricsPipe struct {
	receiver *fpmReceiver
	next     consumer.Metrics
	report   *receiverhelper.ObsReport
	form     *fpm.HistogramForm

	// valued are the ranks whose gauges have a value at the consumer.
	valued map[*rank]struct{}
	up     upPoints
	// staleAfter is how long a rank may be silent before its gauges end: 0 at the
	// end, when all do.
	staleAfter time.Duration
	// gaugeInterval is how long gauges are held at most: 0 at the end, when none
	// are any more.
	gaugeInterval time.Duration

	// Of the batch at hand:
	now        time.Time
	touched    []*rank
	left       []leftSeries
	overflowed int
}

// leftSeries are the series that a rank left for those of other attributes.
type leftSeries struct {
	rank       *rank
	worker     *worker
	attributes fpm.RankAttributes
	at         pcommon.Timestamp
}

func newMetricsPipe(r *fpmReceiver, next consumer.Metrics, report *receiverhelper.ObsReport) *metricsPipe {
	return &metricsPipe{
		receiver: r, next: next, report: report, form: r.config.Histogram.Form(),
		valued:     make(map[*rank]struct{}),
		up:         newUpPoints(r),
		staleAfter: r.config.StaleAfter, gaugeInterval: r.config.GaugeInterval,
	}
}

// deliver implements pipe.
func (p *metricsPipe) deliver(ctx context.Context, messages []*message) error {
	metrics := p.build(messages, time.Now())
	points := metrics.DataPointCount()
	if points == 0 {
		return nil
	}
	ctx = p.report.StartMetricsOp(ctx)
	err := p.next.ConsumeMetrics(ctx, metrics)
	p.report.EndMetricsOp(ctx, transport, points, err)
	switch {
	case err == nil:
		p.commit()
	case consumererror.IsPermanent(err):
		p.forfeit()
	}
	return err
}

// finish implements pipe: it ends all gauges, since nobody will say their values
// from now on.
func (p *metricsPipe) finish(ctx context.Context) error {
	p.staleAfter, p.gaugeInterval = 0, 0
	p.up.over = true
	return p.deliver(ctx, nil)
}

// build makes the metrics of a batch: the messages, the gauges that end, the
// endpoints that changed. It changes nothing that a failed attempt would have
// to put back.
func (p *metricsPipe) build(messages []*message, now time.Time) pmetric.Metrics {
	for _, r := range p.touched {
		r.points.touched, r.points.heard = false, false
	}
	clear(p.touched)
	clear(p.left)
	p.now, p.touched, p.left, p.overflowed = now, p.touched[:0], p.left[:0], 0

	metrics := pmetric.NewMetrics()
	workers := newWorkerSet(p.receiver, p.form, metrics, messages)
	for _, m := range messages {
		p.pass(workers, m)
	}
	for _, r := range p.touched {
		p.writeTotals(workers, r)
	}
	p.release(workers)
	p.lost(workers)
	for _, series := range p.left {
		workers.of(series.worker).Stale(series.attributes, series.at)
	}
	p.endSilent(workers)
	p.up.build(metrics, now)
	return metrics
}

func (p *metricsPipe) pass(workers *workerSet, m *message) {
	state := p.touch(m.rank)
	m.rank.points.heard = true
	attributes := m.record.Attributes()
	p.sayBefore(workers, state, m, attributes)
	p.totalsBefore(workers, state, m, attributes)
	switch {
	case state.links.Began != m.began:
		// The first message, or the rank has other series since the old ones ended:
		// nothing links them to what was before.
		state.links, state.held = fpm.Links{Began: m.began}, heldGauges{}
	case state.attributes != attributes:
		p.leave(m, state, attributes)
		state.held = heldGauges{}
	}
	state.worker, state.attributes, state.last, state.lost, state.ended = m.worker, attributes, m.time, m.lost, false
	p.gauges(workers, state, m)
	p.observe(workers, state, m)
}

// touch begins the rank's state for this batch from what was delivered.
func (p *metricsPipe) touch(r *rank) *seriesState {
	if !r.points.touched {
		r.points.touched = true
		r.points.next = r.points.committed
		p.touched = append(p.touched, r)
	}
	return &r.points.next
}

// leave ends the gauges of a rank's old attributes, unless it takes them up
// again within the batch.
func (p *metricsPipe) leave(m *message, state *seriesState, now fpm.RankAttributes) {
	p.left = slices.DeleteFunc(p.left, func(series leftSeries) bool {
		return series.rank == m.rank && series.attributes == now
	})
	if !state.ended {
		p.left = append(p.left, leftSeries{m.rank, state.worker, state.attributes, max(m.time-1, state.last+1)})
	}
}

// endSilent ends the gauges of ranks that have not been heard for staleAfter.
func (p *metricsPipe) endSilent(workers *workerSet) {
	for r := range p.valued {
		if r.points.heard {
			continue
		}
		if at := r.endpoint.end(r, p.now, p.staleAfter); at != 0 {
			state := p.touch(r)
			p.say(workers, state)
			workers.of(state.worker).Stale(state.attributes, at)
			state.ended, state.held = true, heldGauges{}
		}
	}
}

// commit takes note that the batch at hand was delivered.
func (p *metricsPipe) commit() {
	for _, r := range p.touched {
		r.points.committed = r.points.next
		p.setValued(r, !r.points.committed.ended)
	}
	p.up.commit()
	p.receiver.ledger.overflowed(p.overflowed)
}

// forfeit takes note that the batch at hand was refused for good: the points
// that end gauges are not tried again, and endpoints are shown again in their
// turn.
func (p *metricsPipe) forfeit() {
	for _, r := range p.touched {
		if r.points.next.held.sent != r.points.committed.held.sent {
			// Of several consumers one may have taken what was held: never twice.
			r.points.committed.held = heldGauges{}
		}
		if r.points.next.ended {
			r.points.committed.ended = true
			p.setValued(r, false)
		}
	}
	p.up.commit()
}

func (p *metricsPipe) setValued(r *rank, valued bool) {
	r.valued.Store(valued)
	if valued {
		p.valued[r] = struct{}{}
	} else {
		delete(p.valued, r)
	}
}
