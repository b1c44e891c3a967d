// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// workerSet are the workers of one batch of metrics, one resource each.
type workerSet struct {
	receiver *fpmReceiver
	form     *fpm.HistogramForm
	metrics  pmetric.Metrics
	// points is how many points each metric of a worker will have, 0 for a few.
	points map[*worker]int
	filled map[*worker]*fpm.WorkerMetrics
}

func newWorkerSet(r *fpmReceiver, form *fpm.HistogramForm, metrics pmetric.Metrics, messages []*message) *workerSet {
	points := make(map[*worker]int)
	if r.config.GaugeInterval == 0 {
		for _, m := range messages {
			points[m.worker]++
		}
	}
	metrics.ResourceMetrics().EnsureCapacity(len(points))
	return &workerSet{
		receiver: r, form: form, metrics: metrics,
		points: points, filled: make(map[*worker]*fpm.WorkerMetrics, len(points)),
	}
}

// of gives the metrics of a worker, which appear with it.
func (s *workerSet) of(w *worker) *fpm.WorkerMetrics {
	if filled := s.filled[w]; filled != nil {
		return filled
	}
	resource := s.metrics.ResourceMetrics().AppendEmpty()
	w.resource.CopyTo(resource.Resource())
	scope := resource.ScopeMetrics().AppendEmpty()
	s.receiver.setScope(scope.Scope())
	filled := fpm.NewWorkerMetrics(scope, s.form, s.points[w])
	s.filled[w] = filled
	return filled
}

// upInterval is how often fpm.endpoint.up is sent at least.
const upInterval = 10 * time.Second

// upPoints are the points of fpm.endpoint.up: sent when they change, and so
// often that upInterval never passes without one.
type upPoints struct {
	receiver *fpmReceiver
	// interval is upInterval less the time until the next look.
	interval   time.Duration
	said, next map[*endpoint]upPoint
	// over: nobody listens any more, what was said ends.
	over bool
}

// upPoint is what was last said of an endpoint.
type upPoint struct {
	up   bool
	sent time.Time
	time pcommon.Timestamp
}

func newUpPoints(r *fpmReceiver) upPoints {
	return upPoints{
		receiver: r,
		interval: upInterval - min(r.config.Batch.Timeout, maxTick),
		said:     make(map[*endpoint]upPoint),
		next:     make(map[*endpoint]upPoint),
	}
}

// build adds the points that are due.
func (u *upPoints) build(metrics pmetric.Metrics, now time.Time) {
	clear(u.next)
	scopes := make(map[*engine]pmetric.ScopeMetrics)
	for _, e := range u.receiver.endpoints {
		up := e.state(now) == stateLive
		said, known := u.said[e]
		if u.over && !known || !u.over && known && said.up == up && now.Sub(said.sent) < u.interval {
			continue
		}
		scope, ok := scopes[e.engine]
		if !ok {
			resource := metrics.ResourceMetrics().AppendEmpty()
			e.engine.endpointResource(resource.Resource())
			scope = resource.ScopeMetrics().AppendEmpty()
			u.receiver.setScope(scope.Scope())
			scopes[e.engine] = scope
		}
		point := upPoint{up: up, sent: now, time: fpm.NextTime(said.time, pcommon.NewTimestampFromTime(now))}
		u.next[e] = point
		if u.over {
			fpm.AppendEndpointEnd(scope, e.address.String(), point.time)
		} else {
			fpm.AppendEndpointUp(scope, e.address.String(), up, point.time)
		}
	}
}

// commit takes note that the points were sent.
func (u *upPoints) commit() {
	for e, point := range u.next {
		u.said[e] = point
	}
}
