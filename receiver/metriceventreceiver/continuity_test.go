// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

var testClock = time.Unix(0, testTime)

func TestContinuity(t *testing.T) {
	type step struct {
		seq, events, dropped int64
		after                time.Duration
		disagreed            bool
	}
	tests := map[string]struct {
		steps         []step
		lost, dropped int64
	}{
		"nothing lost":                  {[]step{{0, 5, 0, 0, false}, {5, 3, 0, 0, false}, {8, 0, 0, 0, false}}, 0, 0},
		"a gap":                         {[]step{{0, 5, 0, 0, false}, {8, 1, 0, 0, false}}, 3, 0},
		"gaps add up":                   {[]step{{0, 5, 0, 0, false}, {8, 1, 0, 0, false}, {19, 1, 0, 0, false}}, 13, 0},
		"a gap before an empty message": {[]step{{0, 5, 0, 0, false}, {12, 0, 0, 0, false}}, 7, 0},
		"the first seq is the base":     {[]step{{1000, 5, 0, 0, false}, {1005, 5, 0, 0, false}}, 0, 0},
		"and gaps count from there":     {[]step{{1000, 5, 0, 0, false}, {1006, 5, 0, 0, false}}, 1, 0},

		"dropped from the start":              {[]step{{0, 5, 7, 0, false}}, 0, 7},
		"dropped since heard, when not first": {[]step{{10, 5, 7, 0, false}, {15, 5, 9, 0, false}}, 0, 2},
		"dropped grows":                       {[]step{{0, 5, 0, 0, false}, {5, 0, 4, 0, false}, {5, 0, 6, 0, false}}, 0, 6},
		"dropped never falls":                 {[]step{{0, 5, 7, 0, false}, {5, 5, 3, 0, false}}, 0, 7},
		"a first message without events":      {[]step{{0, 0, 3, 0, false}, {0, 4, 3, 0, false}}, 0, 3},

		"a message that was overtaken":           {[]step{{0, 5, 0, 0, false}, {8, 1, 0, 0, false}, {5, 3, 0, time.Second, false}}, 0, 0},
		"two messages that were overtaken":       {[]step{{0, 5, 0, 0, false}, {9, 1, 0, 0, false}, {5, 2, 0, 0, false}, {7, 2, 0, 0, false}}, 0, 0},
		"only one of two came":                   {[]step{{0, 5, 0, 0, false}, {9, 1, 0, 0, false}, {7, 2, 0, 0, false}}, 2, 0},
		"overtaken, but too late":                {[]step{{0, 5, 0, 0, false}, {8, 1, 0, 0, false}, {5, 3, 0, 2 * time.Second, true}}, 3, 0},
		"overtaken by two":                       {[]step{{0, 5, 0, 0, false}, {8, 1, 0, 0, false}, {20, 1, 0, 0, false}, {9, 11, 0, 0, false}, {5, 3, 0, 0, false}}, 0, 0},
		"older than the base":                    {[]step{{10, 5, 0, 0, false}, {5, 5, 0, 0, true}, {15, 1, 0, 0, false}}, 0, 0},
		"again from 0":                           {[]step{{10, 5, 0, 0, false}, {0, 5, 0, 0, true}, {5, 5, 0, 0, true}, {15, 1, 0, 0, false}}, 0, 0},
		"more events than the gap misses":        {[]step{{0, 5, 0, 0, false}, {8, 1, 0, 0, false}, {7, 99, 0, 0, false}}, 0, 0},
		"the gap is counted when it has settled": {[]step{{0, 5, 0, 0, false}, {8, 1, 0, 0, false}, {9, 1, 0, time.Hour, false}}, 3, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var c continuity
			now := testClock
			for _, s := range test.steps {
				now = now.Add(s.after)
				assert.Equal(t, !s.disagreed, c.message(s.seq, s.events, s.dropped, now), "seq %d", s.seq)
			}
			assert.Equal(t, test.lost, c.lost(now.Add(gapSettles)), "lost")
			assert.Equal(t, test.dropped, c.dropped(), "dropped")
		})
	}
}

func TestGapsAreBounded(t *testing.T) {
	var c continuity
	for i := range int64(1000) {
		c.message(10*i, 1, 0, testClock)
	}
	assert.LessOrEqual(t, len(c.gaps), maxGaps)
	assert.Equal(t, int64(999*9-maxGaps*9), c.lost(testClock), "beyond the bound a gap is lost at once")
	assert.Equal(t, int64(999*9), c.lost(testClock.Add(gapSettles)))
}

// Messages of a producer may be lost, and swap places with the next at a new
// connection.
func TestContinuityAddsUp(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		type message struct{ seq, events, dropped int64 }
		var (
			sent           []message
			seq, dropped   int64
			came, lost     int64
			c              continuity
			now            = testClock
			wasLost, wasDr int64
		)
		for range 100 {
			events := random.Int64N(20)
			dropped += random.Int64N(2)
			sent = append(sent, message{seq, events, dropped})
			seq += events
		}
		var arrived []message
		for i, m := range sent {
			if i > 0 && i < len(sent)-1 && random.IntN(4) == 0 {
				lost += m.events
				continue
			}
			arrived = append(arrived, m)
		}
		for i := 1; i < len(arrived)-2; i++ {
			if random.IntN(5) == 0 {
				arrived[i], arrived[i+1] = arrived[i+1], arrived[i]
				i++
			}
		}
		for _, m := range arrived {
			came += m.events
			now = now.Add(time.Duration(random.Int64N(int64(100 * time.Millisecond))))
			c.message(m.seq, m.events, m.dropped, now)
			assert.GreaterOrEqual(t, c.lost(now), wasLost)
			assert.GreaterOrEqual(t, c.dropped(), wasDr)
			wasLost, wasDr = c.lost(now), c.dropped()
		}
		now = now.Add(gapSettles)
		assert.Equal(t, lost, c.lost(now))
		assert.Equal(t, seq, came+c.lost(now), "sent = came + lost")
		assert.Equal(t, dropped, c.dropped())
	}
}
