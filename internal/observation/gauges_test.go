// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observation

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestNoGapBeforeASeries holds the table against a map, with keys of equal homes, of homes at both ends, and many.
func TestNoGapBeforeASeries(t *testing.T) {
	keys := map[string]func(*rand.Rand) Key{
		"random":      func(r *rand.Rand) Key { return Key{r.Uint64() >> 57 << 57, r.Uint64N(4)} },
		"one home":    func(r *rand.Rand) Key { return Key{0x5555<<48 | r.Uint64N(8), r.Uint64N(8)} },
		"last homes":  func(r *rand.Rand) Key { return Key{math.MaxUint64 - r.Uint64N(4)<<58, r.Uint64N(10)} },
		"first homes": func(r *rand.Rand) Key { return Key{r.Uint64N(4) << 58, r.Uint64N(10)} },
		"many":        func(r *rand.Rand) Key { return Key{r.Uint64() >> 48 << 48, 0} },
	}
	for name, key := range keys {
		t.Run(name, func(t *testing.T) {
			rounds(t, 30, func(t *testing.T, r *rand.Rand) {
				var g Gauges
				model := map[Key]Gauge{}
				deletes := pick(r, 1, 5, 9) // of ten
				for i := range 500 {
					k := key(r)
					require.Equal(t, model[k], g.Get(k))
					if r.IntN(10) < deletes {
						g.Delete(k)
						delete(model, k)
					} else {
						state := Gauge{last: Int(int64(i)), emitted: time.Duration(i), owed: r.IntN(2) == 0}
						g.Put(k, state)
						model[k] = state
					}
					require.Equal(t, model[k], g.Get(k))
					requireNoGap(t, &g)
				}
				require.Equal(t, len(model), g.taken)
				for k, state := range model {
					require.Equal(t, state, g.Get(k))
				}
			})
		})
	}
}

func requireNoGap(t *testing.T, g *Gauges) {
	require.LessOrEqual(t, 8*g.taken, 7*len(g.slots))
	taken := 0
	for i := range g.slots {
		if g.slots[i].free() {
			continue
		}
		taken++
		for at := g.home(g.slots[i].key); at != i; at = g.after(at) {
			if g.slots[at].free() {
				t.Fatalf("slot %d is free, before slot %d of %v", at, i, g.slots[i].key)
			}
		}
	}
	require.Equal(t, g.taken, taken)
}

// TestGaugesGrow fills a table, which stays within twice the room it needs, and empties it again.
func TestGaugesGrow(t *testing.T) {
	const n = 100_000
	key := func(i int) Key { return Key{uint64(i) * 0x9e3779b97f4a7c15, uint64(i)} } // spread evenly
	var g Gauges
	for i := range n {
		g.Put(key(i), Gauge{last: Int(int64(i))})
		if len(g.slots) > leastGaugeSlots && 16*g.taken < 7*len(g.slots) {
			t.Fatalf("%d slots for %d series", len(g.slots), g.taken)
		}
	}
	room := len(g.slots)
	for i := range n {
		require.Equal(t, Gauge{last: Int(int64(i))}, g.Get(key(i)))
	}
	for i := range n {
		g.Put(key(i), Gauge{last: Int(-1)})
	}
	require.Len(t, g.slots, room, "known series need no more room")
	for i := range n {
		g.Delete(key(i))
		require.False(t, g.Get(key(i)).Known())
	}
	require.Zero(t, g.taken)
	requireNoGap(t, &g)
}

func TestEmptyGaugesAllocateNothing(t *testing.T) {
	var g Gauges
	require.Zero(t, testing.AllocsPerRun(10, func() {
		g.Delete(Key{})
		g.Touch([]Key{{}, {1, 2}})
		if g.Get(Key{}).Known() {
			t.Error("known")
		}
	}))
	g.Put(Key{}, Gauge{last: Int(0)})
	require.True(t, g.Get(Key{}).Known(), "a key of zero is one as all others")
	require.False(t, g.Get(Key{0, 1}).Known())
	require.False(t, g.Get(Key{1, 0}).Known())
}

func TestSlotKeepsAll(t *testing.T) {
	for _, value := range oddValues {
		for _, at := range []time.Duration{0, 1, time.Hour, 1<<60 - 1} {
			for _, owed := range []bool{false, true} {
				state := Gauge{last: number(value), emitted: at, owed: owed}
				s := slotOf(Key{1, 2}, state)
				require.False(t, s.free())
				require.Equal(t, Key{1, 2}, s.key)
				require.Equal(t, state, s.gauge())
			}
		}
	}
	require.True(t, new(gaugeSlot).free())
	require.Zero(t, new(gaugeSlot).gauge())
}
