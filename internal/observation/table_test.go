// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observation

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// modelResource is what the model knows of one resource. The model looks at all of them each time.
type modelResource struct {
	series int
	pins   int
	seen   time.Duration
	known  bool // was seen
}

// TestBoundedTable holds the table against a map that is searched whole for whatever is asked.
func TestBoundedTable(t *testing.T) {
	rounds(t, 300, func(t *testing.T, r *rand.Rand) {
		const ttl = 10 * time.Second
		maxSeries := pick(r, 1, 5, 1000)
		table := NewTable[int](maxSeries, ttl)
		model := map[Key]*modelResource{}
		pinned := map[Key]*Resource[int]{}
		total := func() (n int) {
			for _, m := range model {
				n += m.series
			}
			return n
		}
		now := time.Duration(0)
		for range 300 {
			now += pick(r, 0, time.Nanosecond, time.Second, ttl-1, ttl)
			key := Key{Hi: uint64(r.IntN(6))}
			p, isPinned := pinned[key]
			switch op := r.IntN(5); {
			case op == 0: // pin and see
				m := model[key]
				if m == nil {
					m = &modelResource{}
					model[key] = m
				}
				expired := 0
				if m.known && now-m.seen >= ttl {
					expired, m.series = m.series, 0
				}
				m.pins++
				m.seen, m.known = now, true
				res := table.Pin(key)
				require.Equal(t, expired, table.See(res, now))
				if isPinned {
					require.Same(t, p, res)
				}
				pinned[key] = res
			case op == 1 && isPinned:
				want := total() < maxSeries
				require.Equal(t, want, table.Reserve(p))
				if want {
					model[key].series++
				}
			case op == 2 && isPinned && model[key].series > 0:
				table.Release(p, 1)
				model[key].series--
			case op == 3 && isPinned:
				table.Unpin(p)
				m := model[key]
				m.pins--
				if m.pins == 0 {
					delete(pinned, key)
					if m.series == 0 {
						delete(model, key)
					}
				}
			case op == 4:
				want := 0
				for key, m := range model {
					if m.pins == 0 && now-m.seen >= ttl {
						want += m.series
						delete(model, key)
					}
				}
				require.Equal(t, want, table.Evict(now))
			}
			require.Equal(t, total(), table.Series())
			require.LessOrEqual(t, table.Series(), maxSeries)
			require.Len(t, model, table.Resources())
			for _, m := range model {
				require.True(t, m.pins > 0 || m.series > 0, "no resource without a use")
			}
		}
	})
}

func TestResourceKeepsItsState(t *testing.T) {
	table := NewTable[string](10, time.Minute)
	r := table.Pin(Key{1, 2})
	table.See(r, 0)
	require.True(t, table.Reserve(r))
	r.State = "kept"
	table.Unpin(r)
	require.Equal(t, "kept", table.Pin(Key{1, 2}).State)
	require.Empty(t, table.Pin(Key{2, 1}).State)
}

func TestKeyOrder(t *testing.T) {
	sorted := []Key{{0, 0}, {0, 1}, {1, 0}, {1, 1}}
	for i, a := range sorted {
		for j, b := range sorted {
			switch {
			case i < j:
				require.Negative(t, a.Compare(b))
			case i > j:
				require.Positive(t, a.Compare(b))
			default:
				require.Zero(t, a.Compare(b))
			}
		}
	}
}
