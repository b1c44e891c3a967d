// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBackOff(t *testing.T) {
	waits := func(t *testing.T, e *events, n int) []time.Duration {
		var d []time.Duration
		last := time.Now()
		for range n {
			_, at := next(t, e.disconnected)
			d = append(d, at.Sub(last))
			last = at
		}
		return d
	}
	t.Run("grows to the limit, with jitter", func(t *testing.T) {
		inFakeTime(t, func(t *testing.T) {
			e := newEvents()
			stop := runSubscriber(t, pipeSubscriber(e, time.Second, nil))
			d := waits(t, e, 200)
			require.Zero(t, d[0], "the first attempt is at once")
			mean := 100 * time.Millisecond
			for _, w := range d[1:6] {
				require.GreaterOrEqual(t, w, mean/2)
				require.LessOrEqual(t, w, mean+mean/2)
				mean *= 2
			}
			seen := map[time.Duration]bool{}
			var longest time.Duration
			for _, w := range d[10:] {
				require.Greater(t, w, 5*time.Second/4)
				require.LessOrEqual(t, w, 5*time.Second)
				seen[w] = true
				longest = max(longest, w)
			}
			require.Greater(t, len(seen), 100, "jitter")
			require.Greater(t, longest, 4*time.Second)
			stop()
		})
	})
	t.Run("starts over after a message", func(t *testing.T) {
		inFakeTime(t, func(t *testing.T) {
			e := newEvents()
			good := pipePublisher(nil, func(nc net.Conn) { _, _ = nc.Write(message([]byte("m"))) })
			stop := runSubscriber(t, pipeSubscriber(e, time.Second, nil, nil, nil, nil, nil, nil, nil, nil, good, nil))
			d := waits(t, e, 10)
			require.Greater(t, d[8], time.Second)
			require.LessOrEqual(t, d[9], 150*time.Millisecond)
			stop()
		})
	})
	t.Run("not after a handshake alone", func(t *testing.T) {
		inFakeTime(t, func(t *testing.T) {
			e := newEvents()
			stop := runSubscriber(t, pipeSubscriber(e, time.Second, pipePublisher(nil, func(net.Conn) { time.Sleep(time.Millisecond) })))
			d := waits(t, e, 10)
			require.Len(t, e.connected, 10)
			require.Greater(t, d[9], time.Second)
			stop()
		})
	})
	t.Run("not after a message that is too large", func(t *testing.T) {
		inFakeTime(t, func(t *testing.T) {
			e := newEvents()
			stop := runSubscriber(t, pipeSubscriber(e, time.Second, pipePublisher(nil, func(nc net.Conn) {
				_, _ = nc.Write(longHeader(0, 1<<40))
				time.Sleep(time.Hour)
			})))
			for range 10 {
				err, _ := next(t, e.disconnected)
				var oe *OversizeError
				require.ErrorAs(t, err, &oe)
			}
			start := time.Now()
			_, at := next(t, e.disconnected)
			require.Greater(t, at.Sub(start), time.Second)
			stop()
		})
	})
	t.Run("a first wait longer than the limit", func(t *testing.T) {
		b := newBackOff(time.Minute, time.Second)
		for range 100 {
			require.LessOrEqual(t, b.NextBackOff(), time.Second)
		}
	})
}
