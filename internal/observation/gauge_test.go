// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observation

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const second = time.Second

func TestGaugeRules(t *testing.T) {
	refresh := Refresh{Interval: second}
	three := Gauge{last: Int(3), emitted: 10 * second}
	tests := []struct {
		name    string
		refresh Refresh
		state   Gauge
		value   Number
		now     time.Duration
		want    Decision
	}{
		{"absent", refresh, Gauge{}, Int(3), 0, First},
		{"differs", refresh, three, Int(4), 10 * second, Changed},
		{"same, one nanosecond too early", refresh, three, Int(3), 10*second + 999_999_999, Suppressed},
		{"same, exactly one second", refresh, three, Int(3), 10*second + 1_000_000_000, Refreshed},
		{"same, long after", refresh, three, Int(3), 1000 * second, Refreshed},
		{"differs, long after", refresh, three, Int(4), 1000 * second, Changed},
		{"refresh disabled", Refresh{}, three, Int(3), 1000 * second, Suppressed},
		{"refresh disabled, differs", Refresh{}, three, Int(4), 1000 * second, Changed},
		{"tolerance, too early", Refresh{second, second / 10}, three, Int(3), 10*second + 899_999_999, Suppressed},
		{"tolerance", Refresh{second, second / 10}, three, Int(3), 10*second + 900_000_000, Refreshed},
		{"owed", refresh, three.Owed(), Int(3), 10 * second, Refreshed},
		{"owed, refresh disabled", Refresh{}, three.Owed(), Int(3), 10 * second, Refreshed},
		{"owed, differs", refresh, three.Owed(), Int(4), 10 * second, Changed},
		{"absent owes nothing", refresh, Gauge{}.Owed(), Int(3), 0, First},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			decision, next := tt.refresh.Judge(tt.state, tt.value, tt.now)
			require.Equal(t, tt.want, decision)
			if decision == Suppressed {
				require.Equal(t, tt.state, next)
			} else {
				require.Equal(t, Gauge{last: tt.value, emitted: tt.now}, next)
			}
		})
	}
}

func TestSuppressedChangesNothing(t *testing.T) {
	refresh := Refresh{Interval: second}
	_, state := refresh.Judge(Gauge{}, Int(1), 0)
	for now := time.Duration(0); now < second; now += time.Millisecond {
		decision, next := refresh.Judge(state, Int(1), now)
		require.Equal(t, Suppressed, decision)
		state = next
	}
	decision, _ := refresh.Judge(state, Int(1), second)
	require.Equal(t, Refreshed, decision, "repeats do not postpone the refresh")
}

// assignment is one line of the model: what was assigned when, and whether it was emitted.
type assignment struct {
	value   any // int64 or float64
	now     time.Duration
	emitted bool
}

// equalValues compares as real numbers, without the canonical form.
func equalValues(a, b any) bool {
	real := func(v any) (*big.Float, float64) {
		switch v := v.(type) {
		case int64:
			return new(big.Float).SetPrec(200).SetInt64(v), 0
		case float64:
			if math.IsNaN(v) {
				return nil, v
			}
			return new(big.Float).SetPrec(200).SetFloat64(v), 0
		}
		panic("no number")
	}
	x, _ := real(a)
	y, _ := real(b)
	if x == nil || y == nil {
		return x == nil && y == nil
	}
	return x.Cmp(y) == 0
}

func number(v any) Number {
	if i, ok := v.(int64); ok {
		return Int(i)
	}
	return Double(v.(float64))
}

var oddValues = []any{
	int64(0), 0.0, math.Copysign(0, -1), int64(3), 3.0, 3.5, math.NaN(), math.Float64frombits(0x7ff8000000000123),
	math.Inf(1), math.Inf(-1), int64(1) << 53, int64(1)<<53 + 1, float64(1 << 53), int64(math.MaxInt64), float64(1 << 63),
	int64(math.MinInt64), -float64(1 << 63), 5e-324, -2.5, 1e300,
}

func TestGaugeAgainstReplay(t *testing.T) {
	rounds(t, 200, func(t *testing.T, r *rand.Rand) {
		refresh := Refresh{Interval: pick(r, 0, second, 3*time.Millisecond), Tolerance: pick(r, 0, time.Millisecond)}
		if refresh.Interval == 0 {
			refresh.Tolerance = 0
		}
		values := []any{pick(r, oddValues...), pick(r, oddValues...), pick(r, oddValues...)}
		var all []assignment
		var state Gauge
		now := time.Duration(r.Int64N(int64(time.Hour)))
		for range 200 {
			now += pick(r, 0, 1, time.Millisecond, refresh.Interval, refresh.Interval-1, refresh.Interval/2, second)
			value := pick(r, values...)

			// The model: find the last emission in the list of all assignments.
			want := First
			for _, a := range all {
				if !a.emitted {
					continue
				}
				switch {
				case !equalValues(a.value, value):
					want = Changed
				case refresh.Interval > 0 && now-a.now >= refresh.Interval-refresh.Tolerance:
					want = Refreshed
				default:
					want = Suppressed
				}
			}
			decision, next := refresh.Judge(state, number(value), now)
			require.Equal(t, want, decision, "%v at %v after %v", value, now, all)
			state = next
			all = append(all, assignment{value, now, want != Suppressed})
		}
	})
}

func TestCanonicalNumber(t *testing.T) {
	values := append([]any{}, oddValues...)
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		i := r.Int64() - r.Int64()
		values = append(values, i, float64(i), math.Float64frombits(r.Uint64()), float64(r.IntN(100)), int64(r.IntN(100)))
	}
	for _, a := range values {
		for _, b := range values {
			require.Equal(t, equalValues(a, b), number(a) == number(b), "%v (%T) and %v (%T)", a, a, b, b)
		}
		require.NotEqual(t, Number{}, number(a), "%v", a)
	}
}
