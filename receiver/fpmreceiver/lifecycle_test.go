// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
)

func TestStartAndShutdownOfBothSignals(t *testing.T) {
	config := testConfig()
	settings, factory := nopSettings(), NewFactory()
	metrics, err := factory.CreateMetrics(t.Context(), settings, config, consumertest.NewNop())
	require.NoError(t, err)
	logs, err := factory.CreateLogs(t.Context(), settings, config, consumertest.NewNop())
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, metrics.Start(t.Context(), componenttest.NewNopHost()))
		require.NoError(t, logs.Start(t.Context(), componenttest.NewNopHost()))
	}
	for range 2 {
		require.NoError(t, metrics.Shutdown(t.Context()))
		require.NoError(t, logs.Shutdown(t.Context()))
	}
	// The same configuration again is another receiver.
	again, err := factory.CreateLogs(t.Context(), settings, config, consumertest.NewNop())
	require.NoError(t, err)
	require.NotSame(t, logs, again)
	require.NoError(t, again.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, again.Shutdown(t.Context()))
}

func TestShutdownWithoutStart(t *testing.T) {
	g := newRig(t, testConfig(), &metricsSink{}, &logsSink{})
	for range 2 {
		require.NoError(t, g.receiver.Shutdown(t.Context()))
	}
}

// A constructor does nothing: the Collector's command validate makes the
// components and never shuts them down.
func TestConstructorHasNoSideEffects(t *testing.T) {
	accepted := make(chan struct{}, 1)
	engine := listen(t, func(net.Conn) { accepted <- struct{}{} })
	newRig(t, testConfig(func(c *Config) { c.Endpoint = engine.endpoint() }), &metricsSink{}, &logsSink{})
	time.Sleep(50 * time.Millisecond)
	assert.Empty(t, accepted)
	// TestMain sees to goroutines.
}

// An engine that is not there is no error, however many they are; nothing waits
// for them.
func TestManyEndpointsThatAreNotThere(t *testing.T) {
	silent := listen(t, untilClosed)
	for name, endpoint := range map[string]func(int) string{
		"refused":      func(n int) string { return fmt.Sprintf("127.0.0.1:%d", 1+n) },
		"unreachable":  func(n int) string { return fmt.Sprintf("192.0.2.%d:%d", 1+n%250, 20380+n/250) },
		"no such file": func(n int) string { return fmt.Sprintf("ipc:///nowhere/fpm%d", n) },
		"silent": func(n int) string {
			return fmt.Sprintf("127.1.%d.%d:%d", n/250, n%250, silent.listener.Addr().(*net.TCPAddr).Port)
		},
	} {
		t.Run(name, func(t *testing.T) {
			metrics := &metricsSink{}
			g := newRig(t, testConfig(func(c *Config) {
				c.Endpoint = ""
				for n := range 1024 {
					c.Endpoints = append(c.Endpoints, EndpointConfig{Endpoint: endpoint(n), DPSize: 1})
				}
			}), metrics, nil)
			began := time.Now()
			g.start()
			assert.Less(t, time.Since(began), time.Second)
			require.Eventually(t, func() bool { return len(metrics.points()) >= 1024 }, 10*time.Second, 10*time.Millisecond)
			time.Sleep(300 * time.Millisecond)
			began = time.Now()
			g.shutdown()
			assert.Less(t, time.Since(began), time.Second)
			for _, p := range metrics.points() {
				assert.Zero(t, p.value)
			}
			g.settled(0)
		})
	}
}

// An engine that is not there is said once, not at each attempt; and once more
// when it was there meanwhile.
func TestAbsenceIsSaidOnce(t *testing.T) {
	g := newRig(t, testConfig(func(c *Config) {
		c.Dial = DialConfig{Timeout: time.Second, InitialBackoff: time.Millisecond, MaxBackoff: time.Millisecond}
	}), nil, &logsSink{})
	g.start()
	time.Sleep(100 * time.Millisecond)
	g.shutdown()
	assert.Equal(t, 1, g.lines.FilterMessageSnippet("No connection").Len())
	g.endpoint(0).Disconnected(net.ErrClosed)
	assert.Equal(t, 1, g.lines.FilterMessageSnippet("No connection").Len())
	g.endpoint(0).Connected()
	g.endpoint(0).Disconnected(net.ErrClosed)
	assert.Equal(t, 2, g.lines.FilterMessageSnippet("No connection").Len())
}

// burst writes a stream of passes, and then waits for the other side.
func burst(rank, count int) func(net.Conn) {
	return func(conn net.Conn) {
		for n := range int64(count) {
			if _, err := conn.Write(wire(busy("w", rank, n).frames())); err != nil {
				return
			}
		}
		untilClosed(conn)
	}
}

// Many endpoints at once, into both signals.
func TestManyEndpointsInParallel(t *testing.T) {
	const endpoints, count = 16, 500
	metrics, logs := &metricsSink{}, &logsSink{}
	g := newRig(t, testConfig(func(c *Config) {
		c.Endpoint = ""
		for rank := range endpoints {
			engine := publish(t, "PUB", burst(rank, count))
			c.Endpoints = append(c.Endpoints, EndpointConfig{Endpoint: engine.endpoint(), DPSize: 1})
		}
	}), metrics, logs)
	g.start()
	g.read(endpoints * count)
	g.shutdown()
	c := g.settled(endpoints * count)
	assert.EqualValues(t, endpoints*count, c.delivered["metrics"])
	assert.EqualValues(t, endpoints*count, c.delivered["logs"])
	assert.Zero(t, c.lost)
	wellFormed(t, metrics.points())
	contiguous(t, metrics.points())
	byRank := map[int64][]int64{}
	for _, record := range logs.records() {
		rank, _ := record.Attributes().Get("fpm.dp_rank")
		counter, _ := record.Body().Map().Get("counter_id")
		byRank[rank.Int()] = append(byRank[rank.Int()], counter.Int())
	}
	require.Len(t, byRank, endpoints)
	for _, counters := range byRank {
		assert.Equal(t, rangeOf(0, count-1), counters)
	}
}

// Shutdown comes while messages flow, at any moment: what was read is accounted
// for.
func TestShutdownWhileMessagesFlow(t *testing.T) {
	const endpoints = 4
	var engines []*peer
	for rank := range endpoints {
		engines = append(engines, publish(t, "PUB", func(conn net.Conn) { burst(rank, 1<<20)(conn) }))
	}
	for range 20 {
		metrics, logs := &metricsSink{}, &logsSink{}
		g := newRig(t, testConfig(func(c *Config) {
			c.Endpoint, c.Batch.MaxMessages, c.QueueSize = "", 10, 1000
			for _, engine := range engines {
				c.Endpoints = append(c.Endpoints, EndpointConfig{Endpoint: engine.endpoint(), DPSize: 1})
			}
		}), metrics, logs)
		g.start()
		time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
		g.shutdown()
		c := g.counts()
		g.settled(int(c.accepted + c.duplicate + c.rejected))
		assert.Len(t, logs.records(), int(c.delivered["logs"]))
		assert.Len(t, counters(metrics.points()), int(c.delivered["metrics"]))
	}
}
