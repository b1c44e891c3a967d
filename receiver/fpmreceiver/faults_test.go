// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// Faults that engines and their consumers had in public, played to this
// receiver. The README lists them with their tests.

// played runs a test with a receiver of some ranks, whose subscriptions are
// played.
func played(t *testing.T, ranks int, play func(t *testing.T, g *rig, metrics *metricsSink)) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		g := newRig(t, testConfig(func(c *Config) { c.DPSize = ranks }), metrics, &logsSink{})
		g.startWithoutIntake()
		play(t, g, metrics)
		wellFormed(t, metrics.points())
	})
}

// values are those of one metric and rank, in order.
func values(all []point, metric string, rank int) []float64 {
	var found []float64
	for _, p := range of(all, metric) {
		if p.attributes["fpm.dp_rank"] == int64(rank) && !p.noValue {
			found = append(found, p.value)
		}
	}
	return found
}

// All ranks bind the port of rank 0, which one of them gets: the others are
// named as absent, and the payload says whose the messages are.
// https://github.com/ai-dynamo/dynamo/pull/8696
func TestOneOfFourRanksIsThere(t *testing.T) {
	played(t, 4, func(t *testing.T, g *rig, metrics *metricsSink) {
		host := newHost()
		g.receiver.status.addHost(host)
		g.endpoint(0).Connected()
		send(g.endpoint(0), busy("w", 3, 0))
		time.Sleep(time.Second)
		texts := host.texts()
		assert.Equal(t, "StatusRecoverableError: 1 of 4 endpoints live; connecting: tcp://127.0.0.1:2, tcp://127.0.0.1:3, tcp://127.0.0.1:4", texts[len(texts)-1])
		assert.Equal(t, []float64{0}, values(metrics.points(), fpm.MetricMessages, 3))
		g.shutdown()
		g.settled(1)
	})
}

// One path carries the messages of all ranks: they are told apart by the
// payload, and their counters are not one another's.
// https://github.com/sgl-project/sglang/pull/22789
func TestRanksShareOneEndpoint(t *testing.T) {
	played(t, 1, func(t *testing.T, g *rig, metrics *metricsSink) {
		e := g.endpoint(0)
		e.Connected()
		for n := range int64(50) {
			send(e, busy("w", 0, n), busy("w", 1, n))
			time.Sleep(20 * time.Millisecond)
		}
		g.shutdown()
		c := g.settled(100)
		assert.Zero(t, c.lost+c.restarts+c.duplicate)
		assert.Len(t, values(metrics.points(), fpm.MetricMessages, 0), 50)
		assert.Len(t, values(metrics.points(), fpm.MetricMessages, 1), 50)
		assert.Empty(t, g.warnings("Two publishers"))
	})
}

// A port is refused for minutes and then alive.
// https://github.com/ai-dynamo/dynamo/pull/15110
func TestEngineComesLate(t *testing.T) {
	logs := &logsSink{}
	path := filepath.Join(t.TempDir(), "fpm")
	// An ipc file that nobody listens to stays behind when an engine is killed.
	// https://github.com/sgl-project/sglang/issues/31309
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: path + ".0", Net: "unix"})
	require.NoError(t, err)
	old.SetUnlinkOnClose(false)
	old.Close()
	g := newRig(t, testConfig(func(c *Config) {
		c.Endpoint = "ipc://" + path
		c.Dial = DialConfig{Timeout: time.Second, InitialBackoff: 10 * time.Millisecond, MaxBackoff: 50 * time.Millisecond}
	}), nil, logs)
	g.start()
	time.Sleep(300 * time.Millisecond)
	require.Equal(t, map[string]int64{"connecting": 1}, g.counter("otelcol_receiver_fpm_endpoint_state", "state"))
	require.NoError(t, os.Remove(path+".0"))
	engine := startLibzmq(t).bind(t, "XPUB", "ipc://"+path+".0")
	engine.subscribed().pass(busy("w", 0, 0))
	g.read(1)
	require.Equal(t, map[string]int64{"live": 1}, g.counter("otelcol_receiver_fpm_endpoint_state", "state"))
	g.shutdown()
	g.settled(1)
}

// A stream stops in the middle of its load, with the connection open: the load
// does not freeze, and the state says stale. The worker that comes back has
// another id, and series of its own.
// https://github.com/sgl-project/sglang/issues/31309
// https://github.com/ai-dynamo/dynamo/pull/11329
func TestStreamStopsAndComesBackUnderAnotherID(t *testing.T) {
	played(t, 1, func(t *testing.T, g *rig, metrics *metricsSink) {
		e := g.endpoint(0)
		e.Connected()
		sendRange(e, 0, 99)
		time.Sleep(10 * time.Second)
		assert.Equal(t, map[string]int64{"stale": 1}, g.counter("otelcol_receiver_fpm_endpoint_state", "state"))
		assert.Len(t, ends(metrics.points())[int64(0)], fpm.Gauges)
		send(e, busy("w2", 0, 0))
		time.Sleep(time.Second)
		assert.Len(t, ends(metrics.points())[int64(0)], fpm.Gauges)
		assert.Equal(t, []string{"w", "w2"}, names(metrics.points(), fpm.MetricMessages))
		g.shutdown()
		c := g.settled(101)
		assert.Zero(t, c.lost+c.restarts)
	})
}

// Zero is a value, also when it is the only one for long, and also when it is
// there for one pass only.
// https://github.com/sgl-project/sglang/pull/32122
// https://github.com/ai-dynamo/dynamo/pull/8471
func TestQueuedZeroIsAValue(t *testing.T) {
	played(t, 1, func(t *testing.T, g *rig, metrics *metricsSink) {
		e := g.endpoint(0)
		e.Connected()
		want := make([]float64, 0, 100)
		for n := range int64(100) {
			p := busy("w", 0, n)
			if n == 98 {
				p.Queued.NumPrefillRequests = 7
			}
			want = append(want, float64(p.Queued.NumPrefillRequests))
			send(e, p)
			time.Sleep(100 * time.Millisecond)
		}
		g.shutdown()
		g.settled(100)
		assert.Equal(t, want, values(metrics.pointsBeforeShutdown(), "fpm.queued.prefill.requests", 0))
		assert.Empty(t, ends(metrics.pointsBeforeShutdown()))
	})
}

// Durations may overlap, and add up to more than the time that passed: each pass
// is observed as the engine measured it.
// https://github.com/sgl-project/sglang/pull/29879
// https://github.com/NVIDIA/TensorRT-LLM/pull/14127
func TestOverlappingDurations(t *testing.T) {
	played(t, 1, func(t *testing.T, g *rig, metrics *metricsSink) {
		e := g.endpoint(0)
		e.Connected()
		sendRange(e, 0, 99) // 20 ms each, 1 ms apart
		g.shutdown()
		g.settled(100)
		sum, count := 0.0, uint64(0)
		for _, p := range of(metrics.points(), fpm.MetricStepDuration) {
			sum, count = sum+p.value, count+p.count
		}
		assert.InDelta(t, 2.0, sum, 1e-9)
		assert.EqualValues(t, 100, count)
		sum, count = 0, 0
		for _, p := range of(metrics.points(), fpm.MetricDecodeTokenLatency) {
			sum, count = sum+p.value, count+p.count
		}
		assert.InDelta(t, 6.0, sum, 1e-9, "3 decode requests a pass")
		assert.EqualValues(t, 300, count)
	})
}

// One rank works while the other sends heartbeats only; both send the same
// duration when they work together. Nothing is joined across ranks.
// https://github.com/ai-dynamo/dynamo/pull/8356
// https://github.com/ai-dynamo/dynamo/pull/9059
func TestRanksAreNotJoined(t *testing.T) {
	played(t, 2, func(t *testing.T, g *rig, metrics *metricsSink) {
		for n := range 2 {
			g.endpoint(n).Connected()
		}
		for n := range int64(10) {
			send(g.endpoint(0), busy("w", 0, n))
			send(g.endpoint(1), heartbeat("w", 1, 100+n))
			time.Sleep(time.Second)
		}
		send(g.endpoint(0), busy("w", 0, 10))
		send(g.endpoint(1), busy("w", 1, 110))
		g.shutdown()
		c := g.settled(22)
		assert.Zero(t, c.lost)
		all := metrics.pointsBeforeShutdown()
		assert.Len(t, values(all, fpm.MetricStepDuration, 0), 11)
		assert.Equal(t, []float64{0.02}, values(all, fpm.MetricStepDuration, 1))
		assert.Len(t, values(all, "fpm.scheduled.decode.requests", 1), 11)
		assert.Empty(t, ends(all))
	})
}
