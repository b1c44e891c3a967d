// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// beside lets a good producer speak before and after something bad, and holds
// the receiver to losing nothing of it.
func beside(t *testing.T, change func(*Config), bad func(g *rig), badEvents int64) counts {
	t.Helper()
	s := &sink{}
	g := started(t, s, change)
	good := g.push()
	for n := range int64(50) {
		good.says(1, n, observes(1))
	}
	accepted := func(n int64) func() bool {
		return func() bool { return g.counter("producer_accepted", "producer")["gpu-7:1:1600000000000000000"] == n }
	}
	require.Eventually(t, accepted(50), patience, pollEvery)
	bad(g)
	for n := range int64(50) {
		good.says(1, 50+n, observes(1))
	}
	require.Eventually(t, accepted(100), patience, pollEvery)
	c := g.ended(100 + badEvents)
	assert.Equal(t, 100, observed(t, s))
	assert.LessOrEqual(t, g.lines.Len(), 5, "%v", g.lines.All())
	return c
}

func TestHostileMessages(t *testing.T) {
	tests := map[string]struct {
		send   func(p *pusher)
		events int64 // in messages read
		want   map[string]int64
	}{
		"frames without number": {func(p *pusher) {
			for range 100 {
				p.send([]byte(magic), []byte{0x80}, []byte{0x80})
			}
		}, 100, map[string]int64{"malformed": 100}},
		"garbage": {func(p *pusher) {
			for n := range 100 {
				p.send([]byte(magic), fmt.Append(nil, n, "is no msgpack"))
			}
		}, 100, map[string]int64{"malformed": 100}},
		"weights": {func(p *pusher) {
			p.says(2, 0, wireEvents(100, pairs{{"operation", "observe"}, {"weight", -1}})...)
			p.says(2, 100, wireEvents(100, pairs{{"operation", "observe"}, {"weight", 0.5}})...)
			p.says(2, 200, wireEvents(100, pairs{{"operation", "observe"}, {"weight", uint64(math.MaxUint64)}})...)
		}, 300, map[string]int64{"weight": 300}},
		"not a number": {func(p *pusher) {
			p.says(2, 0, wireEvents(1000, pairs{{"value", math.NaN()}})...)
		}, 1000, map[string]int64{"not_finite": 1000}},
		"nothing but nil": {func(p *pusher) {
			p.says(2, 0, make([]any, 200_000)...)
		}, 200_000, map[string]int64{"malformed": 200_000}},
		"kinds": {func(p *pusher) {
			p.says(2, 0, wireEvent(nil), wireEvent(pairs{{"operation", "inc"}}), wireEvent(pairs{{"operation", "observe"}}))
		}, 3, map[string]int64{"kind": 2}},
		"a frame over the limit": {func(p *pusher) {
			p.write(binary.BigEndian.AppendUint64([]byte{2}, 1<<40))
			p.isClosed()
		}, 0, map[string]int64{"oversize": 1}},
		"a message over the limit": {func(p *pusher) {
			p.write(binary.BigEndian.AppendUint64([]byte{3}, 600<<10))
			p.write(make([]byte, 600<<10))
			p.write(binary.BigEndian.AppendUint64([]byte{2}, 600<<10))
			p.isClosed()
		}, 0, map[string]int64{"oversize": 1}},
		"17 frames": {func(p *pusher) {
			p.send(make([][]byte, 17)...)
			p.isClosed()
		}, 0, map[string]int64{"oversize": 1}},
		"no framing": {func(p *pusher) {
			p.write([]byte{0xff, 0xff})
			p.isClosed()
		}, 0, map[string]int64{"protocol": 1}},
		"half a message": {func(p *pusher) {
			whole := wireFrames(framesOf(wireMessage(2, 0, 0, wireEvent(nil)))...)
			p.write(whole[:len(whole)/2])
			p.nc.Close()
		}, 0, map[string]int64{"protocol": 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := beside(t, func(c *Config) { c.MaxMessageBytes = 1 << 20 }, func(g *rig) {
				p := g.push()
				test.send(p)
				for reason, n := range test.want {
					g.eventually("rejected", "reason", reason, n)
				}
			}, test.events)
			assert.Equal(t, test.want, c.rejectedBy)
		})
	}
}

// What waits holds memory for the events that were accepted, not for those that
// came with them.
func TestFewGoodEventsHoldLittle(t *testing.T) {
	s := &sink{answer: refuse(errNow)}
	inBubble(t, s, func(*Config) {}, func(t *testing.T, g *rig) {
		events := make([]any, 8000)
		events[0] = wireEvent(nil)
		g.says(1, 0, events...)
		waiting := g.receiver.delivery.queue.take(math.MaxInt)
		require.Len(t, waiting, 1)
		assert.LessOrEqual(t, cap(waiting[0]), 2)
		assert.Empty(t, g.receiver.delivery.queue.restore(waiting))
		s.tell(nil)
		assert.Equal(t, map[string]int64{"malformed": 7999}, g.ended(8000).rejectedBy)
	})
}

func TestSeriesLimit(t *testing.T) {
	const labelSets, perMessage = 100_000, 1000
	c := beside(t, func(c *Config) { c.MaxSeries = 500 }, func(g *rig) {
		p := g.push()
		for first := 0; first < labelSets; first += perMessage {
			events := make([]any, perMessage)
			for i := range events {
				events[i] = wireEvent(pairs{{"labels", pairs{{"l", fmt.Sprint(first + i)}}}})
			}
			p.says(2, int64(first), events...)
		}
		g.eventually("rejected", "reason", "series_limit", labelSets-499)
		assert.Equal(t, int64(500), g.counter("series", "")[""])
	}, labelSets)
	assert.Equal(t, map[string]int64{"series_limit": labelSets - 499}, c.rejectedBy)
}

func TestProducerLimit(t *testing.T) {
	c := beside(t, func(c *Config) { c.MaxProducers = 3 }, func(g *rig) {
		p := g.push()
		for pid := range 1000 {
			p.says(2+pid, 0, wireEvent(nil), wireEvent(nil))
		}
		g.eventually("rejected", "reason", "producer_limit", 2*998)
		assert.Equal(t, int64(3), g.counter("producers", "")[""])
	}, 2000)
	assert.Equal(t, map[string]int64{"producer_limit": 2 * 998}, c.rejectedBy)
}

func TestConnectionsAreBounded(t *testing.T) {
	c := beside(t, func(c *Config) { c.MaxConnections = 3 }, func(g *rig) {
		second, silent := g.push(), g.dial()
		require.Eventually(t, func() bool { return g.receiver.server.connections() == 3 }, patience, time.Millisecond)
		for range 100 {
			g.dial().isClosed()
		}
		g.eventually("refused", "reason", "limit", 100)
		assert.Len(t, g.said("Connection refused: there are max_connections already"), 1)
		second.nc.Close()
		silent.nc.Close()
		require.Eventually(t, func() bool { return g.receiver.server.connections() == 1 }, patience, time.Millisecond)
		g.push().says(2, 0, wireEvent(nil))
		g.eventually("producers", "", "", 2)
	}, 1)
	assert.Empty(t, c.rejectedBy)
}

func TestPeersThatAreNoProducers(t *testing.T) {
	tests := map[string]struct {
		speak  func(p *pusher)
		reason string
	}{
		"an HTTP client":    {func(p *pusher) { p.write([]byte("GET / HTTP/1.1\r\n\r\n")) }, "signature"},
		"a publisher":       {func(p *pusher) { p.handshake("PUB") }, "socket_type"},
		"an unknown socket": {func(p *pusher) { p.handshake("TELEPATHY") }, "socket_type"},
		"an old library":    {func(p *pusher) { p.write([]byte("\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x01\x02\x00\x00")) }, "version"},
		"a silent peer":     {func(*pusher) {}, "timeout"},
		"half a greeting":   {func(p *pusher) { p.write([]byte{0xff, 0, 0}) }, "timeout"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			beside(t, func(*Config) {}, func(g *rig) {
				p := g.dial()
				test.speak(p)
				p.isClosed()
				g.eventually("refused", "reason", test.reason, 1)
			}, 0)
			assert.Less(t, time.Since(began), handshakeTimeout+patience/2)
		})
	}
	t.Run("a probe of the port", func(t *testing.T) {
		beside(t, func(*Config) {}, func(g *rig) {
			for range 10 {
				g.dial().nc.Close()
			}
			require.Eventually(t, func() bool { return g.receiver.server.connections() == 1 }, patience, time.Millisecond)
			assert.Empty(t, g.counter("refused", "reason"))
			assert.Zero(t, g.lines.Len())
		}, 0)
	})
}
