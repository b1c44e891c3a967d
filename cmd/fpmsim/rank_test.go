// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
)

// sent is a message with the time since the start.
type sent struct {
	at       time.Duration
	sequence uint64
	counter  int64
	wallTime float64
	decode   int64
	prefill  int64
}

func (s *sent) heartbeat() bool { return s.wallTime == 0 && s.decode == 0 && s.prefill == 0 }

// tape stands in for the sockets, which the fake clock cannot wait for.
type tape struct {
	t      *testing.T
	start  time.Time
	sent   []sent
	listen int
	closed []time.Duration
}

func (tp *tape) open() (endpoint, error) {
	tp.listen++
	if tp.listen > 2 {
		return nil, errors.New("address in use")
	}
	return tp, nil
}

func (tp *tape) Publish(sequence uint64, payload []byte) {
	var m struct {
		Counter  int64   `msgpack:"counter_id"`
		WallTime float64 `msgpack:"wall_time"`
		Work     struct {
			Decode  int64 `msgpack:"num_decode_requests"`
			Prefill int64 `msgpack:"num_prefill_requests"`
		} `msgpack:"scheduled_requests"`
	}
	require.NoError(tp.t, msgpack.Unmarshal(payload, &m))
	tp.sent = append(tp.sent, sent{
		time.Since(tp.start), sequence, m.Counter, m.WallTime, m.Work.Decode, m.Work.Prefill,
	})
}

func (tp *tape) Dropped() uint64             { return 1 }
func (tp *tape) Close(d time.Duration) error { tp.closed = append(tp.closed, d); return nil }

// record runs a rank for a time on a fake clock.
func record(t *testing.T, args string, d time.Duration) (*rank, *tape, error) {
	t.Helper()
	o, err := parseOptions(strings.Fields(args), nil)
	require.NoError(t, err)
	tp := &tape{t: t, start: time.Now()}
	r, err := newRank(o, 0, tp.open)
	require.NoError(t, err)
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	err = r.run(ctx)
	require.EqualValues(t, len(tp.sent), r.published)
	return r, tp, err
}

func TestPaceAndHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, tp, err := record(t, "--profile idle --rate 50", time.Minute)
		require.NoError(t, err)
		beats := 0
		previous := sent{}
		for i, s := range tp.sent {
			require.EqualValues(t, i, s.sequence)
			require.EqualValues(t, i, s.counter)
			silent := s.at - previous.at
			require.LessOrEqual(t, silent, heartbeatInterval)
			if s.heartbeat() {
				beats++
				require.Equal(t, heartbeatInterval, silent)
			} else {
				require.GreaterOrEqual(t, silent, r.interval-time.Microsecond)
			}
			previous = s
		}
		assert.Positive(t, beats)
		assert.Less(t, beats, len(tp.sent))
		assert.Equal(t, []time.Duration{drainTime}, tp.closed)
		assert.EqualValues(t, 1, r.dropped)
	})
}

func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []string{"0.5", "20", "5000"} {
			r, tp, err := record(t, "--profile chat --rate "+rate, 10*time.Second)
			require.NoError(t, err)
			passes := 0
			for _, s := range tp.sent {
				if !s.heartbeat() {
					passes++
				}
			}
			assert.InEpsilon(t, r.options.rate, 1/r.interval.Seconds(), rateSpread)
			// 5000 passes a second reach the lull of the profile within the time.
			if rate != "5000" {
				assert.Equal(t, int(10*time.Second/r.interval), passes, rate)
			}
		}
	})
}

func TestRanksDriftApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, err := parseOptions(nil, nil)
		require.NoError(t, err)
		tp := &tape{t: t}
		a, err := newRank(o, 0, tp.open)
		require.NoError(t, err)
		b, err := newRank(o, 1, tp.open)
		require.NoError(t, err)
		assert.NotEqual(t, a.interval, b.interval)
	})
}

func TestMessagesAndStartDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, tp, err := record(t, "--messages 7 --start-delay 3s", time.Hour)
		require.NoError(t, err)
		require.Len(t, tp.sent, 7)
		assert.Greater(t, tp.sent[0].at, 3*time.Second)
		assert.Less(t, time.Since(tp.start), 10*time.Second)
	})
	synctest.Test(t, func(t *testing.T) {
		_, tp, err := record(t, "--messages 7 --profile idle --rate 0.2", time.Hour)
		require.NoError(t, err)
		require.Len(t, tp.sent, 7, "heartbeats count too")
		assert.True(t, tp.sent[0].heartbeat())
	})
	synctest.Test(t, func(t *testing.T) {
		_, tp, err := record(t, "--start-delay 3s", time.Second)
		require.NoError(t, err)
		assert.Empty(t, tp.sent)
		assert.Len(t, tp.closed, 1)
	})
}

func TestFaults(t *testing.T) {
	const untilSecond = 2*faultInterval - time.Nanosecond
	t.Run("gap", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, tp, err := record(t, "--faults gap", untilSecond)
			require.NoError(t, err)
			last := tp.sent[len(tp.sent)-1]
			assert.EqualValues(t, len(tp.sent)-1+gapMessages, last.counter)
			assert.EqualValues(t, last.counter, last.sequence)
		})
	})
	t.Run("silence", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, tp, err := record(t, "--faults silence", untilSecond)
			require.NoError(t, err)
			assert.Equal(t, 1, pauses(tp.sent, silenceTime))
			assert.EqualValues(t, len(tp.sent)-1, tp.sent[len(tp.sent)-1].counter)
		})
	})
	t.Run("heartbeat-mid-pass", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, tp, err := record(t, "--faults heartbeat-mid-pass", untilSecond)
			require.NoError(t, err)
			for i, s := range tp.sent {
				if s.wallTime == longPass.Seconds() {
					require.True(t, tp.sent[i-1].heartbeat())
					require.True(t, tp.sent[i-2].heartbeat())
					require.False(t, tp.sent[i-3].heartbeat())
					return
				}
			}
			t.Fatal("no long pass")
		})
	})
	t.Run("restart", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, tp, err := record(t, "--faults restart", untilSecond)
			require.NoError(t, err)
			assert.Equal(t, 1, pauses(tp.sent, restartTime))
			restarts := 0
			for i := 1; i < len(tp.sent); i++ {
				if tp.sent[i].counter == 0 {
					restarts++
					require.Positive(t, tp.sent[i-1].counter)
				}
			}
			assert.Equal(t, 1, restarts)
			assert.Equal(t, []time.Duration{0, drainTime}, tp.closed)
			assert.EqualValues(t, 2, r.dropped, "what the first publisher dropped was forgotten")
		})
	})
	t.Run("restart that cannot bind", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, _, err := record(t, "--faults restart", time.Hour)
			require.EqualError(t, err, "address in use")
		})
	})
	t.Run("by turns", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, tp, err := record(t, "--faults silence,gap", 4*faultInterval-time.Nanosecond)
			require.NoError(t, err)
			assert.Equal(t, 2, pauses(tp.sent, silenceTime))
			assert.EqualValues(t, len(tp.sent)-1+gapMessages, tp.sent[len(tp.sent)-1].counter)
		})
	})
}

// pauses counts the times of at least d without a message.
func pauses(all []sent, d time.Duration) (n int) {
	for i := 1; i < len(all); i++ {
		if all[i].at-all[i-1].at >= d {
			n++
		}
	}
	return n
}
