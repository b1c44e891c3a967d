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

func ints(v int64) *Increment { return &Increment{Start: 1, Time: 2, Int: v, HasValue: true} }
func doubles(v float64) *Increment {
	return &Increment{Start: 1, Time: 2, Double: v, IsDouble: true, HasValue: true}
}

func TestIncrementCheck(t *testing.T) {
	tests := []struct {
		name  string
		point *Increment
		want  Reason
	}{
		{"zero", ints(0), ""},
		{"largest", ints(math.MaxInt64), ""},
		{"double", doubles(0.5), ""},
		{"negative zero", doubles(math.Copysign(0, -1)), ""},
		{"negative", ints(-1), NegativeIncrement},
		{"negative double", doubles(-0.5), NegativeIncrement},
		{"NaN", doubles(math.NaN()), NotFinite},
		{"infinite", doubles(math.Inf(1)), NotFinite},
		{"minus infinite", doubles(math.Inf(-1)), NotFinite},
		{"no value", &Increment{Time: 2}, NoValue},
		{"no time", &Increment{HasValue: true}, BadTime},
		{"time beyond 2262", &Increment{HasValue: true, Time: math.MaxInt64 + 1}, BadTime},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := tt.point.Check()
			if tt.want == "" {
				require.Nil(t, r)
				return
			}
			require.Equal(t, tt.want, r.Reason)
			require.Contains(t, Reasons(), r.Reason)
			require.ErrorContains(t, r, "; allowed: ")
		})
	}
}

func TestIntStaysInt(t *testing.T) {
	var c Counter
	c.Begin(ints(5))
	c.Fold(ints(5))
	require.Equal(t, Increment{Start: 1, Time: 2, Int: 5, HasValue: true}, c.Close())
	c.Fold(doubles(0.5))
	require.Equal(t, 5.5, c.Close().Double)
	c.Fold(ints(2))
	out := c.Close()
	require.True(t, out.IsDouble)
	require.Equal(t, 7.5, out.Double)
}

// TestCounterAgainstReplay replays the list of all increments since the series began with exact arithmetic.
func TestCounterAgainstReplay(t *testing.T) {
	rounds(t, 200, func(t *testing.T, r *rand.Rand) {
		var c, saved Counter
		var since, savedSince []*Increment // all increments since the series began
		delta := r.IntN(2) == 0
		withDoubles := r.IntN(2) == 0
		restarts := 0
		for batch := range 50 {
			saved.CopyFrom(&c)
			savedSince = append(savedSince[:0:0], since...)
			if delta {
				c.Resume()
				since = nil
			}
			for range 1 + r.IntN(4) {
				i := ints(pick(r, 0, 1, r.Int64N(1000), r.Int64N(1000), math.MaxInt64/2))
				if withDoubles && r.IntN(3) == 0 {
					i = doubles(pick(r, 0, 0.1, 1e-9, r.Float64(), 1e15))
				}
				i.Time = UnixNano(batch + 10)
				if len(since) == 0 && batch == 0 {
					c.Begin(i)
				}
				if why := c.Conflict(i); why != "" {
					require.Equal(t, Overflow, why)
					exact, isInt := replayIncrements(append(since, i))
					require.True(t, isInt && !exact.IsInt64(), "only an overflow of ints")
					c.Begin(i)
					since = nil
					restarts++
				}
				c.Fold(i)
				since = append(since, i)
			}
			if r.IntN(4) == 0 { // the batch has not happened
				c.CopyFrom(&saved)
				since = savedSince
				if batch == 0 {
					since = nil
				}
				continue
			}
			checkIncrement(t, since, c.Close())
		}
		if !withDoubles && !delta {
			require.Positive(t, restarts, "the stream overflows")
		}
	})
}

func replayIncrements(all []*Increment) (exact *big.Int, isInt bool) {
	exact, isInt = new(big.Int), true
	for _, i := range all {
		exact.Add(exact, big.NewInt(i.Int))
		isInt = isInt && !i.IsDouble
	}
	return exact, isInt
}

func checkIncrement(t *testing.T, since []*Increment, out Increment) {
	exact, isInt := replayIncrements(since)
	require.Equal(t, isInt, !out.IsDouble)
	if isInt {
		require.Equal(t, exact.Int64(), out.Int)
		return
	}
	sum := new(big.Float).SetPrec(2000)
	for _, i := range since {
		sum.Add(sum, new(big.Float).SetInt64(i.Int))
		sum.Add(sum, new(big.Float).SetFloat64(i.Double))
	}
	want, _ := sum.Float64()
	require.InEpsilon(t, want+1, out.Double+1, 1e-12)
}

// TestSumIsExact adds what a plain sum would lose.
func TestSumIsExact(t *testing.T) {
	var sum Sum
	plain := 0.0
	sum.Add(1e9)
	plain += 1e9
	last := sum.Value()
	for range 1_000_000 {
		sum.Add(0.01)
		plain += 0.01
		if sum.Value() < last {
			t.Fatalf("adding what is not negative lowered the sum from %v to %v", last, sum.Value())
		}
		last = sum.Value()
	}
	require.InEpsilon(t, 1_000_010_000.0, sum.Value(), 1e-15)
	require.Greater(t, math.Abs(plain-1_000_010_000)/1_000_010_000, 1e-12, "the plain sum is off, or this test shows nothing")
}

// TestSumOfRisingValues loses the small value that came first, unless it is kept.
func TestSumOfRisingValues(t *testing.T) {
	var sum Sum
	for _, v := range []float64{1, 1e16, 1} {
		sum.Add(v)
	}
	require.Equal(t, 1e16+2, sum.Value())
}
