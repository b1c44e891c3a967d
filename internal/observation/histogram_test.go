// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observation

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWeightedHistogram(t *testing.T) {
	bounds := []float64{0.005, 0.01, 0.02}
	tests := []struct {
		name    string
		value   float64
		weight  uint64
		buckets []uint64
		sum     float64
	}{
		{"weight multiplies the count, never the value", 0.01, 3, []uint64{0, 3, 0, 0}, 0.03},
		{"the upper bound is inclusive", 0.005, 1, []uint64{1, 0, 0, 0}, 0.005},
		{"just above a bound", math.Nextafter(0.005, 1), 1, []uint64{0, 1, 0, 0}, 0.005},
		{"beyond all bounds", 5, 2, []uint64{0, 0, 0, 2}, 10},
		{"negative zero is zero", math.Copysign(0, -1), 2, []uint64{2, 0, 0, 0}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, r := WeightedHistogram(tt.value, tt.weight, bounds)
			require.Nil(t, r)
			require.Equal(t, tt.buckets, p.Buckets)
			require.Equal(t, tt.weight, p.Count)
			require.InDelta(t, tt.sum, p.Sum, 1e-15)
			require.True(t, p.HasSum && p.HasMin && p.HasMax)
			require.Equal(t, tt.value, p.Min)
			require.Equal(t, tt.value, p.Max)
			p.Time = 1
			require.Nil(t, p.Check())
		})
	}
	negative, r := WeightedHistogram(-0.5, 2, bounds)
	require.Nil(t, r)
	require.False(t, negative.HasSum)
	require.Equal(t, []uint64{2, 0, 0, 0}, negative.Buckets)
	for _, value := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		_, r := WeightedHistogram(value, 1, bounds)
		require.Equal(t, NotFinite, r.Reason)
		_, r = WeightedExponential(value, 1)
		require.Equal(t, NotFinite, r.Reason)
	}
	_, r = WeightedHistogram(1e308, 3, bounds)
	require.Equal(t, NotFinite, r.Reason, "value × weight overflows")
}

func TestHistogramCheck(t *testing.T) {
	good := func() *HistogramPoint {
		return &HistogramPoint{
			Distribution: Distribution{Time: 1, Count: 3, Sum: 0.5, HasSum: true},
			Bounds:       []float64{1, 2}, Buckets: []uint64{1, 2, 0},
		}
	}
	tests := []struct {
		name   string
		change func(*HistogramPoint)
		want   Reason
	}{
		{"good", func(*HistogramPoint) {}, ""},
		{"no buckets", func(p *HistogramPoint) { p.Bounds, p.Buckets = nil, nil }, ""},
		{"one bucket", func(p *HistogramPoint) { p.Bounds, p.Buckets = nil, []uint64{3} }, ""},
		{"no sum", func(p *HistogramPoint) { p.HasSum, p.Sum = false, math.NaN() }, ""},
		{"infinite bound", func(p *HistogramPoint) { p.Bounds[1] = math.Inf(1) }, ""},
		{"too few buckets", func(p *HistogramPoint) { p.Buckets = p.Buckets[:2] }, BadBuckets},
		{"bounds alone", func(p *HistogramPoint) { p.Buckets = nil }, BadBuckets},
		{"count differs", func(p *HistogramPoint) { p.Count = 4 }, BadBuckets},
		{"counts overflow", func(p *HistogramPoint) { p.Buckets = []uint64{math.MaxUint64, 4, 0} }, BadBuckets},
		{"a sum of nothing", func(p *HistogramPoint) { p.Count, p.Buckets = 0, []uint64{0, 0, 0} }, BadBuckets},
		{"falling bounds", func(p *HistogramPoint) { p.Bounds = []float64{2, 1} }, BadBounds},
		{"equal bounds", func(p *HistogramPoint) { p.Bounds = []float64{1, 1} }, BadBounds},
		{"NaN bound", func(p *HistogramPoint) { p.Bounds[0] = math.NaN() }, BadBounds},
		{"NaN sum", func(p *HistogramPoint) { p.Sum = math.NaN() }, NotFinite},
		{"infinite minimum", func(p *HistogramPoint) { p.Min, p.HasMin = math.Inf(-1), true }, NotFinite},
		{"NaN maximum", func(p *HistogramPoint) { p.Max, p.HasMax = math.NaN(), true }, NotFinite},
		{"no time", func(p *HistogramPoint) { p.Time = 0 }, BadTime},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := good()
			tt.change(p)
			r := p.Check()
			if tt.want == "" {
				require.Nil(t, r)
				return
			}
			require.Equal(t, tt.want, r.Reason, "%v", r)
		})
	}
}

// observed is one line of the model: a value and how often it was observed.
type observed struct {
	value  float64
	weight uint64
}

// replayObservations gives count, exact sum, minimum and maximum of a list, and its buckets.
func replayObservations(all []observed, bounds []float64) (count uint64, sum, lowest, highest float64, negative bool, buckets []uint64) {
	exact := new(big.Float).SetPrec(2000)
	buckets = make([]uint64, len(bounds)+1)
	for i, o := range all {
		count += o.weight
		product := new(big.Float).SetPrec(2000).SetFloat64(o.value)
		exact.Add(exact, product.Mul(product, new(big.Float).SetUint64(o.weight)))
		if i == 0 {
			lowest, highest = o.value, o.value
		}
		lowest, highest = math.Min(lowest, o.value), math.Max(highest, o.value)
		negative = negative || o.value < 0
		bucket := 0
		for bucket < len(bounds) && o.value > bounds[bucket] {
			bucket++
		}
		buckets[bucket] += o.weight
	}
	sum, _ = exact.Float64()
	return count, sum, lowest, highest, negative, buckets
}

func checkDistribution(t *testing.T, all []observed, everNegative bool, out Distribution) {
	count, sum, lowest, highest, _, _ := replayObservations(all, nil)
	require.Equal(t, count, out.Count)
	require.Equal(t, !everNegative, out.HasSum)
	if out.HasSum {
		require.InDelta(t, sum, out.Sum, 1e-12*sum)
	}
	require.Equal(t, count > 0, out.HasMin && out.HasMax)
	if count > 0 {
		require.Equal(t, []float64{lowest, highest}, []float64{out.Min, out.Max})
	}
}

// TestNeverRebinned holds a histogram against the list of all observations since its series began.
func TestNeverRebinned(t *testing.T) {
	rounds(t, 200, func(t *testing.T, r *rand.Rand) {
		layouts := [][]float64{{0.005, 0.01, 0.02}, {0.01}, {}, {-1, 0, 1}}
		bounds := pick(r, layouts...)
		values := []float64{0.01, 0.005, 1e-9, 0, 0.3, r.Float64(), 1e6}
		if r.IntN(3) == 0 {
			values = append(values, -0.5)
		}
		delta := r.IntN(2) == 0
		var h, saved Histogram
		var since []observed
		ever, begun := false, false // there was a negative one in this series; there is a series
		for batch := range 40 {
			saved.CopyFrom(&h)
			savedSince, savedEver, savedBegun, savedBounds := append(since[:0:0], since...), ever, begun, bounds
			if delta && begun {
				h.Resume()
				since = nil
			}
			for range 1 + r.IntN(4) {
				if r.IntN(15) == 0 {
					bounds = pick(r, layouts...)
				}
				o := observed{pick(r, values...), pick(r, 1, 3, r.Uint64N(1000), 1<<40)}
				p := weightedPoint(t, o, bounds, batch)
				if !begun {
					h.Begin(&p)
					begun, since, ever = true, nil, false
				}
				if why := h.Conflict(&p); why != "" {
					require.Equal(t, BoundsChanged, why)
					h.Begin(&p)
					since, ever = nil, false
				}
				h.Fold(&p)
				since = append(since, o)
				ever = ever || o.value < 0 && o.weight > 0
			}
			if r.IntN(4) == 0 { // the batch has not happened
				h.CopyFrom(&saved)
				since, ever, begun, bounds = savedSince, savedEver, savedBegun, savedBounds
				continue
			}
			out := h.Close()
			checkDistribution(t, weighty(since), ever, out.Distribution)
			_, _, _, _, _, buckets := replayObservations(since, bounds)
			require.Equal(t, buckets, out.Buckets)
		}
	})
}

// weighty leaves out what was observed 0 times.
func weighty(all []observed) (some []observed) {
	for _, o := range all {
		if o.weight > 0 {
			some = append(some, o)
		}
	}
	return some
}

func weightedPoint(t *testing.T, o observed, bounds []float64, batch int) HistogramPoint {
	p, r := WeightedHistogram(o.value, o.weight, bounds)
	require.Nil(t, r)
	if o.weight == 0 {
		p.HasMin, p.HasMax = false, false
	}
	p.Time = UnixNano(batch + 10)
	require.Nil(t, p.Check())
	return p
}

func TestHistogramOverflow(t *testing.T) {
	p := HistogramPoint{Distribution: Distribution{Start: 1, Time: 2, Count: math.MaxUint64, Sum: 1, HasSum: true}}
	var h Histogram
	h.Begin(&p)
	require.Empty(t, h.Conflict(&p))
	h.Fold(&p)
	require.Equal(t, Overflow, h.Conflict(&p))
	p.Count, p.Sum = 0, 0
	require.Empty(t, h.Conflict(&p))

	h = Histogram{}
	p.Count, p.Sum = 1, math.MaxFloat64
	h.Begin(&p)
	h.Fold(&p)
	require.Equal(t, Overflow, h.Conflict(&p))
}

func TestOneBucketIsNotNone(t *testing.T) {
	var h Histogram
	p := HistogramPoint{Distribution: Distribution{Time: 1, Count: 1}}
	h.Begin(&p)
	h.Fold(&p)
	p.Buckets = []uint64{1}
	require.Equal(t, BoundsChanged, h.Conflict(&p))
	h.Begin(&p)
	h.Fold(&p)
	p.Buckets = nil
	require.Equal(t, BoundsChanged, h.Conflict(&p))
}

func TestSumOnlyOfNonNegative(t *testing.T) {
	var h Histogram
	at := func(value float64, bounds ...float64) Distribution {
		p := weightedPoint(t, observed{value, 1}, bounds, 0)
		if h.Conflict(&p) != "" {
			h.Begin(&p)
		}
		h.Fold(&p)
		return h.Close().Distribution
	}
	require.True(t, at(1, 5).HasSum)
	require.False(t, at(-1, 5).HasSum)
	require.False(t, at(1, 5).HasSum, "never again in this series")
	h.Resume()
	require.False(t, at(1, 5).HasSum, "also not in its next delta point")
	require.True(t, at(1, 6).HasSum, "but in the series that begins anew")
}

func TestBounds(t *testing.T) {
	require.True(t, Bounds{}.Equal(nil))
	require.True(t, MakeBounds(nil).Equal([]float64{}))
	list := []float64{-1, 0, 0.25, math.Inf(1)}
	b := MakeBounds(list)
	require.Equal(t, MakeBounds(append([]float64{}, list...)), b, "kept once")
	require.True(t, b.Equal(list))
	list[1] = 0.125
	require.False(t, b.Equal(list), "the list stays the caller's")
	require.False(t, b.Equal(list[:3]))
	require.False(t, b.Equal(nil))
}
