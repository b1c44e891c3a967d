// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observation

import "time"

// Decision is what happens to one assignment of a gauge.
type Decision uint8

const (
	// First is emitted: the series was not known.
	First Decision = iota
	// Changed is emitted: the value differs from the last emitted one.
	Changed
	// Refreshed is emitted: the value is the same, but the last emission is long enough ago.
	Refreshed
	// Suppressed is not emitted.
	Suppressed
)

// Gauge is the state of one gauge series. The zero value is a series that is not known.
//
// Invariant SuppressedChangesNothing: only an emission changes the state, so frequent repeats never postpone the refresh.
type Gauge struct {
	last    Number
	emitted time.Duration
	owed    bool
}

// Known tells whether the series has been emitted before.
func (g Gauge) Known() bool { return g.last.kind != noNumber }

// Owed returns the state of a series whose later emission was refused by the next consumer: the value emitted before
// stays the last one, and the next assignment is emitted whatever its value, since nobody knows what arrived.
func (g Gauge) Owed() Gauge {
	g.owed = g.Known()
	return g
}

// Refresh says when a gauge that does not change is emitted again.
type Refresh struct {
	// Interval since the last emission; 0 never refreshes.
	Interval time.Duration
	// Tolerance shortens the interval, for streams that were already filtered at their source.
	Tolerance time.Duration
}

// Judge decides on the assignment of v at the monotonic time now, and returns the state after it.
// The interval counts from the last emission, and includes its end to the nanosecond.
func (r Refresh) Judge(g Gauge, v Number, now time.Duration) (Decision, Gauge) {
	emitted := Gauge{last: v, emitted: now}
	switch {
	case !g.Known():
		return First, emitted
	case g.last != v:
		return Changed, emitted
	case g.owed, r.Interval > 0 && now-g.emitted >= r.Interval-r.Tolerance:
		return Refreshed, emitted
	default:
		return Suppressed, g
	}
}
