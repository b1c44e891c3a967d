// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observation

import "time"

// gaugeSlot is a series and its state in 32 bytes, so that no slot lies in two lines of memory. The zero value is free.
//
// Invariant SlotKeepsAll: a Gauge comes out as it went in, if the clock stands below 2^60 ns, 36 years.
type gaugeSlot struct {
	key  Key
	bits uint64 // of the number
	rest uint64 // emitted, owed and the number's kind, in this order
}

const (
	slotKind    = 1<<2 - 1
	slotOwed    = 1 << 2
	slotEmitted = 3 // bits to the right of it
)

func slotOf(key Key, g Gauge) gaugeSlot {
	s := gaugeSlot{key: key, bits: g.last.bits, rest: uint64(g.emitted)<<slotEmitted | uint64(g.last.kind)}
	if g.owed {
		s.rest |= slotOwed
	}
	return s
}

func (s *gaugeSlot) free() bool { return s.rest&slotKind == 0 }

func (s *gaugeSlot) gauge() Gauge {
	return Gauge{
		last:    Number{bits: s.bits, kind: numberKind(s.rest & slotKind)},
		emitted: time.Duration(int64(s.rest) >> slotEmitted),
		owed:    s.rest&slotOwed != 0,
	}
}
