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

func TestTimesIncrease(t *testing.T) {
	rounds(t, 200, func(t *testing.T, r *rand.Rand) {
		const ms, s = UnixNano(time.Millisecond), UnixNano(time.Second)
		var line Timeline
		base := 1_700_000_000 * s
		at := func() UnixNano {
			return pick(r, base, base+UnixNano(r.IntN(3000))*ms, base+UnixNano(r.IntN(5)), base-s, base+3600*s, 1, math.MaxInt64)
		}
		var last, lastStart UnixNano
		newSeries := true
		for range 100 {
			if newSeries {
				line.begin(pick(r, 0, 1, base-s, base+s, math.MaxUint64), at())
			}
			newest := UnixNano(0)
			for range 1 + r.IntN(3) {
				seen := at()
				newest = max(newest, seen)
				line.see(seen)
			}
			start, time := line.close()
			require.Less(t, start, time)
			require.Greater(t, time, last)
			require.GreaterOrEqual(t, time, newest)
			if time > newest {
				require.Contains(t, []UnixNano{last + ms, last + 1, start + 1}, time)
				require.True(t, time <= newest+s || time <= max(last, start)+1, "1 ms apart only while less than 1 s ahead")
			}
			if !newSeries {
				require.Equal(t, lastStart, start, "the start is fixed")
				if time-last < ms {
					require.Greater(t, last+ms, newest+s, "closer than 1 ms only when 1 s ahead")
				}
			} else if last > 0 {
				require.GreaterOrEqual(t, start, last, "a series that begins anew does not overlap")
			}
			if newest > last+ms && newest > start {
				require.Equal(t, newest, time, "the newest observation, where it can be")
			}
			last, lastStart = time, start
			newSeries = r.IntN(10) == 0
			if r.IntN(5) == 0 {
				base += s
			}
		}
	})
}

func TestFirstStart(t *testing.T) {
	const s, ms = UnixNano(time.Second), UnixNano(time.Millisecond)
	tests := []struct {
		name             string
		start, at        UnixNano
		wantStart, wants UnixNano
	}{
		{"its own", 9 * s, 10 * s, 9 * s, 10 * s},
		{"not set", 0, 10 * s, 10*s - ms, 10 * s},
		{"equal to the time", 10 * s, 10 * s, 10*s - ms, 10 * s},
		{"after the time", 11 * s, 10 * s, 10*s - ms, 10 * s},
		{"just before the time", 10*s - 1, 10 * s, 10*s - 1, 10 * s},
		{"at the epoch", 0, 5, 0, 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var line Timeline
			line.begin(tt.start, tt.at)
			line.see(tt.at)
			start, at := line.close()
			require.Equal(t, []UnixNano{tt.wantStart, tt.wants}, []UnixNano{start, at})
		})
	}
}
