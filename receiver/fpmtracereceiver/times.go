// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

const (
	// spacing is kept between the times of one rank's points: remote write
	// refuses two samples of a series in one millisecond.
	spacing = pcommon.Timestamp(time.Millisecond)
	// maxAhead is how far spacing may run ahead of a row's own time; beyond it
	// times only increase.
	maxAhead = pcommon.Timestamp(time.Second)
)

// nextTime gives the points of a row their time: the row's own, but strictly
// after the rank's last one, which is 0 at first.
func nextTime(last, own pcommon.Timestamp) pcommon.Timestamp {
	if own >= last+spacing || last == 0 {
		return own
	}
	if spaced := last + spacing; spaced <= own+maxAhead {
		return spaced
	}
	return max(own, last+1)
}

// startBefore gives a series that begins with a point at now its start time:
// before now, and not before the point of its predecessor at last.
func startBefore(last, now pcommon.Timestamp) pcommon.Timestamp {
	return max(last, now-spacing)
}
