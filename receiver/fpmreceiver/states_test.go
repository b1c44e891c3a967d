// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

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
