// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

const (
	// spacing is kept between two points of a series that would have the same
	// time: remote write refuses two samples of a series in one millisecond.
	spacing = pcommon.Timestamp(time.Millisecond)
	// maxAhead is how far a time may be ahead of the clock, by spacing or by the
	// clock of another host. One event from the far future must not push all
	// later points of its series there.
	maxAhead = pcommon.Timestamp(time.Second)
)

// timeline gives the points of one series their times: strictly increasing,
// delta points without a hole between them. It holds the time of the last point,
// 0 before the first.
//
// Invariant (TestTimelineStrictlyIncreases): whatever the events and the clock
// say, each point's time lies after the point before, each start is that
// point's time, and no start is 0.
type timeline struct{ last pcommon.Timestamp }

// assigned is the time of a gauge's point: the event's own, or 1 ms after the
// point before when that is not later. An event that is further ahead of the
// clock than two hosts should be gets the clock's time.
func (t *timeline) assigned(timestamp int64, now pcommon.Timestamp) pcommon.Timestamp {
	at := pcommon.Timestamp(timestamp)
	if at > now+maxAhead {
		at = now
	}
	return t.after(at, now)
}

// addedUp is start and time of the point of events that were added up: the time
// of the newest, not later than the clock.
func (t *timeline) addedUp(oldest, newest int64, now pcommon.Timestamp) (start, at pcommon.Timestamp) {
	at = min(pcommon.Timestamp(newest), now)
	start = t.last
	if start == 0 {
		start = min(pcommon.Timestamp(oldest), at)
		start -= min(start-1, spacing)
		at = max(at, start+1)
	}
	return start, t.after(at, now)
}

func (t *timeline) after(at, now pcommon.Timestamp) pcommon.Timestamp {
	if at <= t.last {
		at = t.last + 1
		if spaced := t.last + spacing; spaced <= now+maxAhead {
			at = spaced
		}
	}
	t.last = at
	return at
}
