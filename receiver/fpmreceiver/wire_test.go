// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// An engine that ends and comes back is found again, its counters go on or start
// over, and what was missed meanwhile is told from a restart.
func TestReconnect(t *testing.T) {
	metrics, logs := &metricsSink{}, &logsSink{}
	p := startLibzmq(t)
	engine := p.publisher(t)
	g := newRig(t, testConfig(func(c *Config) { c.Endpoint = engine.endpoint }), metrics, logs)
	g.start()
	engine.subscribed().pass(busy("w", 0, 0), busy("w", 0, 1), busy("w", 0, 2))
	g.read(3)
	engine.close()
	engine.again() // the connection broke, the publisher counts on
	engine.subscribed().pass(busy("w", 0, 10), busy("w", 0, 11))
	g.read(5)
	engine.close()
	engine.again() // a new publisher
	engine.subscribed().pass(busy("w", 0, 0), busy("w", 0, 1))
	g.read(7)
	g.shutdown()
	c := g.settled(7)
	assert.EqualValues(t, 7, c.lost)
	assert.EqualValues(t, 1, c.restarts)
	assert.Equal(t, map[string]int64{engine.endpoint: 3}, map[string]int64{engine.endpoint: g.endpoint(0).connects.Load()})
	assert.Equal(t, []int64{0, 1, 2, 10, 11, 0, 1}, counters(metrics.points()))
	starts := map[any]int{}
	for _, p := range of(metrics.points(), fpm.MetricMessages) {
		starts[p.start]++
	}
	assert.Len(t, starts, 2, "a restart begins a new start time, a reconnect does not")
	wellFormed(t, metrics.points())
	contiguous(t, metrics.points())
}

func TestContinuityOnTheWire(t *testing.T) {
	for name, test := range map[string]struct {
		counters []int64
		accepted []int64
		want     counts
		warnings int
	}{
		"in order":  {[]int64{5, 6, 7}, []int64{5, 6, 7}, counts{accepted: 3}, 0},
		"gap":       {[]int64{0, 1, 5, 6, 9}, []int64{0, 1, 5, 6, 9}, counts{accepted: 5, lost: 5}, 0},
		"duplicate": {[]int64{0, 1, 1, 2, 2, 2, 3}, []int64{0, 1, 2, 3}, counts{accepted: 4, duplicate: 3}, 0},
		"restart":   {[]int64{499, 500, 0, 1, 2}, []int64{499, 500, 0, 1, 2}, counts{accepted: 5, restarts: 1}, 0},
		"two publishers behind one endpoint": {
			[]int64{1000, 7, 1001, 8, 1002, 9, 1003, 10},
			[]int64{1000, 7, 1001, 8, 1002, 9, 1003, 10},
			counts{accepted: 8, restarts: 1},
			1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			metrics, logs := &metricsSink{}, &logsSink{}
			p := startLibzmq(t)
			engine := p.publisher(t)
			g := newRig(t, testConfig(func(c *Config) { c.Endpoint = engine.endpoint }), metrics, logs)
			g.start()
			engine.subscribed()
			for _, counter := range test.counters {
				engine.pass(busy("w", 0, counter))
			}
			g.read(len(test.counters))
			g.shutdown()
			c := g.settled(len(test.counters))
			test.want.rejectedBy, test.want.delivered, test.want.dropped = c.rejectedBy, c.delivered, c.dropped
			assert.Equal(t, test.want, c)
			assert.Equal(t, test.accepted, counters(metrics.points()))
			assert.Equal(t, test.accepted, logCounters(logs.records()))
			wellFormed(t, metrics.points())
			assert.Len(t, g.warnings("Two publishers speak through one endpoint"), test.warnings)
		})
	}
}

// One port carries two workers, and two endpoints carry one worker: nobody's
// series overlap.
func TestIdentitiesOnTheWire(t *testing.T) {
	metrics, logs := &metricsSink{}, &logsSink{}
	p := startLibzmq(t)
	first, second := p.publisher(t), p.publisher(t)
	g := newRig(t, testConfig(func(c *Config) {
		c.Endpoint = ""
		c.Endpoints = []EndpointConfig{{Endpoint: first.endpoint, DPSize: 1}, {Endpoint: second.endpoint, DPSize: 1}}
	}), metrics, logs)
	// One rank a port: the suffix of a rank is none for tcp.
	g.start()
	first.subscribed()
	second.subscribed()
	first.pass(busy("a", 0, 0), busy("b", 0, 0), busy("", 0, 0))
	g.read(3)
	second.pass(busy("a", 0, 0), busy("", 0, 0))
	first.pass(busy("a", 0, 1))
	g.read(6)
	g.shutdown()
	g.settled(6)
	found := map[any]int{}
	for _, p := range of(metrics.points(), fpm.MetricMessages) {
		found[p.resource["service.instance.id"]]++
	}
	hostname, err := os.Hostname()
	require.NoError(t, err)
	port := func(s *socket) string { return s.endpoint[strings.LastIndex(s.endpoint, ":"):] }
	assert.Equal(t, map[any]int{
		"a": 2, "b": 1, "a@127.0.0.1" + port(second): 1,
		hostname + port(first): 1, hostname + port(second): 1,
	}, found)
	assert.Len(t, g.warnings("heard on another endpoint too"), 1)
	wellFormed(t, metrics.points())
}

// A message over the limit costs its connection; the next one is there at once.
func TestOversize(t *testing.T) {
	logs := &logsSink{}
	p := startLibzmq(t)
	engine := p.publisher(t)
	g := newRig(t, testConfig(func(c *Config) { c.Endpoint, c.MaxMessageBytes = engine.endpoint, 1000 }), nil, logs)
	g.start()
	engine.subscribed().pass(busy("w", 0, 0))
	g.read(1)
	engine.send(envelope(1, make([]byte, 2000)))
	err := g.warned("the peer announced more than is allowed")
	assert.Contains(t, err, "at most 1000 are allowed")
	engine.subscribed() // it ended, and came again
	engine.pass(busy("w", 0, 2))
	g.read(2)
	engine.send(make([][]byte, 17))
	engine.subscribed()
	engine.pass(busy("w", 0, 3))
	g.read(3)
	g.shutdown()
	c := g.settled(3)
	assert.EqualValues(t, 2, c.rejectedBy[rejectedOversize])
	assert.Zero(t, c.rejected)
	assert.Equal(t, []int64{0, 2, 3}, logCounters(logs.records()))
	assert.EqualValues(t, 1, c.lost)
}

// What is rejected is counted by reason, and named once in ten seconds.
func TestRejectedOnTheWire(t *testing.T) {
	logs := &logsSink{}
	p := startLibzmq(t)
	engine := p.publisher(t)
	g := newRig(t, testConfig(func(c *Config) { c.Endpoint, c.AcceptUnversioned = engine.endpoint, false }), nil, logs)
	g.start()
	engine.subscribed()
	good := busy("w", 0, 0)
	two := busy("w", 0, 1)
	two.Version = 2
	eventPlane := [][]byte{[]byte("forward-pass-metrics"), make([]byte, 8), make([]byte, 8), {1}}
	for range 20 {
		engine.send(
			two.frames(), eventPlane, envelope(0, nil), envelope(0, []byte{0x80}), envelope(1<<63, good.payload()),
			[][]byte{{}, {1, 2, 3}, good.payload()}, [][]byte{good.payload()}, make([][]byte, 3),
		)
	}
	engine.pass(good)
	g.read(161)
	g.shutdown()
	c := g.settled(161)
	assert.Equal(t, map[string]int64{"unsupported_version": 20, "envelope": 80, "malformed": 40, "out_of_range": 20}, c.rejectedBy)
	lines := g.warnings("Message rejected")
	assert.Len(t, lines, 4, "one line a reason")
	text := ""
	for _, line := range lines {
		assert.Equal(t, engine.endpoint, line.ContextMap()["endpoint"])
		text += fmt.Sprintln(line.ContextMap()["error"])
	}
	assert.Contains(t, text, "version: got 2, want 1")
	assert.Contains(t, text, "this looks like Dynamo's event plane, not the raw FPM port")
	assert.Equal(t, []int64{0}, logCounters(logs.records()))
}

// Peers that are no publishers are named and asked again; the other endpoints
// are not concerned.
func TestPeersThatAreNoPublishers(t *testing.T) {
	for name, test := range map[string]struct {
		peer func(*testing.T) string
		line string
		err  string
	}{
		"self-benchmark": {
			func(t *testing.T) string {
				return startLibzmq(t).bind(t, "ROUTER", "tcp://127.0.0.1:*").endpoint
			},
			"This is the engine's self-benchmark port", "ROUTER",
		},
		"HTTP server": {
			func(t *testing.T) string {
				return listen(t, func(conn net.Conn) {
					_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
					untilClosed(conn)
				}).endpoint()
			},
			"does not answer as a publisher", "an HTTP server",
		},
		"silent": {
			func(t *testing.T) string { return listen(t, untilClosed).endpoint() },
			"does not answer as a publisher", "timeout",
		},
	} {
		t.Run(name, func(t *testing.T) {
			logs := &logsSink{}
			good := publish(t, "PUB", func(conn net.Conn) {
				_, _ = conn.Write(wire(busy("w", 0, 0).frames()))
				untilClosed(conn)
			})
			g := newRig(t, testConfig(func(c *Config) {
				c.Endpoint = test.peer(t)
				c.Endpoints = []EndpointConfig{{Endpoint: good.endpoint(), DPSize: 1}}
				c.Dial = DialConfig{Timeout: 100 * time.Millisecond, InitialBackoff: 10 * time.Millisecond, MaxBackoff: 50 * time.Millisecond}
			}), nil, logs)
			g.start()
			assert.Contains(t, g.warned(test.line), test.err)
			g.read(1)
			time.Sleep(300 * time.Millisecond)
			assert.Len(t, g.warnings(test.line), 1)
			g.shutdown()
			g.settled(1)
		})
	}
}
