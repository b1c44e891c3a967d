// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// total is what a series adds up to, the slow and exact way.
type total struct {
	count, inBuckets uint64
	sum              *big.Float
	noSum            bool
	min, max         float64
	buckets          []uint64
	increments       *big.Int
	assigned         []float64
}

// seriesKey is a series: its producer, its metric, and its label l, or what the
// test takes for it.
type seriesKey struct{ pid, metric, label string }

type model map[seriesKey]*total

func (m model) of(pid, metric, label string) *total {
	key := seriesKey{pid, metric, label}
	if m[key] == nil {
		m[key] = &total{
			sum: new(big.Float).SetPrec(2200), increments: new(big.Int),
			min: math.Inf(1), max: math.Inf(-1),
		}
	}
	return m[key]
}

func (n *total) observe(value float64, weight uint64, bounds []float64) {
	n.count += weight
	n.inBuckets += weight
	product := new(big.Float).SetPrec(2200).SetFloat64(value)
	n.sum.Add(n.sum, product.Mul(product, new(big.Float).SetUint64(weight)))
	n.noSum = n.noSum || value < 0
	n.min, n.max = min(n.min, value), max(n.max, value)
	bucket := 0
	for bucket < len(bounds) && value > bounds[bucket] {
		bucket++
	}
	n.fill(bucket, weight)
}

func (n *total) fill(bucket int, count uint64) {
	for len(n.buckets) <= bucket {
		n.buckets = append(n.buckets, 0)
	}
	n.buckets[bucket] += count
}

// reading adds points up, and holds their times to what they promise.
type reading struct {
	t      *testing.T
	totals model
	last   map[*total]pcommon.Timestamp
	label  func(pcommon.Map) string
}

func newReading(t *testing.T) *reading {
	return &reading{t: t, totals: model{}, last: map[*total]pcommon.Timestamp{}, label: func(attributes pcommon.Map) string {
		label, _ := attributes.Get("l")
		return label.Str()
	}}
}

func (r *reading) take(metrics pmetric.Metrics) {
	for _, resource := range metrics.ResourceMetrics().All() {
		instance, _ := resource.Resource().Attributes().Get(attrServiceInstanceID)
		pid := strings.Split(instance.Str(), ":")[1]
		for _, scope := range resource.ScopeMetrics().All() {
			for _, m := range scope.Metrics().All() {
				r.metric(pid, m)
			}
		}
	}
}

func (r *reading) metric(pid string, m pmetric.Metric) {
	of := func(attributes pcommon.Map) *total {
		return r.totals.of(pid, m.Name(), r.label(attributes))
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			n := of(p.Attributes())
			require.Greater(r.t, p.Timestamp(), r.last[n])
			r.last[n] = p.Timestamp()
			n.assigned = append(n.assigned, p.DoubleValue())
		}
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			n := of(p.Attributes())
			r.follows(n, p.StartTimestamp(), p.Timestamp())
			n.increments.Add(n.increments, big.NewInt(p.IntValue()))
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			n := of(p.Attributes())
			r.follows(n, p.StartTimestamp(), p.Timestamp())
			n.distribution(p)
			for i, count := range p.BucketCounts().All() {
				n.fill(i, count)
				n.inBuckets += count
			}
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			n := of(p.Attributes())
			r.follows(n, p.StartTimestamp(), p.Timestamp())
			n.distribution(p)
			n.inBuckets += p.ZeroCount()
			for _, side := range []pmetric.ExponentialHistogramDataPointBuckets{p.Positive(), p.Negative()} {
				for _, count := range side.BucketCounts().All() {
					n.inBuckets += count
				}
			}
		}
	}
}

// follows holds a delta point to the one before.
func (r *reading) follows(n *total, start, at pcommon.Timestamp) {
	if last, ok := r.last[n]; ok {
		require.Equal(r.t, last, start, "a hole between two points, or an overlap")
	}
	require.Greater(r.t, at, start)
	r.last[n] = at
}

type distributionRead interface {
	Count() uint64
	Sum() float64
	HasSum() bool
	Min() float64
	Max() float64
}

func (n *total) distribution(p distributionRead) {
	n.count += p.Count()
	n.sum.Add(n.sum, new(big.Float).SetFloat64(p.Sum()))
	n.noSum = n.noSum || !p.HasSum()
	n.min, n.max = min(n.min, p.Min()), max(n.max, p.Max())
}

// assertModel compares what came out with what went in.
func assertModel(t *testing.T, want, got model) {
	t.Helper()
	require.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
	for key, want := range want {
		got := got[key]
		assert.Equal(t, want.count, got.count, "%v: total weight in is total count out", "%v", key)
		assert.Equal(t, want.inBuckets, got.inBuckets, "%v: buckets", "%v", key)
		assert.Equal(t, want.min, got.min, "%v", key)
		assert.Equal(t, want.max, got.max, "%v", key)
		assert.Zero(t, want.increments.Cmp(got.increments), "%v: increments %s, %s", key, want.increments, got.increments)
		assert.Equal(t, want.assigned, got.assigned, "%v", key)
		assert.Equal(t, want.noSum, got.noSum, "%v", key)
		if !want.noSum && want.sum.Sign() != 0 {
			ratio, _ := new(big.Float).Quo(got.sum, want.sum).Float64()
			assert.InDelta(t, 1, ratio, 1e-12, "%v: sum", "%v", key)
		}
		if key.metric == "explicit" {
			assert.Equal(t, want.buckets, got.buckets[:len(want.buckets)], "%v: buckets", "%v", key)
		}
	}
}

// Events of all kinds, of several producers, in several batches, some of which
// are refused first.
func TestBatchKeepsTotals(t *testing.T) {
	bounds := []float64{-1, 0, 0.01, 0.1, 1, 100}
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 9))
		b := newBench(t, CatalogConfig{Metric: "explicit", Bounds: bounds})
		want, got := model{}, newReading(t)
		for range 1 + random.IntN(5) {
			for range random.IntN(300) {
				pid, label := 1+random.IntN(3), fmt.Sprint(random.IntN(4))
				of := func(metric string) *total { return want.of(fmt.Sprint(pid), metric, label) }
				timestamp := int64(b.now) - random.Int64N(int64(time.Second)) + int64(100*ms)
				value := math.Exp(random.NormFloat64() * 3)
				if random.IntN(40) == 0 {
					value = -value
				}
				weight := 1 + random.Uint64N(1<<random.IntN(32))
				switch random.IntN(4) {
				case 0:
					b.add(pid, "explicit", operationObserve, floatNumber(value), weight, timestamp, "l", label)
					of("explicit").observe(value, weight, bounds)
				case 1:
					b.add(pid, "exponential", operationObserve, floatNumber(value), weight, timestamp, "l", label)
					of("exponential").observe(value, weight, nil)
				case 2:
					increment := random.Int64N(1 << 62) // overflows an int now and then
					b.add(pid, "counter", operationInc, intNumber(increment), 1, timestamp, "l", label)
					of("counter").increments.Add(of("counter").increments, big.NewInt(increment))
				case 3:
					b.add(pid, "gauge", operationSet, floatNumber(value), 1, timestamp, "l", label)
					of("gauge").assigned = append(of("gauge").assigned, value)
				}
			}
			for range random.IntN(3) {
				b.refuse()
				b.now += 50 * ms
			}
			got.take(b.deliver())
			b.now += pcommon.Timestamp(random.Int64N(int64(time.Second)))
		}
		assertModel(t, want, got.totals)
	}
}
