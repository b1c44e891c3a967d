// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observation

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lightstep/go-expohisto/structure"
	"github.com/stretchr/testify/require"
)

func TestExponentialCheck(t *testing.T) {
	good := func() *ExponentialPoint {
		return &ExponentialPoint{
			Distribution: Distribution{Time: 1, Count: 4, Sum: 4, HasSum: true},
			ZeroCount:    1, Positive: Buckets{Offset: -1, Counts: []uint64{0, 2}}, Negative: Buckets{Offset: 5, Counts: []uint64{1}},
		}
	}
	tests := []struct {
		name   string
		change func(*ExponentialPoint)
		want   Reason
	}{
		{"good", func(*ExponentialPoint) {}, ""},
		{"largest double at scale 0", func(p *ExponentialPoint) { p.Positive.Offset = 1022 }, ""},
		{"beyond the largest double at scale 0", func(p *ExponentialPoint) { p.Positive.Offset = 1023 }, BadBuckets},
		{"smallest double at scale 0", func(p *ExponentialPoint) { p.Negative.Offset = -1075 }, ""},
		{"far below the smallest double", func(p *ExponentialPoint) { p.Negative.Offset = -1100 }, BadBuckets},
		{"far out without a count", func(p *ExponentialPoint) {
			p.Positive = Buckets{Offset: math.MaxInt32 - 1, Counts: []uint64{0, 0, 0}}
			p.ZeroCount += 2
		}, ""},
		{"an index that is no int32", func(p *ExponentialPoint) {
			p.Scale = 40
			p.Positive = Buckets{Offset: math.MaxInt32, Counts: []uint64{1, 1}}
		}, BadBuckets},
		{"finer than the finest scale", func(p *ExponentialPoint) { p.Scale = 100 }, ""},
		{"lowest scale", func(p *ExponentialPoint) { p.Scale = -4 }, ""},
		{"below the lowest scale", func(p *ExponentialPoint) { p.Scale = -5 }, ScaleTooLow},
		{"only zeros below the lowest scale", func(p *ExponentialPoint) {
			*p = ExponentialPoint{Distribution: Distribution{Time: 1, Count: 1}, Scale: math.MinInt32, ZeroCount: 1}
		}, ""},
		{"count differs", func(p *ExponentialPoint) { p.Count = 5 }, BadBuckets},
		{"counts overflow", func(p *ExponentialPoint) { p.ZeroCount, p.Count = math.MaxUint64, 2 }, BadBuckets},
		{"NaN threshold", func(p *ExponentialPoint) { p.ZeroThreshold = math.NaN() }, BadBuckets},
		{"negative threshold", func(p *ExponentialPoint) { p.ZeroThreshold = -1 }, BadBuckets},
		{"infinite sum", func(p *ExponentialPoint) { p.Sum = math.Inf(1) }, NotFinite},
		{"no time", func(p *ExponentialPoint) { p.Time = 0 }, BadTime},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := good()
			tt.change(p)
			r := p.Check()
			if tt.want == "" {
				require.Nil(t, r)
				e := NewExponential(160)
				e.Begin(p)
				e.Fold(p)
				checkFilled(t, e.Close())
				return
			}
			require.Equal(t, tt.want, r.Reason, "%v", r)
		})
	}
}

// checkFilled checks what holds for each outgoing point.
func checkFilled(t *testing.T, out ExponentialPoint) {
	sum, overflow := addCounts(out.ZeroCount, false, out.Positive.Counts)
	sum, overflow = addCounts(sum, overflow, out.Negative.Counts)
	require.False(t, overflow)
	require.Equal(t, out.Count, sum, "the buckets add up to the count")
	require.Nil(t, out.Check())
	for _, b := range []Buckets{out.Positive, out.Negative} {
		if n := len(b.Counts); n > 0 {
			require.NotZero(t, b.Counts[0])
			require.NotZero(t, b.Counts[n-1])
		}
	}
}

// TestExponentialAgainstLibrary adds weighted observations one by one, and as single updates of go-expohisto.
func TestExponentialAgainstLibrary(t *testing.T) {
	rounds(t, 200, func(t *testing.T, r *rand.Rand) {
		maxSize := pick(r, 160, 20, 132, 500)
		e := NewExponential(maxSize)
		var library structure.Float64
		library.Init(structure.NewConfig(structure.WithMaxSize(int32(maxSize))))
		var all []observed
		spread := pick(r, 1, 10, 300)
		for i := range 100 {
			value := math.Exp2((r.Float64() - 0.5) * float64(spread))
			switch r.IntN(10) {
			case 0:
				value = 0
			case 1:
				value = -value
			}
			o := observed{value, 1 + r.Uint64N(1000)}
			all = append(all, o)
			library.UpdateByIncr(o.value, o.weight)
			p, rejection := WeightedExponential(o.value, o.weight)
			require.Nil(t, rejection)
			p.Time = UnixNano(i + 1)
			require.Nil(t, p.Check())
			if i == 0 {
				e.Begin(&p)
			}
			require.Empty(t, e.Conflict(&p))
			e.Fold(&p)
		}
		_, _, _, _, negative, _ := replayObservations(all, nil)
		out := e.Close()
		checkFilled(t, out)
		checkDistribution(t, all, negative, out.Distribution)
		require.Equal(t, library.ZeroCount(), out.ZeroCount)
		if maxSize >= 132 {
			require.Equal(t, library.Scale(), out.Scale)
			require.Equal(t, bucketsOf(library.Positive()), nonNil(out.Positive))
			require.Equal(t, bucketsOf(library.Negative()), nonNil(out.Negative))
		}
	})
}

func nonNil(b Buckets) Buckets {
	return Buckets{Offset: b.Offset, Counts: append([]uint64{}, b.Counts...)}
}

// bucketed is one line of the model: a count at an index of a scale.
type bucketed struct {
	scale int32
	index int64
	count uint64
}

// TestScaleOnlyFalls holds sums of arbitrary buckets against the list of all buckets ever added.
func TestScaleOnlyFalls(t *testing.T) {
	rounds(t, 300, func(t *testing.T, r *rand.Rand) {
		maxSize := pick(r, 2, 20, 160)
		e := NewExponential(maxSize)
		var positive, negative []bucketed
		saved := NewExponential(maxSize)
		scale := MaxScale
		for i := range 30 {
			saved.CopyFrom(&e)
			savedPositive, savedNegative := len(positive), len(negative)
			var p ExponentialPoint
			p.Time, p.Scale = UnixNano(i+1), int32(r.IntN(26))-4
			p.ZeroCount = r.Uint64N(3)
			p.Positive = randomBuckets(r, p.Scale, &positive)
			if r.IntN(2) == 0 {
				p.Negative = randomBuckets(r, p.Scale, &negative)
			}
			p.Count, _ = addCounts(p.ZeroCount, false, p.Positive.Counts)
			p.Count, _ = addCounts(p.Count, false, p.Negative.Counts)
			require.Nil(t, p.Check())
			if i == 0 {
				e.Begin(&p)
			}
			e.Fold(&p)
			if r.IntN(4) == 0 { // the batch has not happened
				e.CopyFrom(&saved)
				positive, negative = positive[:savedPositive], negative[:savedNegative]
				continue
			}
			out := e.Close()
			checkFilled(t, out)
			require.LessOrEqual(t, out.Scale, scale)
			require.GreaterOrEqual(t, out.Scale, MinScale)
			require.Equal(t, replayScale(positive, negative, maxSize), out.Scale)
			require.Equal(t, replayBuckets(positive, out.Scale), bucketMap(out.Positive))
			require.Equal(t, replayBuckets(negative, out.Scale), bucketMap(out.Negative))
			scale = out.Scale
		}
	})
}

func randomBuckets(r *rand.Rand, scale int32, list *[]bucketed) Buckets {
	b := Buckets{Offset: int32(math.Exp2(float64(scale)) * float64(r.IntN(20)-10))}
	for i := range r.IntN(8) {
		count := pick(r, 0, 0, 1, r.Uint64N(100))
		b.Counts = append(b.Counts, count)
		if count > 0 {
			*list = append(*list, bucketed{scale, int64(b.Offset) + int64(i), count})
		}
	}
	return b
}

// replayScale finds the scale by trying all of them.
func replayScale(positive, negative []bucketed, maxSize int) int32 {
	scale := MaxScale
	for _, b := range append(append([]bucketed{}, positive...), negative...) {
		scale = min(scale, b.scale)
	}
	for scale > MinScale && (replaySize(positive, scale) > maxSize || replaySize(negative, scale) > maxSize) {
		scale--
	}
	return scale
}

func replaySize(all []bucketed, scale int32) int {
	lowest, highest := math.MaxInt, math.MinInt
	for index := range replayBuckets(all, scale) {
		lowest, highest = min(lowest, int(index)), max(highest, int(index))
	}
	if highest < lowest {
		return 0
	}
	return highest - lowest + 1
}

// replayBuckets puts each bucket where the logarithm of its middle lies at the scale.
func replayBuckets(all []bucketed, scale int32) map[int64]uint64 {
	buckets := map[int64]uint64{}
	for _, b := range all {
		middle := (float64(b.index) + 0.5) * math.Exp2(float64(-b.scale))
		buckets[int64(math.Floor(middle*math.Exp2(float64(scale))))] += b.count
	}
	return buckets
}

func bucketMap(b Buckets) map[int64]uint64 {
	buckets := map[int64]uint64{}
	for i, count := range b.Counts {
		if count > 0 {
			buckets[int64(b.Offset)+int64(i)] = count
		}
	}
	return buckets
}

// FuzzExponential feeds two points of any content; whatever passes Check must add up.
func FuzzExponential(f *testing.F) {
	f.Add(int32(20), int32(613377), []byte{1}, int32(0), int32(1), []byte{0, 1, 2}, uint16(160))
	f.Add(int32(100), int32(math.MaxInt32), []byte{1, 1}, int32(-4), int32(-68), []byte{1}, uint16(2))
	f.Add(int32(math.MinInt32), int32(math.MinInt32), []byte{1, 1}, int32(math.MaxInt32), int32(math.MinInt32), []byte{1}, uint16(2))
	f.Fuzz(func(t *testing.T, scaleA, offsetA int32, countsA []byte, scaleB, offsetB int32, countsB []byte, maxSize uint16) {
		e := NewExponential(2 + int(maxSize)%1000)
		begun := false
		want := uint64(0)
		for i, p := range []ExponentialPoint{fuzzPoint(scaleA, offsetA, countsA), fuzzPoint(scaleB, offsetB, countsB)} {
			p.Time = UnixNano(i + 1)
			if p.Check() != nil {
				continue
			}
			if !begun {
				e.Begin(&p)
				begun = true
			}
			e.Fold(&p)
			want += p.Count
		}
		if begun {
			out := e.Close()
			require.Equal(t, want, out.Count)
			checkFilled(t, out)
			require.LessOrEqual(t, len(out.Positive.Counts), max(132, 2+int(maxSize)%1000))
		}
	})
}

func fuzzPoint(scale, offset int32, counts []byte) (p ExponentialPoint) {
	p.Scale, p.Positive.Offset = scale, offset
	for _, c := range counts {
		p.Positive.Counts = append(p.Positive.Counts, uint64(c))
		p.Count += uint64(c)
	}
	return p
}
