// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package stocktest

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// bounds are upper bounds of buckets in seconds.
var bounds = []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10}

// engine makes batches of passes as the fpm receiver does, and keeps the list of all passes.
type engine struct {
	*rand.Rand
	instance string
	now      pcommon.Timestamp
	began    pcommon.Timestamp // of the process
	last     pcommon.Timestamp // time of the last observation
	counter  int64
	passes   []pass // of all processes
}

type pass struct {
	time    pcommon.Timestamp
	wall    float64
	decode  int64
	prefill int64
	queued  int64
	counter int64
}

func newEngine(seed uint64, instance string, began time.Time) *engine {
	at := pcommon.NewTimestampFromTime(began)
	return &engine{Rand: rand.New(rand.NewPCG(seed, 1)), instance: instance, now: at, began: at, last: at}
}

// restart begins a new process of the same worker: it counts from 0 again.
func (e *engine) restart() {
	e.now += pcommon.Timestamp(time.Second)
	e.began, e.counter = e.now, 0
}

// pass makes up a pass, some milliseconds after the one before.
func (e *engine) pass() pass {
	e.counter++
	e.now += pcommon.Timestamp(time.Millisecond) * pcommon.Timestamp(2+e.IntN(9))
	p := pass{
		time: e.now, counter: e.counter,
		wall:   math.Exp(-4 + 1.2*e.NormFloat64()),
		decode: int64(e.IntN(64)), prefill: int64(e.IntN(3) * 512), queued: int64(e.IntN(4)),
	}
	e.passes = append(e.passes, p)
	return p
}

// batch makes up n passes in one batch.
func (e *engine) batch(n int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.namespace", "default")
	rm.Resource().Attributes().PutStr("service.name", "backend")
	rm.Resource().Attributes().PutStr("service.instance.id", e.instance)
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName("github.com/otelcol-fpm/otelcol-fpm/receiver/fpmreceiver")
	metric := func(name, unit string) pmetric.Metric {
		m := sm.Metrics().AppendEmpty()
		m.SetName(name)
		m.SetUnit(unit)
		return m
	}
	queued := metric("fpm.queued.decode.requests", "{request}").SetEmptyGauge().DataPoints()
	messages := cumulative(metric("fpm.messages", "{message}").SetEmptySum())
	tokens := delta(metric("fpm.decode.tokens", "{token}").SetEmptySum())
	latency := metric("fpm.decode.token_latency", "s").SetEmptyHistogram()
	latency.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	steps := metric("fpm.step.duration", "s").SetEmptyExponentialHistogram()
	steps.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)

	for range n {
		p := e.pass()
		number(queued.AppendEmpty(), 0, p.time, p.queued)
		number(messages.AppendEmpty(), e.began, p.time, p.counter)
		number(tokens.AppendEmpty(), e.last, p.time, p.decode)
		if p.decode > 0 {
			e.explicit(latency.DataPoints().AppendEmpty(), p)
		}
		e.exponential(steps.DataPoints().AppendEmpty(), p)
		e.last = p.time
	}
	sm.Metrics().RemoveIf(func(m pmetric.Metric) bool {
		return m.Type() == pmetric.MetricTypeHistogram && m.Histogram().DataPoints().Len() == 0
	})
	return md
}

func cumulative(s pmetric.Sum) pmetric.NumberDataPointSlice {
	s.SetIsMonotonic(true)
	s.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	return s.DataPoints()
}

func delta(s pmetric.Sum) pmetric.NumberDataPointSlice {
	s.SetIsMonotonic(true)
	s.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	return s.DataPoints()
}

func number(dp pmetric.NumberDataPoint, start, at pcommon.Timestamp, value int64) {
	dp.Attributes().PutInt("fpm.dp_rank", 0)
	dp.SetStartTimestamp(start)
	dp.SetTimestamp(at)
	dp.SetIntValue(value)
}

// explicit is the wall time with the weight of the decode requests.
func (e *engine) explicit(dp pmetric.HistogramDataPoint, p pass) {
	dp.Attributes().PutInt("fpm.dp_rank", 0)
	dp.SetStartTimestamp(e.last)
	dp.SetTimestamp(p.time)
	dp.SetCount(uint64(p.decode))
	dp.SetSum(p.wall * float64(p.decode))
	dp.SetMin(p.wall)
	dp.SetMax(p.wall)
	dp.ExplicitBounds().FromRaw(bounds)
	buckets := make([]uint64, len(bounds)+1)
	i, _ := slices.BinarySearch(bounds, p.wall)
	buckets[i] = uint64(p.decode)
	dp.BucketCounts().FromRaw(buckets)
}

// stepScale makes buckets 9 % wide.
const stepScale = 3

// exponential is the wall time, once.
func (e *engine) exponential(dp pmetric.ExponentialHistogramDataPoint, p pass) {
	dp.Attributes().PutInt("fpm.dp_rank", 0)
	dp.SetStartTimestamp(e.last)
	dp.SetTimestamp(p.time)
	dp.SetCount(1)
	dp.SetSum(p.wall)
	dp.SetMin(p.wall)
	dp.SetMax(p.wall)
	dp.SetScale(stepScale)
	dp.Positive().SetOffset(int32(math.Ceil(math.Log2(p.wall)*(1<<stepScale))) - 1)
	dp.Positive().BucketCounts().FromRaw([]uint64{1})
}

// totals are what all passes add up to.
type totals struct {
	tokens       int64
	latencyCount uint64
	latencySum   float64
	latency      []uint64 // by bucket
	steps        uint64
	stepSum      float64
	queued       int64
	counter      int64
}

func (e *engine) totals() totals {
	m := totals{latency: make([]uint64, len(bounds)+1)}
	for _, p := range e.passes {
		m.tokens += p.decode
		m.latencyCount += uint64(p.decode)
		m.latencySum += p.wall * float64(p.decode)
		i := 0
		for i < len(bounds) && p.wall > bounds[i] {
			i++
		}
		m.latency[i] += uint64(p.decode)
		m.steps++
		m.stepSum += p.wall
		m.queued, m.counter = p.queued, p.counter
	}
	return m
}

// latencyQuantile is what histogram_quantile gives: linear within the bucket of the rank.
func (m totals) latencyQuantile(q float64) float64 {
	rank := q * float64(m.latencyCount)
	below := 0.0
	for i, count := range m.latency {
		if i == len(bounds) {
			return bounds[i-1]
		}
		if below+float64(count) >= rank {
			lower := 0.0
			if i > 0 {
				lower = bounds[i-1]
			}
			return lower + (bounds[i]-lower)*(rank-below)/float64(count)
		}
		below += float64(count)
	}
	return math.NaN()
}

// stepQuantile is the wall time of the rank.
func (e *engine) stepQuantile(q float64) float64 {
	var walls []float64
	for _, p := range e.passes {
		walls = append(walls, p.wall)
	}
	slices.Sort(walls)
	return walls[int(math.Ceil(q*float64(len(walls))))-1]
}
