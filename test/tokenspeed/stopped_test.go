// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package tokenspeed

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

// While the Collector stands still no emit waits for it: what the queue cannot
// hold is dropped and counted, and nothing else is missing.
func TestCollectorStandsStill(t *testing.T) {
	const (
		still = 4 * time.Second
		// An emit that waits for the Collector takes most of that time. One that
		// only shares two cores with the rest of the world takes much less.
		longest = time.Second
	)
	endpoint := tcp(ports.One(t))
	b := startBackend(t)
	dir := t.TempDir()
	release := hold(t, dir)
	c := b.start("only", endpoint)
	e := startEngine(t, dir, map[string]any{
		"endpoint": endpoint, "queue_size": 1000, "flush_interval_ms": 10,
		// Every message carries it: so the sockets' buffers, which hold megabytes, are
		// full in a moment.
		"resource": map[string]any{"padding": strings.Repeat("x", 60_000)},
	}, 1000, "--workload", "numbered", "--burst", "10", "--rest", "0.03")
	harness.Wait(t, "nothing arrives", func() bool { return b.took("only", 0) > 5_000 })

	require.NoError(t, syscall.Kill(c.PID(), syscall.SIGSTOP))
	time.Sleep(still)
	require.NoError(t, syscall.Kill(c.PID(), syscall.SIGCONT))
	before := b.took("only", 0)
	harness.Wait(t, "nothing arrives after it goes on", func() bool { return b.took("only", 0) > before+10_000 })
	release()
	accounts := e.accounts(t)
	assertLedger(t, settled(t, c, accounts), accounts)

	slowest := 0.0
	for _, a := range accounts {
		slowest = max(slowest, a.Slowest)
		assert.Positive(t, a.Dropped["queue_full"], "producer %d emitted nothing meanwhile, or the queue has no bound", a.PID)
		assert.Equal(t, a.dropped(), a.Dropped["queue_full"], "producer %d: %v", a.PID, a.Dropped)
		assert.Equal(t, a.Emitted-a.dropped(), b.took("only", a.PID), "producer %d: emitted less dropped, and what arrived", a.PID)
		t.Logf("producer %d: emitted %d, sent %d, dropped %d, slowest emit %.1f ms", a.PID, a.Emitted, a.Sent, a.dropped(), 1000*a.Slowest)
	}
	assert.Less(t, slowest, longest.Seconds(), "an emit took that many seconds")
	b.assertNoneTwice()
	c.Stop(t)
}
