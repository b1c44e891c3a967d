// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package tokenspeed

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

// The Collector is stopped, and later killed, while the engine goes on. What was
// lost on the way is what the producers sent less what the Collectors accepted,
// and the backend misses those very events.
//
// What a killed Collector accepted cannot be asked any more. So it is asked
// while the engine is quiet, and stands still from then on: what the engine then
// sends is lost.
func TestCollectorRestarts(t *testing.T) {
	events, rounds := 2000, 1
	if os.Getenv("FPM_TEST_LONG") == "1" {
		events, rounds = 1_000_000/processes/threads, 5
	}
	endpoint := tcp(ports.One(t))
	b := startBackend(t)
	dir := t.TempDir()
	release := hold(t, dir)
	var names []string
	accepted := map[string]int{}
	begin := func(name string) *harness.Collector {
		names = append(names, name)
		return b.start(name, endpoint)
	}
	flowing := func() {
		name := names[len(names)-1]
		harness.Wait(t, "nothing arrives through the "+name+" one", func() bool { return b.took(name, 0) > 10_000 })
	}

	e := startEngine(t, dir, map[string]any{"endpoint": endpoint, "queue_size": 500}, events,
		"--workload", "numbered", "--burst", "10", "--rest", "0.03")
	for round := range rounds {
		name := fmt.Sprintf("stopped-%d", round)
		c := begin(name)
		flowing()
		c.Stop(t)
		accepted[name] = b.acceptedBy(name)

		name = fmt.Sprintf("killed-%d", round)
		c = begin(name)
		flowing()
		goOn := e.pause(t)
		accepted[name] = atRest(t, c)
		require.NoError(t, syscall.Kill(c.PID(), syscall.SIGSTOP))
		goOn()
		time.Sleep(500 * time.Millisecond) // events for the sockets
		c.Kill()
		time.Sleep(time.Second) // nobody listens: more than the queues hold
	}
	c := begin("last")
	flowing()
	release()
	accounts := e.accounts(t)
	accepted["last"] = atRest(t, c)
	c.Stop(t)
	assert.Equal(t, accepted["last"], b.acceptedBy("last"), "on its page, and in its last words")

	b.assertNoneTwice()
	for _, name := range names {
		assert.Equal(t, accepted[name], b.took(name, 0), "what the %s one accepted, and what arrived through it", name)
	}
	emitted, sent, dropped, lost := 0, 0, 0, 0
	for _, a := range accounts {
		arrived := 0
		for _, name := range names {
			arrived += b.took(name, a.PID)
		}
		assert.LessOrEqual(t, arrived, a.Sent, "producer %d", a.PID)
		assert.Equal(t, a.dropped(), a.Dropped["queue_full"], "producer %d: %v", a.PID, a.Dropped)
		emitted, sent, dropped, lost = emitted+a.Emitted, sent+a.Sent, dropped+a.dropped(), lost+a.Sent-arrived
	}
	assert.Equal(t, sent-total(accepted), lost, "lost on the way: sent − Σ accepted, and what did not arrive")
	assert.Positive(t, lost, "nothing was on the way when the Collector was killed")
	assert.Positive(t, dropped, "the queues held everything while nobody listened")
	t.Logf("emitted %d, sent %d, dropped %d; accepted %v; lost on the way %d", emitted, sent, dropped, accepted, lost)
}

// atRest waits until a Collector takes nothing more and has passed everything
// on, and returns what it accepted.
func atRest(t *testing.T, c *harness.Collector) int {
	t.Helper()
	accepted, since := -1, time.Now()
	p := c.Until(t, "the Collector does not come to rest", func(p harness.Page) bool {
		if now := p.Count(received+"events", "outcome", "accepted"); now != accepted {
			accepted, since = now, time.Now()
		}
		return time.Since(since) > time.Second && p.Count(received+"delivered")+p.Count(received+"dropped") == accepted
	})
	assertDelivered(t, p)
	assert.Zero(t, p.Count(received+"dropped"), "accepted, but dropped")
	return accepted
}
