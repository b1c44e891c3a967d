// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observation

import "time"

// UnixNano is a point in time, in nanoseconds since 1970-01-01 UTC, as OTLP has it; 0 is not set.
type UnixNano uint64

const (
	// spacing keeps the points of a series apart for backends that know milliseconds only.
	spacing = UnixNano(time.Millisecond)
	// maxAhead is how far spacing may run ahead of the observations.
	maxAhead = UnixNano(time.Second)
)

// Timeline gives the outgoing points of one folded series their start and time.
//
// Invariant TimesIncrease: each time lies after the one before and after its own start, also when observations arrive
// out of order or in one instant. Times are 1 ms apart, unless that ran more than 1 s ahead of the observations.
type Timeline struct {
	start  UnixNano
	last   UnixNano // time of the last outgoing point, 0 when there was none
	newest UnixNano // newest observation since that
}

// begin starts the series, or starts it anew: never before its last outgoing point.
// An observation without a start of its own is taken to have begun 1 ms before its time.
func (t *Timeline) begin(start, at UnixNano) {
	if start >= at {
		start = 0
	}
	switch {
	case start > t.last:
		t.start = start
	case t.last > 0:
		t.start = t.last
	default:
		t.start = at - min(at, spacing)
	}
	t.newest = 0
}

// resume starts the next point where the last one ended; for delta output.
func (t *Timeline) resume() {
	if t.last > 0 {
		t.start = t.last
	}
}

func (t *Timeline) see(at UnixNano) { t.newest = max(t.newest, at) }

// close returns start and time of the outgoing point.
func (t *Timeline) close() (start, at UnixNano) {
	at = max(t.newest, t.start+1)
	if spaced := t.last + spacing; t.last > 0 && at < spaced {
		at = spaced
		if spaced > t.newest+maxAhead {
			at = max(t.newest, t.last+1)
		}
	}
	t.last, t.newest = at, 0
	return t.start, at
}
