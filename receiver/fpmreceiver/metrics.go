// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// upInterval is how often fpm.endpoint.up is sent at least.
const upInterval = 10 * time.Second

// rankPoints is what the metrics pipe knows of a rank: committed as delivered,
// next as it will be when the batch at hand is.
type rankPoints struct {
	committed, next seriesState
	touched         bool
}

// seriesState links a rank's next points to its last ones.
type seriesState struct {
	links      fpm.Links
	worker     *worker
	attributes fpm.RankAttributes
	last       pcommon.Timestamp
	lastLost   fpm.Lost
	// ended: the gauges ended with a point without a value.
	ended bool
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

	// active are the ranks whose gauges have a value.
	active map[*rank]struct{}
	up     map[*endpoint]upState

	// Of the batch at hand:
	touched    []*rank
	upNext     map[*endpoint]upState
	overflowed int
}

// upState is what was last said of an endpoint.
type upState struct {
	up   bool
	sent time.Time
}

func newMetricsPipe(r *fpmReceiver, next consumer.Metrics, report *receiverhelper.ObsReport) *metricsPipe {
	return &metricsPipe{
		receiver: r, next: next, report: report, form: histogramForm(&r.config.Histogram),
		active: make(map[*rank]struct{}),
		up:     make(map[*endpoint]upState),
		upNext: make(map[*endpoint]upState),
	}
}

func histogramForm(c *HistogramConfig) *fpm.HistogramForm {
	if exponential := c.Exponential.Get(); c.Exponential.HasValue() {
		return fpm.ExponentialForm(exponential.MaxSize)
	}
	if c.Bounds != nil {
		return fpm.ExplicitForm(c.Bounds)
	}
	return fpm.ExplicitForm(defaultBounds)
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
	if err == nil {
		p.commit()
	}
	return err
}

// build makes the metrics of a batch: the messages, the gauges that end, the
// endpoints that changed. It changes nothing that a failed attempt would have
// to put back.
func (p *metricsPipe) build(messages []*message, now time.Time) pmetric.Metrics {
	for _, r := range p.touched {
		r.points.touched = false
	}
	p.touched = p.touched[:0]
	p.overflowed = 0

	metrics := pmetric.NewMetrics()
	workers := p.workers(metrics, messages)
	for _, m := range messages {
		p.pass(workers, m)
	}
	for _, r := range p.touched {
		state := &r.points.next
		workers.of(state.worker).Lost(state.attributes, state.lastLost, state.last)
	}
	p.endStale(workers, now)
	for _, filled := range workers.filled {
		filled.Finish()
	}
	p.endpoints(metrics, now)
	return metrics
}

func (p *metricsPipe) pass(workers *workerSet, m *message) {
	r := m.rank
	p.touch(r)
	state := &r.points.next
	attributes := m.record.Attributes()
	if state.worker == nil {
		state.links.Began = startBefore(0, m.time)
	} else if state.worker != m.worker || state.attributes != attributes {
		// The rank's series have another name from now on; those of the old one
		// end here.
		p.end(workers, state, m.time-1)
	}
	state.worker, state.attributes, state.last, state.lastLost, state.ended = m.worker, attributes, m.time, m.lost, false
	p.overflowed += workers.of(m.worker).Pass(fpm.Pass{Record: &m.record, Time: m.time, CounterStart: m.counterStart}, &state.links)
}

// touch begins the rank's state for this batch from what was delivered.
func (p *metricsPipe) touch(r *rank) {
	if r.points.touched {
		return
	}
	r.points.touched = true
	r.points.next = r.points.committed
	p.touched = append(p.touched, r)
}

func (p *metricsPipe) end(workers *workerSet, state *seriesState, at pcommon.Timestamp) {
	if !state.ended {
		workers.of(state.worker).Stale(state.attributes, max(at, state.last+1))
		state.ended = true
	}
}

// endStale ends the gauges of ranks that have not been heard for stale_after,
// once all that was heard of them is delivered.
func (p *metricsPipe) endStale(workers *workerSet, now time.Time) {
	for r := range p.active {
		if r.points.touched {
			continue
		}
		at, silent := r.silent(now, p.receiver.config.StaleAfter, r.points.committed.last)
		if !silent {
			continue
		}
		p.touch(r)
		p.end(workers, &r.points.next, at)
	}
}

// endpoints adds fpm.endpoint.up where it changed or was last sent upInterval
// ago.
func (p *metricsPipe) endpoints(metrics pmetric.Metrics, now time.Time) {
	clear(p.upNext)
	var scopes map[*engine]pmetric.ScopeMetrics
	for _, e := range p.receiver.endpoints {
		up := e.state(now) == stateLive
		said, known := p.up[e]
		if known && said.up == up && now.Sub(said.sent) < upInterval {
			continue
		}
		if scopes == nil {
			scopes = make(map[*engine]pmetric.ScopeMetrics)
		}
		scope, ok := scopes[e.engine]
		if !ok {
			resource := metrics.ResourceMetrics().AppendEmpty()
			e.engine.endpointResource(resource.Resource())
			scope = resource.ScopeMetrics().AppendEmpty()
			p.receiver.setScope(scope.Scope())
			scopes[e.engine] = scope
		}
		fpm.AppendEndpointUp(scope, e.address.String(), up, pcommon.NewTimestampFromTime(now))
		p.upNext[e] = upState{up: up, sent: now}
	}
}

func (p *metricsPipe) commit() {
	for _, r := range p.touched {
		r.points.committed = r.points.next
		if r.points.committed.ended {
			delete(p.active, r)
		} else {
			p.active[r] = struct{}{}
		}
	}
	for e, said := range p.upNext {
		p.up[e] = said
	}
	p.receiver.ledger.overflow.Add(int64(p.overflowed))
}

// workerSet are the resources of one batch.
type workerSet struct {
	receiver *fpmReceiver
	form     *fpm.HistogramForm
	metrics  pmetric.Metrics
	passes   map[*worker]int
	filled   map[*worker]*fpm.WorkerMetrics
}

func (p *metricsPipe) workers(metrics pmetric.Metrics, messages []*message) *workerSet {
	passes := make(map[*worker]int)
	for _, m := range messages {
		passes[m.worker]++
	}
	metrics.ResourceMetrics().EnsureCapacity(len(passes))
	return &workerSet{
		receiver: p.receiver, form: p.form, metrics: metrics,
		passes: passes, filled: make(map[*worker]*fpm.WorkerMetrics, len(passes)),
	}
}

func (s *workerSet) of(w *worker) *fpm.WorkerMetrics {
	if filled := s.filled[w]; filled != nil {
		return filled
	}
	resource := s.metrics.ResourceMetrics().AppendEmpty()
	w.resource.CopyTo(resource.Resource())
	scope := resource.ScopeMetrics().AppendEmpty()
	s.receiver.setScope(scope.Scope())
	filled := fpm.NewWorkerMetrics(scope, s.form, s.passes[w])
	s.filled[w] = filled
	return filled
}
