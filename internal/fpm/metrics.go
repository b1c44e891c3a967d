// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Positions in Metrics behind the gauges.
const (
	slotMessages = Gauges + iota
	slotMessagesLost
	slotStepDuration
	slotDecodeTokenLatency
	slotPrefillTokens
	slotDecodeTokens
	slotCount
)

// Pass is one forward pass with the times its points get.
type Pass struct {
	Record *Record
	// Time is the observation time; it strictly increases within a rank.
	Time pcommon.Timestamp
	// CounterStart is the start time of fpm.messages: when the publisher that
	// counts was first heard.
	CounterStart pcommon.Timestamp
}

// Links are the times of the last delta points of one rank. The next point of
// a series starts where its last one ended, so that stock components add
// contiguous deltas up.
//
// The caller keeps one for each rank, and keeps the old value when the points
// made with it were not delivered.
type Links struct {
	// Began is the start of the first delta point of each series: when the
	// stream began, before the time of its first pass.
	Began              pcommon.Timestamp
	stepDuration       pcommon.Timestamp
	decodeTokenLatency pcommon.Timestamp
	tokens             pcommon.Timestamp
}

func (l *Links) step(last *pcommon.Timestamp, now pcommon.Timestamp) (start pcommon.Timestamp) {
	start = max(*last, l.Began)
	*last = now
	return start
}

// Lost is the running total of fpm.messages.lost of one rank.
type Lost struct {
	Total int64
	Start pcommon.Timestamp
}

// RankAttributes identifies the series of one rank within a worker.
type RankAttributes struct {
	DPRank         int64
	TimingScope    string
	HasTimingScope bool
}

// Attributes returns the attributes that the record's points carry.
func (r *Record) Attributes() RankAttributes {
	return RankAttributes{DPRank: r.DPRank, TimingScope: r.TimingScope, HasTimingScope: r.HasTimingScope}
}

// Put writes the attributes into an empty map.
func (a RankAttributes) Put(dst pcommon.Map) {
	if a.HasTimingScope {
		dst.EnsureCapacity(2)
	}
	dst.PutInt(AttrDPRank, a.DPRank)
	if a.HasTimingScope {
		dst.PutStr(AttrTimingScope, a.TimingScope)
	}
}

// WorkerMetrics fills the metrics of one worker, in one scope, for one batch. A
// metric appears with its first point. Call Pass for each forward pass in order,
// or Sampled for some and Write for what all add up to, Lost once a rank, Stale
// for ranks that fell silent.
type WorkerMetrics struct {
	form    *HistogramForm
	metrics pmetric.MetricSlice
	made    [slotCount]bool
	slots   [slotCount]pmetric.Metric
	points  int
	// one is the pass at hand.
	one *Totals
}

// NewWorkerMetrics makes the metrics of a worker, none yet, in an empty scope.
// points is how many points of each metric are about to come, as far as known.
func NewWorkerMetrics(scope pmetric.ScopeMetrics, form *HistogramForm, points int) *WorkerMetrics {
	w := &WorkerMetrics{form: form, metrics: scope.Metrics(), points: points, one: NewTotals(form)}
	w.metrics.EnsureCapacity(slotCount)
	return w
}

func (w *WorkerMetrics) metric(slot int) pmetric.Metric {
	if !w.made[slot] {
		w.made[slot] = true
		w.slots[slot] = w.metrics.AppendEmpty()
		prepare(w.slots[slot], &Metrics[slot], w.form, w.points)
	}
	return w.slots[slot]
}

func prepare(dst pmetric.Metric, metric *Metric, form *HistogramForm, points int) {
	dst.SetName(metric.Name)
	dst.SetDescription(metric.Description)
	dst.SetUnit(metric.Unit)
	switch metric.Instrument {
	case GaugeInt, GaugeDouble:
		dst.SetEmptyGauge().DataPoints().EnsureCapacity(points)
	case SumCumulative, SumDelta:
		sum := dst.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		if metric.Instrument == SumCumulative {
			sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		}
		sum.DataPoints().EnsureCapacity(points)
	case Histogram:
		form.prepare(dst, points)
	}
}

// Pass adds the points of one forward pass and moves the links on: those of
// Sampled and of Observed.
func (w *WorkerMetrics) Pass(pass Pass, links *Links) (overflowed int) {
	w.Sampled(pass)
	return w.Observed(pass, links)
}

// Sampled adds what is so at the time of a forward pass: the gauges and
// fpm.messages. It is all that a row of a sampled trace says, and what may be
// left out of passes that newer ones follow.
func (w *WorkerMetrics) Sampled(pass Pass) {
	record := pass.Record
	attributes := record.Attributes()
	for i := range Metrics[:Gauges] {
		metric := &Metrics[i]
		point := w.metric(i).Gauge().DataPoints().AppendEmpty()
		point.SetTimestamp(pass.Time)
		attributes.Put(point.Attributes())
		if field := metric.Count(record); field != nil {
			point.SetIntValue(*field)
		} else {
			point.SetDoubleValue(*metric.Value(record))
		}
	}
	w.sum(slotMessages, attributes, pass.CounterStart, pass.Time, record.CounterID)
}

// Observed adds what only adds up when no forward pass is left out, the token
// sums and the durations, and moves the links on. overflowed is the number of
// observations left out because value × weight is no finite number.
func (w *WorkerMetrics) Observed(pass Pass, links *Links) (overflowed int) {
	_, overflowed = w.one.Add(pass)
	w.Write(w.one, pass.Record.Attributes(), links)
	return overflowed
}

// Write adds the delta points of all that totals have, which must not be empty,
// as one point of each series, moves the links on and empties the totals.
func (w *WorkerMetrics) Write(totals *Totals, attributes RankAttributes, links *Links) {
	if totals.step.count > 0 {
		w.form.appendPoint(w.metric(slotStepDuration), &totals.step, attributes, links.step(&links.stepDuration, totals.step.last))
	}
	if latency := &totals.tokenLatency; latency.count > 0 {
		w.form.appendPoint(w.metric(slotDecodeTokenLatency), latency, attributes, links.step(&links.decodeTokenLatency, latency.last))
	}
	start := links.step(&links.tokens, totals.last)
	w.sum(slotPrefillTokens, attributes, start, totals.last, totals.prefillTokens)
	w.sum(slotDecodeTokens, attributes, start, totals.last, totals.decodeTokens)
	totals.Clear()
}

// Lost adds a rank's point of fpm.messages.lost.
func (w *WorkerMetrics) Lost(attributes RankAttributes, lost Lost, now pcommon.Timestamp) {
	w.sum(slotMessagesLost, attributes, lost.Start, now, lost.Total)
}

func (w *WorkerMetrics) sum(slot int, attributes RankAttributes, start, now pcommon.Timestamp, value int64) {
	point := w.metric(slot).Sum().DataPoints().AppendEmpty()
	point.SetStartTimestamp(start)
	point.SetTimestamp(now)
	point.SetIntValue(value)
	attributes.Put(point.Attributes())
}

// Stale ends the gauges of a rank: one point without a value for each, in a
// Metric entry of its own, because the stock Prometheus exporter skips the
// points behind one.
func (w *WorkerMetrics) Stale(attributes RankAttributes, now pcommon.Timestamp) {
	for i := range Metrics[:Gauges] {
		metric := w.metrics.AppendEmpty()
		prepare(metric, &Metrics[i], w.form, 1)
		point := metric.Gauge().DataPoints().AppendEmpty()
		point.SetTimestamp(now)
		point.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		attributes.Put(point.Attributes())
	}
}

// AppendEndpointUp adds the point of fpm.endpoint.up to a scope.
func AppendEndpointUp(scope pmetric.ScopeMetrics, endpoint string, up bool, now pcommon.Timestamp) {
	point := appendEndpointPoint(scope, endpoint, now)
	if up {
		point.SetIntValue(1)
	} else {
		point.SetIntValue(0)
	}
}

// AppendEndpointEnd ends the series of fpm.endpoint.up of an endpoint that nobody
// listens to any more, with a point without a value.
func AppendEndpointEnd(scope pmetric.ScopeMetrics, endpoint string, now pcommon.Timestamp) {
	point := appendEndpointPoint(scope, endpoint, now)
	point.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
}

func appendEndpointPoint(scope pmetric.ScopeMetrics, endpoint string, now pcommon.Timestamp) pmetric.NumberDataPoint {
	metric := scope.Metrics().AppendEmpty()
	prepare(metric, &EndpointUp, nil, 1)
	point := metric.Gauge().DataPoints().AppendEmpty()
	point.SetTimestamp(now)
	point.Attributes().PutStr(AttrEndpoint, endpoint)
	return point
}
