// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

// maxBackoff is the receiver's longest pause between two attempts to connect,
// with room for a busy machine.
const maxBackoff = 5*time.Second + 3*time.Second

// An engine is killed and comes back: its counters start over, which is no
// loss, and data flows again.
func TestEngineKilledAndRestarted(t *testing.T) {
	t.Parallel()
	endpoint := tcp(ports.Block(t, 2))
	args := []string{"--ranks", "2", "--rate", "200", "--worker-id", "vllm-0"}
	first := publish(t, endpoint, args...)
	c := quickstart(t, endpoint, 2)
	c.delivered(t, 300)
	first.kill()
	c.until(t, "the receiver does not notice", func(p page) bool {
		return p.sum(received+"endpoint_state", "state", "live") == 0
	})
	time.Sleep(2 * time.Second) // let the pauses between attempts grow
	before, _ := first.sent(t)
	delivered := scrape(t, c.telemetry).sum(received+"delivered", "signal", "logs")

	second := publish(t, endpoint, append(args, "--count", "300")...)
	start := time.Now()
	second.waitFor(t, "subscribed")
	assert.Less(t, time.Since(start), maxBackoff)
	second.waitFor(t, "sent")
	c.delivered(t, int(delivered)+600)

	page, telemetry := c.latest(t, 2, 299), c.quiet(t)
	assert.Equal(t, 2, telemetry.count(received+"restarts"))
	assert.Zero(t, telemetry.count(received+"lost"))
	assertLedger(t, telemetry)
	second.end(t)
	c.stop(t)

	after, _ := second.sent(t)
	rows := map[int][]traceRow{}
	for _, row := range c.rows(t) {
		var r record
		require.NoError(t, json.Unmarshal(row.Event.FPM, &r))
		rows[r.DPRank] = append(rows[r.DPRank], row)
	}
	for rank := range 2 {
		// Of the first engine's messages the last ones died with it.
		survived := len(rows[rank]) - len(after[rank])
		require.Greater(t, survived, 50)
		require.LessOrEqual(t, survived, len(before[rank]))
		got := slices.Concat(before[rank][:survived], after[rank])
		assertRowsAreSent(t, rows[rank], map[int][]sent{rank: got})
		sum := totalsOf(t, got)
		require.EqualValues(t, 299, sum.last.CounterID, "counters did not rebase")
		assertPage(t, page, rank, sum)
	}
}

// A Collector that is killed loses what was not flushed, and no more: rows of
// the flush interval and the batch timeout. Its successor starts a segment of
// its own.
func TestCollectorKilled(t *testing.T) {
	t.Parallel()
	const rate, limit = 300, 1200 * time.Millisecond
	endpoint := tcp(ports.Block(t, 1))
	engine := publish(t, endpoint, "--rate", strconv.Itoa(rate), "--worker-id", "vllm-0")
	c := quickstart(t, endpoint, 1)
	c.until(t, "nothing was written", func(p page) bool { return p.sum(traced+"rows", "outcome", "written") > rate })
	require.NoError(t, c.cmd.Process.Kill())
	require.Error(t, <-c.exited)
	engine.kill()
	want, _ := engine.sent(t)
	var rows []traceRow
	for _, name := range c.segments(t) {
		text, _ := gunzip(t, name) // the last member may be torn
		rows = append(rows, parseRows(t, text)...)
	}
	require.NotEmpty(t, rows)
	lost := len(want[0]) - len(rows)
	// The engine went on for a moment after the Collector was gone.
	assert.Less(t, lost, int((limit+time.Second).Seconds()*rate))
	assertRowsAreSent(t, rows, map[int][]sent{0: want[0][:len(rows)]})

	segments := c.segments(t)
	again := publish(t, endpoint, "--count", "50", "--worker-id", "vllm-0")
	next := quickstart(t, endpoint, 1, "\nexporters: {fpm_trace: {path: "+filepath.Join(c.traces, "dynamo-fpm")+"}}")
	again.waitFor(t, "sent")
	next.delivered(t, 50)
	next.stop(t)
	require.Len(t, c.segments(t), len(segments)+1)
	text, err := gunzip(t, c.segments(t)[len(segments)])
	require.NoError(t, err)
	want, _ = again.sent(t)
	assertRowsAreSent(t, parseRows(t, text), want)
}

// The simulated engine with its faults: gaps are counted as lost messages,
// restarts are not.
func TestSimulatedEngine(t *testing.T) {
	t.Parallel()
	endpoint := tcp(ports.Block(t, 2))
	c := quickstart(t, endpoint, 2)
	sim := filepath.Join(t.TempDir(), "fpmsim")
	out, err := exec.Command("go", "build", "-o", sim, root+"/cmd/fpmsim").CombinedOutput()
	require.NoError(t, err, "%s", out)
	// Bound before the first message, for longer than the longest back-off.
	engine := exec.Command(sim, "--endpoint", endpoint, "--rate", "100", "--start-delay", "6s",
		"--faults", "gap,restart", "--duration", "29s")
	report, err := engine.CombinedOutput()
	require.NoError(t, err, "%s", report)

	published := 0
	for _, line := range regexp.MustCompile(`rank \d published (\d+) messages, \d+ dropped`).FindAllSubmatch(report, -1) {
		n, err := strconv.Atoi(string(line[1]))
		require.NoError(t, err)
		published += n
	}
	require.Positive(t, published, "%s", report)
	telemetry := c.quiet(t)
	assert.Equal(t, 2, telemetry.count(received+"restarts"))
	assert.Equal(t, 2*5, telemetry.count(received+"lost"))
	assertLedger(t, telemetry)
	// What the restarted engine sent before it had a subscriber again is gone.
	accepted := telemetry.sum(received+"messages", "outcome", "accepted")
	assert.Greater(t, accepted, 0.7*float64(published))
	assert.LessOrEqual(t, accepted, float64(published))
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, <-c.exited)
	assert.Len(t, c.rows(t), int(accepted))
	for _, name := range c.segments(t) {
		assert.NotContains(t, name, "127.0.0.1", "the host's name stands for a loopback address: %s", name)
	}
}
