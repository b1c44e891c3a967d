// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// up are the values of fpm.endpoint.up with the seconds at which they came.
type up struct {
	second float64
	value  int
}

func ups(all []point, began time.Time) []up {
	var found []up
	for _, p := range of(all, fpm.MetricEndpointUp) {
		found = append(found, up{p.at.AsTime().Sub(began).Seconds(), int(p.value)})
	}
	return found
}

func TestEndpointUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		g := newRig(t, testConfig(func(c *Config) { c.Batch.Timeout = time.Second }), metrics, nil)
		began := time.Now()
		g.startWithoutIntake()
		e := g.endpoint(0)
		time.Sleep(1500 * time.Millisecond)
		e.Connected()
		time.Sleep(time.Second)
		send(e, heartbeat("w", 0, 0)) // at 2.5: up
		time.Sleep(time.Second)
		for n := range int64(20) { // until 23.5, stale at 28.5
			time.Sleep(time.Second)
			send(e, heartbeat("w", 0, n+1))
		}
		time.Sleep(7 * time.Second)
		send(e, heartbeat("w", 0, 21)) // at 30.5: up
		time.Sleep(1700 * time.Millisecond)
		e.Disconnected(errNow) // at 32.2: down
		time.Sleep(20 * time.Second)
		g.shutdown()
		assert.Equal(t, []up{
			{0, 0}, {3, 1}, {12, 1}, {21, 1}, {29, 0}, {31, 1}, {33, 0}, {42, 0}, {51, 0},
		}, ups(metrics.points(), began), "on change, and at least each 10 s")
		p := of(metrics.points(), fpm.MetricEndpointUp)[0]
		assert.Equal(t, map[string]any{"fpm.endpoint": "tcp://127.0.0.1:1"}, p.attributes)
		assert.NotContains(t, p.resource, "fpm.worker_id")
		assert.Equal(t, g.endpoint(0).engine.instance, p.resource["service.instance.id"])
		wellFormed(t, metrics.points())
		g.settled(22)
	})
}

// A batch::timeout over ten seconds does not make fpm.endpoint.up rarer, nor a
// change of it later than a second.
func TestEndpointUpWithLongBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		g := newRig(t, testConfig(func(c *Config) { c.Batch.Timeout = time.Minute }), metrics, nil)
		began := time.Now()
		g.startWithoutIntake()
		e := g.endpoint(0)
		time.Sleep(5500 * time.Millisecond)
		e.Connected()
		send(e, busy("w", 0, 0))
		time.Sleep(53 * time.Second)
		require.Empty(t, counters(metrics.points()))
		time.Sleep(2 * time.Second)
		require.Equal(t, []int64{0}, counters(metrics.points()))
		g.shutdown()
		assert.Equal(t, []up{
			{0, 0}, {6, 1}, {11, 0}, {20, 0}, {29, 0}, {38, 0}, {47, 0}, {56, 0},
		}, ups(metrics.points(), began))
		g.settled(1)
	})
}

// ends are the points without a value, by the rank's dp_rank.
func ends(all []point) map[any][]point {
	found := map[any][]point{}
	for _, p := range all {
		if p.noValue {
			rank := p.attributes["fpm.dp_rank"]
			found[rank] = append(found[rank], p)
		}
	}
	return found
}

func TestGaugesOfSilentRankEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		g := newRig(t, testConfig(), metrics, nil)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		for n := range int64(10) {
			send(e, busy("w", 0, n), busy("w", 1, n))
			time.Sleep(time.Second)
		}
		for n := range int64(10) { // rank 1 goes on
			send(e, busy("w", 1, 10+n))
			time.Sleep(time.Second)
		}
		ended := ends(metrics.points())
		require.Len(t, ended, 1)
		require.Len(t, ended[int64(0)], fpm.Gauges)
		names := map[string]bool{}
		for _, p := range ended[int64(0)] {
			names[p.metric] = true
			assert.Equal(t, "w", p.resource["fpm.worker_id"])
			assert.InDelta(t, 14, p.at.AsTime().Sub(g.receiver.startTime).Seconds(), 0.2, "stale_after after the last message")
		}
		assert.Len(t, names, fpm.Gauges, "one point a gauge")
		send(e, busy("w", 0, 10)) // it comes back
		time.Sleep(time.Minute)
		assert.Len(t, ends(metrics.points())[int64(0)], 2*fpm.Gauges, "and ends again")
		assert.Len(t, ends(metrics.points())[int64(1)], fpm.Gauges)
		wellFormed(t, metrics.points())
		contiguous(t, metrics.points())
		g.shutdown()
		c := g.settled(31)
		assert.Zero(t, c.lost)
	})
}

// The points that end gauges are refused like any other, and come again.
func TestRefusedEndComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		g := newRig(t, testConfig(), metrics, nil)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		send(e, busy("w", 0, 0))
		time.Sleep(time.Second)
		metrics.tell(refuse(errNow))
		time.Sleep(time.Minute)
		metrics.tell(nil)
		require.Empty(t, ends(metrics.points()))
		time.Sleep(10 * time.Second)
		require.Len(t, ends(metrics.points())[int64(0)], fpm.Gauges)
		g.shutdown()
		wellFormed(t, metrics.points())
		g.settled(1)
	})
}

// The last messages of a rank were dropped: what it sent before still ends.
func TestGaugesEndThoughTheLastMessageWasDropped(t *testing.T) {
	for name, refusal := range map[string]error{droppedQueueFull: errNow, droppedRefused: errEver} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				metrics := &metricsSink{}
				g := newRig(t, testConfig(func(c *Config) { c.QueueSize = 4 }), metrics, nil)
				g.startWithoutIntake()
				e := g.endpoint(0)
				e.Connected()
				send(e, busy("w", 0, 0))
				time.Sleep(time.Second)
				metrics.tell(refuse(refusal))
				send(e, busy("w", 0, 1))
				for n := range int64(10) {
					time.Sleep(time.Second)
					send(e, busy("w", 1, n))
				}
				metrics.tell(nil)
				for n := range int64(10) {
					time.Sleep(time.Second)
					send(e, busy("w", 1, 10+n))
				}
				c := g.settledBut(22, 1)
				assert.Positive(t, c.dropped["metrics"][name])
				if refusal == errNow {
					assert.Len(t, ends(metrics.points())[int64(0)], fpm.Gauges)
				} else {
					assert.Empty(t, ends(metrics.points())[int64(0)], "its end was refused for good, too")
				}
				g.shutdown()
				wellFormed(t, metrics.points())
			})
		})
	}
}

// settledBut is settled with some messages still on their way.
func (g *rig) settledBut(read, waiting int) counts {
	c := g.counts()
	assert.EqualValues(g.t, read, c.accepted+c.duplicate+c.rejected)
	return c
}

// A forward pass can take longer than the second after which engines send a
// heartbeat: nothing ends, nothing is observed for the heartbeat, nothing flaps.
func TestHeartbeatInMidPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		g := newRig(t, testConfig(), metrics, nil)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		send(e, busy("w", 0, 0))
		time.Sleep(1200 * time.Millisecond)
		send(e, heartbeat("w", 0, 1))
		time.Sleep(1300 * time.Millisecond)
		send(e, busy("w", 0, 2))
		time.Sleep(time.Second)
		g.shutdown()
		all := metrics.points()
		assert.Len(t, of(all, fpm.MetricStepDuration), 2)
		assert.Len(t, of(all, fpm.MetricDecodeTokenLatency), 2)
		assert.Len(t, of(all, fpm.MetricMessages), 3)
		assert.Len(t, of(all, "fpm.scheduled.decode.requests"), 3)
		assert.Empty(t, ends(all))
		assert.Equal(t, []int{0, 1}, []int{int(of(all, fpm.MetricEndpointUp)[0].value), int(of(all, fpm.MetricEndpointUp)[1].value)})
		assert.Len(t, of(all, fpm.MetricEndpointUp), 2)
		wellFormed(t, all)
		contiguous(t, all)
		g.settled(3)
	})
}

// A publisher may benchmark itself for 15 minutes before its first message.
func TestSilenceBeforeTheFirstMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics, logs := &metricsSink{}, &logsSink{}
		g := newRig(t, testConfig(), metrics, logs)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		for range 15 * 60 {
			time.Sleep(time.Second)
			require.Equal(t, map[string]int64{"silent": 1}, g.counter("otelcol_receiver_fpm_endpoint_state", "state"))
		}
		for _, p := range of(metrics.points(), fpm.MetricEndpointUp) {
			assert.Zero(t, p.value)
		}
		sendRange(e, 0, 9)
		require.Equal(t, map[string]int64{"live": 1}, g.counter("otelcol_receiver_fpm_endpoint_state", "state"))
		g.shutdown()
		c := g.settled(10)
		assert.Zero(t, c.lost)
		assert.Zero(t, c.restarts)
		assert.Equal(t, rangeOf(0, 9), counters(metrics.points()))
	})
}

// A counter that does not go on after a new connection has started over.
func TestSameCounterOnANewConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := &logsSink{}
		g := newRig(t, testConfig(), nil, logs)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		send(e, busy("w", 0, 0), busy("w", 0, 0))
		e.Disconnected(errNow)
		e.Connected()
		send(e, busy("w", 0, 0))
		g.shutdown()
		c := g.settled(3)
		assert.EqualValues(t, 1, c.duplicate)
		assert.EqualValues(t, 1, c.restarts)
	})
}

// host keeps the status events it is told.
type host struct {
	component.Host
	mu     sync.Mutex
	events []*componentstatus.Event
}

func newHost() *host { return &host{Host: componenttest.NewNopHost()} }

func (h *host) Report(event *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, event)
}

func (h *host) texts() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var texts []string
	for _, event := range h.events {
		text := event.Status().String()
		if err := event.Err(); err != nil {
			text += ": " + err.Error()
		}
		texts = append(texts, text)
	}
	return texts
}

func TestFourStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, testConfig(func(c *Config) { c.DPSize = 4 }), &metricsSink{}, nil)
		host := newHost()
		g.receiver.status.addHost(host)
		g.startWithoutIntake()
		states := func() map[string]string {
			synctest.Wait()
			found := map[string]string{}
			for _, e := range g.receiver.endpoints {
				for state, value := range g.counterWhere("otelcol_receiver_fpm_endpoint_state", "endpoint", e.address.String(), "state") {
					require.EqualValues(t, 1, value)
					found[e.address.String()] = state
				}
			}
			return found
		}
		const a, b, c, d = "tcp://127.0.0.1:1", "tcp://127.0.0.1:2", "tcp://127.0.0.1:3", "tcp://127.0.0.1:4"
		require.Equal(t, map[string]string{a: "connecting", b: "connecting", c: "connecting", d: "connecting"}, states())
		for n := range 3 {
			g.endpoint(n).Connected()
		}
		send(g.endpoint(2), heartbeat("w", 2, 0))
		time.Sleep(4 * time.Second)
		send(g.endpoint(1), heartbeat("w", 1, 0))
		time.Sleep(time.Second)
		require.Equal(t, map[string]string{a: "silent", b: "live", c: "stale", d: "connecting"}, states())
		require.Equal(t, map[string]int64{a: 1, b: 1, c: 1, d: 0}, g.counter("otelcol_receiver_fpm_connects", "endpoint"))
		g.endpoint(3).Connected()
		send(g.endpoint(0), heartbeat("w", 0, 0))
		send(g.endpoint(2), heartbeat("w", 2, 1))
		send(g.endpoint(3), heartbeat("w", 3, 0))
		time.Sleep(time.Second)
		g.endpoint(3).Disconnected(errNow)
		time.Sleep(500 * time.Millisecond)

		late := newHost() // of the other signal
		g.receiver.status.addHost(late)
		const (
			start = "StatusRecoverableError: 0 of 4 endpoints live; connecting: tcp://127.0.0.1:1, tcp://127.0.0.1:2, tcp://127.0.0.1:3, tcp://127.0.0.1:4"
			first = "StatusRecoverableError: 1 of 4 endpoints live; connecting: tcp://127.0.0.1:4; silent: tcp://127.0.0.1:1, tcp://127.0.0.1:2"
			both  = "StatusRecoverableError: 2 of 4 endpoints live; connecting: tcp://127.0.0.1:4; silent: tcp://127.0.0.1:1"
			stale = "StatusRecoverableError: 1 of 4 endpoints live; connecting: tcp://127.0.0.1:4; silent: tcp://127.0.0.1:1; stale: tcp://127.0.0.1:3"
			lost  = "StatusRecoverableError: 3 of 4 endpoints live; connecting: tcp://127.0.0.1:4"
		)
		require.Equal(t, []string{start, first, both, stale, "StatusOK", lost}, host.texts(), "transitions only")
		require.Equal(t, []string{lost}, late.texts())
		g.shutdown()
		require.Equal(t, []string{lost}, late.texts(), "nothing from Shutdown")
		g.settled(5)
		assert.Empty(t, g.counter("otelcol_receiver_fpm_endpoint_state", "state"), "endpoints leave with the receiver")
	})
}

func TestStatusTextIsBounded(t *testing.T) {
	r := newReceiver(testConfig(func(c *Config) { c.DPSize = 1024 }), nopSettings(), func() {})
	require.NoError(t, r.expand())
	states := make([]state, 1024)
	states[7] = stateLive
	text := statusEvent(r.endpoints, states).Err().Error()
	assert.Contains(t, text, "1 of 1024 endpoints live; connecting: tcp://127.0.0.1:1, ")
	assert.Contains(t, text, ", and 1013 more")
	assert.Less(t, len(text), 500)
}

// Ranks that nobody hears are forgotten after rank_ttl and make room; what they
// are when they come back is new.
func TestIdleRanksAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		g := newRig(t, testConfig(func(c *Config) { c.MaxRanks, c.RankTTL = 2, time.Minute }), metrics, nil)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		send(e, busy("a", 0, 5), busy("a", 0, 8), busy("b", 0, 0), busy("c", 0, 0), busy("c", 0, 1))
		time.Sleep(time.Second)
		c := g.counts()
		require.EqualValues(t, 2, c.rejectedBy[rejectedRankLimit])
		require.Len(t, g.warnings("one more than max_ranks"), 1)
		require.EqualValues(t, 2, c.lost)
		lost := of(metrics.points(), fpm.MetricMessagesLost)
		require.Len(t, lost, 2, "one point a rank and batch")
		require.Equal(t, []float64{2, 0}, []float64{lost[0].value, lost[1].value})

		time.Sleep(time.Minute + 10*time.Second)
		synctest.Wait()
		require.Empty(t, e.ranks)
		require.Empty(t, g.receiver.identities.workers)
		require.Empty(t, g.receiver.identities.claims)
		require.Zero(t, g.receiver.ranks.Load())

		send(e, busy("c", 0, 7), busy("a", 0, 100))
		time.Sleep(time.Second)
		g.shutdown()
		c = g.settled(7)
		assert.EqualValues(t, 2, c.lost, "the gap was forgotten with the rank")
		lost = of(metrics.points(), fpm.MetricMessagesLost)
		assert.Zero(t, lost[len(lost)-1].value)
		assert.Greater(t, lost[len(lost)-1].start, lost[0].at)
		wellFormed(t, metrics.points())
	})
}

// While metrics are refused a rank cannot be forgotten: its end, sent later,
// would fall among the points of the rank that came after it.
func TestRankIsNotForgottenBeforeItsGaugesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		g := newRig(t, testConfig(func(c *Config) { c.RankTTL = 10 * time.Second }), metrics, nil)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		send(e, busy("w", 0, 0))
		time.Sleep(time.Second)
		metrics.tell(refuse(errNow))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, e.ranks, 1)
		send(e, busy("w", 0, 1))
		metrics.tell(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Empty(t, e.ranks)
		g.shutdown()
		wellFormed(t, metrics.points())
		contiguous(t, metrics.points())
		g.settled(2)
	})
}

// Times strictly increase whatever the clock does: it steps back by an hour
// before a message, before the end of gauges, and before a rank that was
// forgotten comes back.
func TestTimesIncreaseAcrossClockSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		g := newRig(t, testConfig(func(c *Config) { c.RankTTL = 30 * time.Second }), metrics, nil)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		// The wall clock runs an hour ahead; then it is set right.
		e.Message(busy("w", 0, 0).frames(), time.Now().Add(time.Hour))
		e.Message(busy("w", 0, 1).frames(), time.Now().Add(time.Hour))
		send(e, busy("w", 0, 2))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Empty(t, e.ranks)
		require.Len(t, ends(metrics.points())[int64(0)], fpm.Gauges)
		send(e, busy("w", 0, 3))
		time.Sleep(time.Minute)
		g.shutdown()
		all := metrics.points()
		assert.Equal(t, []int64{0, 1, 2, 3}, counters(all))
		wellFormed(t, all)
		times := map[pcommon.Timestamp]bool{}
		for _, p := range of(all, fpm.MetricMessages) {
			times[p.at] = true
		}
		assert.Len(t, slices.Collect(maps.Keys(times)), 4)
		g.settled(4)
	})
}
