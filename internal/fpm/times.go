// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// MaxAhead is how far NextTime runs ahead of the time that a pass has itself to
// keep the points of a rank apart; beyond it times only increase.
const MaxAhead = pcommon.Timestamp(time.Second)

// spacing is kept between the points of a series: remote write refuses two
// samples in one millisecond.
const spacing = pcommon.Timestamp(time.Millisecond)

// NextTime gives the points of a pass their time: own, but strictly after the
// rank's last ones, whose time is 0 at first.
func NextTime(last, own pcommon.Timestamp) pcommon.Timestamp {
	if own >= last+spacing || last == 0 {
		return own
	}
	if spaced := last + spacing; spaced <= own+MaxAhead {
		return spaced
	}
	return max(own, last+1)
}

// StartBefore gives a series that begins with a point at now its start time:
// before now, and not before the point of its predecessor at last.
func StartBefore(last, now pcommon.Timestamp) pcommon.Timestamp {
	return max(last, now-spacing)
}
