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
	// totals are what the held messages of committed add up to, nextTotals those of
	// next; nil without gauge_interval.
	totals, nextTotals *fpm.Totals

	// Of the batch at hand:

	// touched: next may differ from committed. heard: a message is why. written:
	// there are points of the rank.
	touched, heard, written bool
	// overflowed counts the observations left out.
	overflowed int
}

// seriesState links a rank's next points to its last ones.
type seriesState struct {
	links      fpm.Links
	worker     *worker
	attributes fpm.RankAttributes
	last       pcommon.Timestamp
	lost       fpm.Lost
	// valued: the gauges have a value, which no point without one has ended.
	valued bool
	// held is about gauge_interval.
	held heldPoints
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

	// valued are the ranks whose gauges have a value at the consumer, or hold one.
	valued map[*rank]struct{}
	up     upPoints
	// staleAfter is how long a rank may be silent before its gauges end: 0 at the
	// end, when all do.
	staleAfter time.Duration
	// gaugeInterval is how long points are held at most: 0 at the end, when none
	// are any more.
	gaugeInterval time.Duration
	// held is how many messages are in no points yet.
	held int

	// Of the batch at hand:
	now     time.Time
	touched []*rank
	left    []leftSeries
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
func (p *metricsPipe) deliver(ctx context.Context, messages []*message) (held int, err error) {
	metrics := p.build(messages, time.Now())
	if points := metrics.DataPointCount(); points > 0 {
		ctx = p.report.StartMetricsOp(ctx)
		err = p.next.ConsumeMetrics(ctx, metrics)
		p.report.EndMetricsOp(ctx, transport, points, err)
	}
	switch {
	case err == nil:
		p.commit()
	case consumererror.IsPermanent(err):
		p.forfeit()
	}
	return p.held, err
}

// finish implements pipe: it ends all gauges, since nobody will say their values
// from now on.
func (p *metricsPipe) finish(ctx context.Context) (held int, err error) {
	p.staleAfter, p.gaugeInterval = 0, 0
	p.up.over = true
	return p.deliver(ctx, nil)
}

// build makes the metrics of a batch: the messages, the gauges that end, the
// endpoints that changed. It changes nothing that a failed attempt would have
// to put back.
func (p *metricsPipe) build(messages []*message, now time.Time) pmetric.Metrics {
	for _, r := range p.touched {
		r.points.touched, r.points.heard, r.points.written, r.points.overflowed = false, false, false, 0
	}
	clear(p.touched)
	clear(p.left)
	p.now, p.touched, p.left = now, p.touched[:0], p.left[:0]

	metrics := pmetric.NewMetrics()
	workers := newWorkerSet(p.receiver, p.form, metrics, messages)
	for _, m := range messages {
		p.pass(workers, m)
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
	switch {
	case state.links.Began != m.began:
		// The first message, or the rank has other series since the old ones ended:
		// nothing links them to what was before.
		state.links, state.held = fpm.Links{Began: m.began}, heldPoints{}
	case state.attributes != attributes:
		p.leave(m, state, attributes)
		state.held = heldPoints{}
	}
	state.worker, state.attributes, state.last, state.lost = m.worker, attributes, m.time, m.lost
	if p.holds() {
		p.hold(workers, state, m)
		return
	}
	m.rank.points.written, state.valued = true, true
	worker := workers.of(m.worker)
	m.rank.points.overflowed += worker.Pass(m.pass(), &state.links)
}

// touch begins the rank's state for this batch from what was delivered.
func (p *metricsPipe) touch(r *rank) *seriesState {
	points := &r.points
	if points.touched {
		return &points.next
	}
	points.touched = true
	points.next = points.committed
	p.touched = append(p.touched, r)
	if p.holds() {
		if points.totals == nil {
			points.totals, points.nextTotals = fpm.NewTotals(p.form), fpm.NewTotals(p.form)
		}
		points.totals.CopyTo(points.nextTotals)
	}
	return &points.next
}

// lost adds the total of each rank of the batch, unless it goes with the gauges.
func (p *metricsPipe) lost(workers *workerSet) {
	if p.holds() {
		return
	}
	for _, r := range p.touched {
		state := &r.points.next
		workers.of(state.worker).Lost(state.attributes, state.lost, state.last)
	}
}

// leave ends the gauges of a rank's old attributes, unless it takes them up
// again within the batch.
func (p *metricsPipe) leave(m *message, state *seriesState, now fpm.RankAttributes) {
	p.left = slices.DeleteFunc(p.left, func(series leftSeries) bool {
		return series.rank == m.rank && series.attributes == now
	})
	if state.valued {
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
			p.say(workers, r)
			if state.valued {
				workers.of(state.worker).Stale(state.attributes, at)
			}
			state.valued, state.held = false, heldPoints{}
		}
	}
}

// commit takes note that the batch at hand was delivered.
func (p *metricsPipe) commit() {
	for _, r := range p.touched {
		p.settle(r)
	}
	p.up.commit()
}

// settle makes a rank's next state the committed one.
func (p *metricsPipe) settle(r *rank) {
	points := &r.points
	p.held += points.next.held.messages - points.committed.held.messages
	points.committed = points.next
	points.totals, points.nextTotals = points.nextTotals, points.totals
	p.setValued(r, points.committed.valued || points.committed.held.newest != nil)
	p.receiver.ledger.overflowed(points.overflowed)
}

// forfeit takes note that the batch at hand was refused for good: the messages that
// its points count, held before or not, are not tried again, nor are the points that
// end gauges, and endpoints are shown again in their turn.
func (p *metricsPipe) forfeit() {
	for _, r := range p.touched {
		points := &r.points
		switch {
		case !points.written:
			p.settle(r)
			continue
		case points.next.held.newest != nil && points.next.follows(&points.committed): // it came after what was refused
			points.next.links, points.next.valued = unsaid(points.committed.links, points.next.links), points.committed.valued
			p.settle(r)
			continue
		}
		// Of several consumers one may have taken what was held: never twice.
		p.held -= points.committed.held.messages
		points.committed.held = heldPoints{}
		if points.totals != nil {
			points.totals.Clear()
		}
		points.committed.valued = points.committed.valued && points.next.valued
		p.setValued(r, points.committed.valued)
	}
	p.up.commit()
}

// follows tells whether no gauges that have a value at the consumer have to end
// before those of s.
func (s *seriesState) follows(committed *seriesState) bool {
	return !committed.valued || committed.attributes == s.attributes && committed.links.Began == s.links.Began
}

// unsaid is what links the points after those that were refused: they start where the
// last ones did end, or their series began.
func unsaid(committed, next fpm.Links) fpm.Links {
	if committed.Began != next.Began {
		return fpm.Links{Began: next.Began}
	}
	return committed
}

func (p *metricsPipe) setValued(r *rank, valued bool) {
	r.valued.Store(valued)
	if valued {
		p.valued[r] = struct{}{}
	} else {
		delete(p.valued, r)
	}
}
