// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

const (
	testNow = pcommon.Timestamp(testTime)
	ms      = pcommon.Timestamp(time.Millisecond)
	sec     = pcommon.Timestamp(time.Second)
)

func TestTimeOfAnAssignment(t *testing.T) {
	tests := map[string]struct {
		last, timestamp, want pcommon.Timestamp
	}{
		"its own":                            {0, testNow, testNow},
		"its own, however old":               {0, 1, 1},
		"its own, 1 ns after the last":       {testNow - 1, testNow, testNow},
		"the last's + 1 ms when the same":    {testNow, testNow, testNow + ms},
		"the last's + 1 ms when older":       {testNow, testNow - 5*sec, testNow + ms},
		"a clock slightly ahead":             {0, testNow + sec, testNow + sec},
		"a clock too far ahead":              {0, testNow + sec + 1, testNow},
		"the far future":                     {0, math.MaxInt64, testNow},
		"spacing ahead of the clock":         {testNow + sec - ms, testNow, testNow + sec},
		"spacing too far ahead of the clock": {testNow + sec, testNow, testNow + sec + 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			line := timeline{test.last}
			assert.Equal(t, test.want, line.assigned(int64(test.timestamp), testNow))
			assert.Equal(t, test.want, line.last)
		})
	}
}

func TestTimesOfAddedUpEvents(t *testing.T) {
	tests := map[string]struct {
		last, oldest, newest, start, want pcommon.Timestamp
	}{
		"the newest, from before the oldest":    {0, testNow - 100*ms, testNow, testNow - 101*ms, testNow},
		"one event":                             {0, testNow, testNow, testNow - ms, testNow},
		"contiguous":                            {testNow - sec, testNow - 100*ms, testNow, testNow - sec, testNow},
		"contiguous over an idle hour":          {testNow - 3600*sec, testNow, testNow, testNow - 3600*sec, testNow},
		"never later than now":                  {0, testNow + 1, testNow + sec, testNow - ms, testNow},
		"strictly increasing when all are late": {testNow - ms, testNow - 5*sec, testNow - 4*sec, testNow - ms, testNow},
		"also at the same time":                 {testNow, testNow, testNow, testNow, testNow + ms},
		"too far ahead of the clock":            {testNow + sec, testNow, testNow, testNow + sec, testNow + sec + 1},
		"1970":                                  {0, 1, 1, 1, 2},
		"soon after 1970":                       {0, 2 * ms, 3 * ms, ms, 3 * ms},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			line := timeline{test.last}
			start, at := line.addedUp(int64(test.oldest), int64(test.newest), testNow)
			assert.Equal(t, test.start, start, "start")
			assert.Equal(t, test.want, at, "time")
			assert.Equal(t, test.want, line.last)
		})
	}
}

func TestTimelineStrictlyIncreases(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	timestamp := func(now pcommon.Timestamp) int64 {
		switch random.IntN(10) {
		case 0:
			return 1 + random.Int64N(10)
		case 1:
			return math.MaxInt64 - random.Int64N(10)
		default:
			return int64(now) - random.Int64N(int64(3*time.Second)) + int64(time.Second)
		}
	}
	for range 200 {
		assigned, addedUp := timeline{}, timeline{}
		now := testNow
		for i := range 200 {
			now += pcommon.Timestamp(random.Int64N(int64(10 * time.Millisecond)))
			if random.IntN(50) == 0 {
				now -= pcommon.Timestamp(random.Int64N(int64(time.Minute)))
			}
			before := assigned.last
			at := assigned.assigned(timestamp(now), now)
			require.Greater(t, at, before)

			before = addedUp.last
			oldest, newest := timestamp(now), timestamp(now)
			start, at := addedUp.addedUp(min(oldest, newest), max(oldest, newest), now)
			require.Greater(t, at, start)
			require.NotZero(t, start)
			if i > 0 {
				require.Equal(t, before, start)
			}
		}
	}
}
