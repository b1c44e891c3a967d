// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// bench is what batches need of a receiver.
type bench struct {
	t         *testing.T
	producers *producers
	batch     batch
	hand      []accepted
	now       pcommon.Timestamp
}

func newBench(t *testing.T, catalog ...CatalogConfig) *bench {
	config := createDefaultConfig().(*Config)
	config.Catalog = catalog
	return &bench{t: t, producers: newProducers(config), batch: batch{version: "v1"}, now: testNow}
}

// add lets a producer say an event.
func (b *bench) add(pid int, metric string, o operation, value number, weight uint64, timestamp int64, labels ...string) {
	b.t.Helper()
	p := b.producers.get(&message{producer: producerKey{"gpu-7", int64(pid), testStart}}, testClock)
	defer p.mu.Unlock()
	e := &event{timestamp: timestamp, metric: []byte(metric), operation: o, value: value, weight: weight}
	for i := 0; i < len(labels); i += 2 {
		e.labels = append(e.labels, label{[]byte(labels[i]), []byte(labels[i+1])})
	}
	s, rejected := p.admit(e, testClock)
	require.Nil(b.t, rejected, "%v", rejected)
	b.hand = append(b.hand, accepted{s, e.timestamp, e.value, e.weight})
	b.batch.add(&b.hand[len(b.hand)-1])
}

// refuse lets the batch at hand be refused, and puts it together again.
func (b *bench) refuse() {
	b.batch.metrics(b.now)
	b.batch.end(false)
	for i := range b.hand {
		b.batch.add(&b.hand[i])
	}
}

func (b *bench) deliver() pmetric.Metrics {
	metrics := b.batch.metrics(b.now)
	b.batch.end(true)
	b.hand = nil
	return metrics
}

// only is the one metric of the metrics.
func only(t *testing.T, metrics pmetric.Metrics) pmetric.Metric {
	t.Helper()
	require.Equal(t, 1, metrics.ResourceMetrics().Len())
	require.Equal(t, 1, metrics.ResourceMetrics().At(0).ScopeMetrics().Len())
	require.Equal(t, 1, metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().Len())
	return metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
}

func TestWeightIsACount(t *testing.T) {
	b := newBench(t)
	b.add(1, itl, operationObserve, floatNumber(0.01), 3, testTime)
	m := only(t, b.deliver())
	assert.Equal(t, itl, m.Name())
	assert.Equal(t, "s", m.Unit())
	assert.Equal(t, pmetric.AggregationTemporalityDelta, m.Histogram().AggregationTemporality())
	point := m.Histogram().DataPoints().At(0)
	assert.Equal(t, uint64(3), point.Count())
	assert.InDelta(t, 0.03, point.Sum(), 1e-15)
	assert.Equal(t, 0.01, point.Min())
	assert.Equal(t, 0.01, point.Max())
	assert.Equal(t, []float64{.002, .004, .006, .008, .01, .015, .02, .025, .03, .035, .04, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2}, point.ExplicitBounds().AsRaw())
	counts := make([]uint64, 23)
	counts[4] = 3 // the bound itself is in its bucket
	assert.Equal(t, counts, point.BucketCounts().AsRaw())
}

func TestObservationsOfOneSeriesAreAddedUp(t *testing.T) {
	b := newBench(t, CatalogConfig{Metric: "h", Bounds: []float64{0, 1}})
	for _, o := range []struct {
		value  float64
		weight uint64
	}{{0.5, 2}, {3, 1}, {0.25, 4}, {math.Copysign(0, -1), 1}, {1, 1}} {
		b.add(1, "h", operationObserve, floatNumber(o.value), o.weight, testTime)
	}
	b.add(1, "h", operationObserve, intNumber(7), 1, testTime, "a", "b")
	points := only(t, b.deliver()).Histogram().DataPoints()
	require.Equal(t, 2, points.Len())
	assert.Equal(t, []uint64{1, 7, 1}, points.At(0).BucketCounts().AsRaw())
	assert.Equal(t, uint64(9), points.At(0).Count())
	assert.Equal(t, 6.0, points.At(0).Sum())
	assert.Equal(t, uint64(0), math.Float64bits(points.At(0).Min()), "-0 is 0")
	assert.Equal(t, 3.0, points.At(0).Max())
	assert.Equal(t, 7.0, points.At(1).Sum())
	assert.Equal(t, map[string]any{"a": "b"}, points.At(1).Attributes().AsRaw())
}

// The sum of a histogram is of what is not negative, or there is none.
func TestNegativeObservationLeavesTheSumOut(t *testing.T) {
	b := newBench(t)
	b.add(1, itl, operationObserve, floatNumber(0.5), 1, testTime)
	b.add(1, itl, operationObserve, floatNumber(-0.25), 2, testTime)
	point := only(t, b.deliver()).Histogram().DataPoints().At(0)
	assert.False(t, point.HasSum())
	assert.Equal(t, uint64(3), point.Count())
	assert.Equal(t, -0.25, point.Min())
	assert.Equal(t, uint64(2), point.BucketCounts().At(0))
}

func TestUnknownHistogramIsExponential(t *testing.T) {
	b := newBench(t)
	for _, value := range []float64{1, 1.05, 2, 0, -4} {
		b.add(1, "other", operationObserve, floatNumber(value), 2, testTime)
	}
	m := only(t, b.deliver())
	assert.Empty(t, m.Unit())
	assert.Equal(t, pmetric.AggregationTemporalityDelta, m.ExponentialHistogram().AggregationTemporality())
	point := m.ExponentialHistogram().DataPoints().At(0)
	assert.Equal(t, int32(3), point.Scale())
	assert.Equal(t, uint64(10), point.Count())
	assert.Equal(t, uint64(2), point.ZeroCount())
	// A power of two is the inclusive upper bound of its bucket.
	assert.Equal(t, int32(-1), point.Positive().Offset())
	assert.Equal(t, []uint64{2, 2, 0, 0, 0, 0, 0, 0, 2}, point.Positive().BucketCounts().AsRaw())
	assert.Equal(t, int32(15), point.Negative().Offset())
	assert.Equal(t, []uint64{2}, point.Negative().BucketCounts().AsRaw())
}

func TestExponentialScaleFitsTheSize(t *testing.T) {
	tests := map[string]struct {
		values []float64
		scale  int32
	}{
		"1 ms to 100 s":     {[]float64{0.001, 100}, 3},
		"just too far":      {[]float64{0.001, 1100}, 2},
		"1e-6 to 1e6":       {[]float64{1e-6, 1e6}, 2},
		"every float":       {[]float64{5e-324, math.MaxFloat64}, -4},
		"only zero":         {[]float64{0}, 3},
		"of both signs":     {[]float64{1, -5e-324, -math.MaxFloat64}, -4},
		"one, however odd":  {[]float64{math.MaxFloat64}, 3},
		"smallest positive": {[]float64{5e-324, 2.3e-308}, 3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			buckets := newExponential()
			for _, value := range test.values {
				buckets.add(value, 7)
			}
			point := pmetric.NewExponentialHistogramDataPoint()
			buckets.write(point)
			assert.Equal(t, test.scale, point.Scale())
			total := point.ZeroCount()
			for _, side := range []pmetric.ExponentialHistogramDataPointBuckets{point.Positive(), point.Negative()} {
				assert.LessOrEqual(t, side.BucketCounts().Len(), maxSize)
				for _, count := range side.BucketCounts().All() {
					total += count
				}
			}
			assert.Equal(t, uint64(7*len(test.values)), total)
			assert.GreaterOrEqual(t, point.Scale(), int32(-4))
		})
	}
}

func TestIncrements(t *testing.T) {
	type points []any
	tests := map[string]struct {
		values []number
		want   points
	}{
		"ints stay ints":           {[]number{intNumber(1), intNumber(2)}, points{int64(3)}},
		"a float makes a float":    {[]number{intNumber(1), floatNumber(0.5), intNumber(2)}, points{3.5}},
		"inc 0":                    {[]number{intNumber(0)}, points{int64(0)}},
		"inc -0.0":                 {[]number{floatNumber(math.Copysign(0, -1))}, points{0.0}},
		"more than an int can be":  {[]number{intNumber(math.MaxInt64), intNumber(1), intNumber(2)}, points{int64(math.MaxInt64), int64(3)}},
		"more than a float can be": {[]number{floatNumber(math.MaxFloat64), floatNumber(math.MaxFloat64)}, points{math.MaxFloat64, math.MaxFloat64}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			for _, value := range test.values {
				b.add(1, "tokenspeed:num_requests_total", operationInc, value, 1, testTime)
			}
			m := only(t, b.deliver())
			assert.True(t, m.Sum().IsMonotonic())
			assert.Equal(t, pmetric.AggregationTemporalityDelta, m.Sum().AggregationTemporality())
			var got points
			var last pcommon.Timestamp
			for i := range m.Sum().DataPoints().Len() {
				point := m.Sum().DataPoints().At(i)
				if i > 0 {
					assert.Equal(t, last, point.StartTimestamp())
				}
				last = point.Timestamp()
				if point.ValueType() == pmetric.NumberDataPointValueTypeInt {
					got = append(got, point.IntValue())
				} else {
					got = append(got, point.DoubleValue())
				}
			}
			assert.Equal(t, test.want, got)
		})
	}
}

// A sum that would be infinite becomes two points.
func TestSumOverflowMakesTwoPoints(t *testing.T) {
	b := newBench(t)
	for range 3 {
		b.add(1, itl, operationObserve, floatNumber(1e308), 1, testTime)
	}
	points := only(t, b.deliver()).Histogram().DataPoints()
	require.Equal(t, 3, points.Len(), "1e308 + 1e308 is over the largest float")
	for i := range 3 {
		assert.Equal(t, 1e308, points.At(i).Sum())
		assert.Equal(t, uint64(1), points.At(i).Count())
	}
}

func TestGaugeKeepsEachAssignment(t *testing.T) {
	b := newBench(t)
	b.add(1, "g", operationSet, intNumber(1), 1, testTime)
	b.add(1, "g", operationSet, floatNumber(0.5), 1, testTime-5)
	b.add(1, "g", operationSet, intNumber(1), 1, testTime+int64(10*ms))
	points := only(t, b.deliver()).Gauge().DataPoints()
	require.Equal(t, 3, points.Len())
	assert.Equal(t, int64(1), points.At(0).IntValue())
	assert.Equal(t, 0.5, points.At(1).DoubleValue())
	assert.Equal(t, int64(1), points.At(2).IntValue())
	assert.Equal(t, []pcommon.Timestamp{testNow, testNow + ms, testNow + 10*ms},
		[]pcommon.Timestamp{points.At(0).Timestamp(), points.At(1).Timestamp(), points.At(2).Timestamp()})
	assert.Zero(t, points.At(0).StartTimestamp())
}

func TestResourceAndScope(t *testing.T) {
	config := createDefaultConfig().(*Config)
	config.ResourceAttributes = map[string]any{"deployment.environment.name": "test", "rack": 7, "k8s.pod.name": "from config"}
	b := &bench{t: t, producers: newProducers(config), batch: batch{version: "v1"}, now: testNow}
	said := encode(pairs{{"k8s.pod.name", "engine-0"}, {"gpus", 8}, {"share", 0.5}, {"spot", true}, {attrServiceInstanceID, "mine"}})
	p := b.producers.get(&message{producer: producerKey{"gpu-7", 4242, testStart}, resource: said}, testClock)
	p.mu.Unlock()
	b.add(4242, "g", operationSet, intNumber(1), 1, testTime)
	b.add(1, "g", operationSet, intNumber(1), 1, testTime)
	b.add(4242, "h", operationSet, intNumber(1), 1, testTime)
	metrics := b.deliver()
	require.Equal(t, 2, metrics.ResourceMetrics().Len())
	assert.Equal(t, map[string]any{
		"service.name": "tokenspeed", "service.instance.id": "gpu-7:4242:1600000000000000000",
		"deployment.environment.name": "test", "rack": int64(7),
		"k8s.pod.name": "engine-0", "gpus": int64(8), "share": 0.5, "spot": true,
	}, metrics.ResourceMetrics().At(0).Resource().Attributes().AsRaw())
	assert.Equal(t, map[string]any{
		"service.name": "tokenspeed", "service.instance.id": "gpu-7:1:1600000000000000000",
		"deployment.environment.name": "test", "rack": int64(7), "k8s.pod.name": "from config",
	}, metrics.ResourceMetrics().At(1).Resource().Attributes().AsRaw())
	scope := metrics.ResourceMetrics().At(0).ScopeMetrics().At(0)
	assert.Equal(t, "github.com/otelcol-fpm/otelcol-fpm/receiver/metriceventreceiver", scope.Scope().Name())
	assert.Equal(t, "v1", scope.Scope().Version())
	assert.Equal(t, 2, scope.Metrics().Len())
}

// What links the points of a series changes only with a batch that was
// delivered.
func TestOnlyDeliveredPointsLinkTheNext(t *testing.T) {
	b := newBench(t)
	say := func(at pcommon.Timestamp) pmetric.NumberDataPoint {
		b.now = at
		b.add(1, "c", operationInc, intNumber(1), 1, int64(at))
		return only(t, b.batch.metrics(b.now)).Sum().DataPoints().At(0)
	}
	say(testNow)
	b.batch.end(false)
	second := say(testNow + sec)
	assert.Equal(t, testNow+sec-ms, second.StartTimestamp(), "nothing came before")
	b.batch.end(true)
	third := say(testNow + 2*sec)
	assert.Equal(t, second.Timestamp(), third.StartTimestamp())
	b.batch.end(false)
	fourth := say(testNow + 3*sec)
	assert.Equal(t, second.Timestamp(), fourth.StartTimestamp())
}
