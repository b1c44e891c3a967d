// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/receiver/metriceventreceiver/internal/metadata"
)

// maxBatchEvents is the largest batch::max_events.
const maxBatchEvents = 65536

// seriesPoints links the points of a series over batches. It is the delivery's.
type seriesPoints struct {
	delivered timeline
	// pending is what the series has in the batch at hand, if anything.
	pending *pending
}

// batch adds up the events of one attempt at a delivery.
//
// Invariant (TestBatchKeepsTotals): over all points of a series the counts add
// up to the weights, the sums to value × weight, the counters to the increments;
// a gauge has a point for each assignment, in order.
type batch struct {
	version string     // of the build
	series  []*pending // in the order in which they came
}

// pending is what one series has in a batch.
type pending struct {
	series *series
	// time is the series' timeline as it will be once the batch is delivered.
	time timeline

	assignments []assignment
	// increments and distributions have more than one element only when a total
	// would leave its range.
	increments    []increments
	distributions []distribution
}

// assignment is one assignment of a gauge.
type assignment struct {
	timestamp int64
	value     number
}

// add adds an event to its series.
func (b *batch) add(a *accepted) {
	p := a.series.points.pending
	if p == nil {
		p = &pending{series: a.series}
		a.series.points.pending = p
		b.series = append(b.series, p)
	}
	switch a.series.metric.operation {
	case operationSet:
		p.assignments = append(p.assignments, assignment{a.timestamp, a.value})
	case operationInc:
		n := len(p.increments)
		if n == 0 || !p.increments[n-1].add(a.value) {
			p.increments = append(p.increments, increments{})
			p.increments[n].add(a.value)
		}
		p.increments[len(p.increments)-1].cover(a.timestamp)
	case operationObserve:
		n := len(p.distributions)
		if n == 0 || !p.distributions[n-1].add(a.value.float64(), a.weight) {
			p.distributions = append(p.distributions, newDistribution(a.series.metric.description.bounds))
			p.distributions[n].add(a.value.float64(), a.weight)
		}
		p.distributions[len(p.distributions)-1].cover(a.timestamp)
	}
}

// end forgets the batch. When it was delivered the next points of its series
// follow on these.
func (b *batch) end(delivered bool) {
	for _, p := range b.series {
		if delivered {
			p.series.points.delivered = p.time
		}
		p.series.points.pending = nil
	}
	b.series = b.series[:0]
}

// metrics are the points of the batch: a resource a producer, a metric each of
// its metrics, one or more points a series.
func (b *batch) metrics(now pcommon.Timestamp) pmetric.Metrics {
	all := pmetric.NewMetrics()
	scopes := make(map[*producer]pmetric.MetricSlice)
	metrics := make(map[*metric]pmetric.Metric)
	for _, p := range b.series {
		m := p.series.metric
		dst, ok := metrics[m]
		if !ok {
			scope, ok := scopes[m.producer]
			if !ok {
				scope = b.scope(all, m.producer)
				scopes[m.producer] = scope
			}
			dst = scope.AppendEmpty()
			m.prepare(dst)
			metrics[m] = dst
		}
		p.time = p.series.points.delivered
		p.write(dst, now)
	}
	return all
}

func (b *batch) scope(all pmetric.Metrics, p *producer) pmetric.MetricSlice {
	resource := all.ResourceMetrics().AppendEmpty()
	p.resource.CopyTo(resource.Resource())
	scope := resource.ScopeMetrics().AppendEmpty()
	scope.Scope().SetName(metadata.ScopeName)
	scope.Scope().SetVersion(b.version)
	return scope.Metrics()
}

// prepare makes the metric as its operation and description want it. Its name
// is the one on the wire.
func (m *metric) prepare(dst pmetric.Metric) {
	dst.SetName(m.name)
	dst.SetUnit(m.description.unit)
	dst.SetDescription(m.description.text)
	switch {
	case m.operation == operationSet:
		dst.SetEmptyGauge()
	case m.operation == operationInc:
		sum := dst.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	case m.description.bounds != nil:
		dst.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	default:
		dst.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	}
}

// write appends the points of the series to its metric.
func (p *pending) write(dst pmetric.Metric, now pcommon.Timestamp) {
	for i := range p.assignments {
		a := &p.assignments[i]
		point := dst.Gauge().DataPoints().AppendEmpty()
		p.series.attributes.CopyTo(point.Attributes())
		point.SetTimestamp(p.time.assigned(a.timestamp, now))
		if a.value.float {
			point.SetDoubleValue(a.value.float64())
		} else {
			point.SetIntValue(a.value.int64())
		}
	}
	for i := range p.increments {
		total := &p.increments[i]
		point := dst.Sum().DataPoints().AppendEmpty()
		p.place(point, &total.period, now)
		total.write(point)
	}
	for i := range p.distributions {
		d := &p.distributions[i]
		switch b := d.buckets.(type) {
		case *explicit:
			point := dst.Histogram().DataPoints().AppendEmpty()
			p.place(point, &d.period, now)
			d.write(point)
			b.write(point)
		case *exponential:
			point := dst.ExponentialHistogram().DataPoints().AppendEmpty()
			p.place(point, &d.period, now)
			d.write(point)
			b.write(point)
		}
	}
}

// deltaPoint is what points of added up events have in common.
type deltaPoint interface {
	Attributes() pcommon.Map
	SetStartTimestamp(pcommon.Timestamp)
	SetTimestamp(pcommon.Timestamp)
}

func (p *pending) place(point deltaPoint, covered *period, now pcommon.Timestamp) {
	p.series.attributes.CopyTo(point.Attributes())
	start, at := p.time.addedUp(covered.oldest, covered.newest, now)
	point.SetStartTimestamp(start)
	point.SetTimestamp(at)
}
