// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observation

import "math/bits"

// Gauges are the known gauge series of one resource by their keys. The zero value is empty, and allocates with its first
// series.
//
// It is a hash table for keys that are random already, so that their upper bits are the hash, and for a million series,
// where reading a line of memory costs more than all else: mostly one is read for a series. A series lies in the slot
// that is its home or, when that is taken, in the next free one; after the last slot comes the first.
//
// Invariant NoGapBeforeASeries: no slot from the home of a series up to its own is free, so that a search ends at the
// first free slot. At most 7 of 8 slots are taken, so that there is one.
type Gauges struct {
	slots []gaugeSlot // a power of two of them, or none
	taken int
	shift uint8 // of a key's upper half, to its home
}

const leastGaugeSlots = 8

// Get returns the state of the series, the zero Gauge when it is not known.
func (g *Gauges) Get(key Key) Gauge {
	if len(g.slots) == 0 {
		return Gauge{}
	}
	return g.slots[g.find(key)].gauge()
}

// Put keeps the state of the series, which is a known one.
func (g *Gauges) Put(key Key, state Gauge) {
	if len(g.slots) > 0 {
		if s := &g.slots[g.find(key)]; !s.free() {
			*s = slotOf(key, state)
			return
		}
	}
	if 8*(g.taken+1) > 7*len(g.slots) {
		g.grow()
	}
	g.slots[g.find(key)] = slotOf(key, state)
	g.taken++
}

// Delete makes the series one that is not known.
func (g *Gauges) Delete(key Key) {
	if len(g.slots) == 0 {
		return
	}
	gap := g.find(key)
	if g.slots[gap].free() {
		return
	}
	g.taken--
	// A later series whose home is not behind the gap moves into it, and leaves the gap where it was.
	for at := g.after(gap); !g.slots[at].free(); at = g.after(at) {
		if g.distance(g.home(g.slots[at].key), at) >= g.distance(gap, at) {
			g.slots[gap] = g.slots[at]
			gap = at
		}
	}
	g.slots[gap] = gaugeSlot{}
}

// Touch reads the homes of the keys without waiting for one before the next, so that Get finds them in the caches.
// The result means nothing: it is there for the compiler not to leave the reads out.
//
//go:noinline
func (g *Gauges) Touch(keys []Key) (read uint64) {
	if len(g.slots) == 0 {
		return 0
	}
	for i := range keys {
		read |= g.slots[g.home(keys[i])].rest
	}
	return read
}

// find returns the slot of the key: the one it lies in, or the free one where it would.
func (g *Gauges) find(key Key) int {
	at := g.home(key)
	for !g.slots[at].free() && g.slots[at].key != key {
		at = g.after(at)
	}
	return at
}

func (g *Gauges) home(key Key) int { return int(key.Hi >> g.shift) }

func (g *Gauges) after(at int) int { return (at + 1) & (len(g.slots) - 1) }

// distance returns how many steps it takes from one slot to another.
func (g *Gauges) distance(from, to int) int { return (to - from) & (len(g.slots) - 1) }

func (g *Gauges) grow() {
	old := g.slots
	n := max(leastGaugeSlots, 2*len(old))
	g.slots = make([]gaugeSlot, n)
	g.shift = uint8(64 - bits.TrailingZeros(uint(n)))
	// The series are in the order of their homes, so that memory is written from its start to its end.
	for i := range old {
		if !old[i].free() {
			g.slots[g.find(old[i].key)] = old[i]
		}
	}
}
