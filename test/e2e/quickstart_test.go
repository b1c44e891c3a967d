// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

// gauges are the gauges of the Prometheus page and the fields they show.
var gauges = map[string]func(record) float64{
	"fpm_scheduled_prefill_requests":          func(r record) float64 { return r.Scheduled.NumPrefillRequests },
	"fpm_scheduled_prefill_tokens":            func(r record) float64 { return r.Scheduled.SumPrefillTokens },
	"fpm_scheduled_prefill_length_variance":   func(r record) float64 { return r.Scheduled.VarPrefillLength },
	"fpm_scheduled_prefill_kv_tokens":         func(r record) float64 { return r.Scheduled.SumPrefillKVTokens },
	"fpm_scheduled_decode_requests":           func(r record) float64 { return r.Scheduled.NumDecodeRequests },
	"fpm_scheduled_decode_kv_tokens":          func(r record) float64 { return r.Scheduled.SumDecodeKVTokens },
	"fpm_scheduled_decode_kv_tokens_variance": func(r record) float64 { return r.Scheduled.VarDecodeKVTokens },
	"fpm_queued_prefill_requests":             func(r record) float64 { return r.Queued.NumPrefillRequests },
	"fpm_queued_prefill_tokens":               func(r record) float64 { return r.Queued.SumPrefillTokens },
	"fpm_queued_prefill_length_variance":      func(r record) float64 { return r.Queued.VarPrefillLength },
	"fpm_queued_decode_requests":              func(r record) float64 { return r.Queued.NumDecodeRequests },
	"fpm_queued_decode_kv_tokens":             func(r record) float64 { return r.Queued.SumDecodeKVTokens },
	"fpm_queued_decode_kv_tokens_variance":    func(r record) float64 { return r.Queued.VarDecodeKVTokens },
}

// totals is what the Prometheus page must have counted of the messages of a
// rank.
type totals struct {
	passes, decodeTokenLatencies  float64
	passSeconds, decodeSeconds    float64
	prefillTokens, decodeTokens   float64
	last                          record
	heartbeats, untimed, messages int
}

func totalsOf(t *testing.T, messages []sent) (sum totals) {
	t.Helper()
	for i := range messages {
		r := messages[i].record(t)
		sum.messages++
		sum.prefillTokens += r.Scheduled.SumPrefillTokens
		sum.decodeTokens += r.Scheduled.NumDecodeRequests
		switch {
		case r.WallTime > 0:
			sum.passes++
			sum.passSeconds += r.WallTime
			sum.decodeTokenLatencies += r.Scheduled.NumDecodeRequests
			sum.decodeSeconds += r.WallTime * r.Scheduled.NumDecodeRequests
		case r.Scheduled.NumDecodeRequests+r.Scheduled.NumPrefillRequests > 0:
			sum.untimed++
		default:
			sum.heartbeats++
		}
		sum.last = r
	}
	return sum
}

// assertPage checks the Prometheus page of a rank whose messages all arrived.
func assertPage(t *testing.T, p page, rank int, want totals) {
	t.Helper()
	label := []string{"fpm_dp_rank", strconv.Itoa(rank)}
	for name, field := range gauges {
		assert.InDelta(t, field(want.last), p.one(t, name, label...), 0, "%s of rank %d", name, rank)
	}
	assert.Equal(t, want.last.CounterID, int64(p.one(t, "fpm_messages_total", label...)), "fpm_messages_total of rank %d", rank)
	for name, value := range map[string]float64{
		"fpm_messages_lost_total":                0,
		"fpm_step_duration_seconds_count":        want.passes,
		"fpm_decode_token_latency_seconds_count": want.decodeTokenLatencies,
		"fpm_prefill_tokens_total":               want.prefillTokens,
		"fpm_decode_tokens_total":                want.decodeTokens,
	} {
		assert.InDelta(t, value, p.one(t, name, label...), 0, "%s of rank %d", name, rank)
	}
	assert.InEpsilon(t, want.passSeconds, p.one(t, "fpm_step_duration_seconds_sum", label...), 1e-9)
	assert.InEpsilon(t, want.decodeSeconds, p.one(t, "fpm_decode_token_latency_seconds_sum", label...), 1e-9)
}

// delivered waits until both pipelines have taken n messages.
func (c *collector) delivered(t *testing.T, n int) {
	t.Helper()
	c.until(t, fmt.Sprintf("%d messages did not get through", n), func(p page) bool {
		return p.sum(received+"delivered", "signal", "metrics") >= float64(n) &&
			p.sum(received+"delivered", "signal", "logs") >= float64(n)
	})
}

func tcp(port int) string { return fmt.Sprintf("tcp://127.0.0.1:%d", port) }

// 5000 messages of two ranks, heartbeats between them: each is one row of the
// trace, and the page has counted each.
func TestEveryMessageIsCountedAndTraced(t *testing.T) {
	t.Parallel()
	endpoint := tcp(ports.Block(t, 2))
	engine := publish(t, endpoint, "--ranks", "2", "--count", "2500", "--rate", "800",
		"--heartbeat-every", "10", "--worker-id", "vllm-0")
	c := quickstart(t, endpoint, 2)
	engine.waitFor(t, "sent")
	c.delivered(t, 5000)
	page := c.latest(t, 2, 2499)
	want, _ := engine.sent(t)
	for rank := range 2 {
		sum := totalsOf(t, want[rank])
		require.Equal(t, 2500, sum.messages)
		require.Positive(t, sum.heartbeats)
		require.Positive(t, sum.untimed)
		assertPage(t, page, rank, sum)
	}
	for _, s := range page["fpm_scheduled_decode_requests"] {
		assert.Equal(t, "vllm-0", s.labels["instance"])
		assert.Equal(t, "default/backend", s.labels["job"])
	}
	telemetry := c.quiet(t)
	assert.Equal(t, 5000, telemetry.count(received+"messages", "outcome", "accepted"))
	assertLedger(t, telemetry)
	engine.end(t)
	c.stop(t)
	rows := c.rows(t)
	assertRowsAreSent(t, rows, want)
	assertRowTimes(t, rows)
	for _, name := range c.segments(t) {
		assert.True(t, strings.HasPrefix(name, c.traces+"/dynamo-fpm.vllm-0.0000"), name)
		assertGzipReads(t, name)
	}
}

// assertRowTimes checks the two times of the rows of one producer.
func assertRowTimes(t *testing.T, rows []traceRow) {
	t.Helper()
	var last traceRow
	for _, row := range rows {
		require.GreaterOrEqual(t, row.Timestamp, last.Timestamp)
		require.Less(t, row.Timestamp, time.Minute.Milliseconds())
		require.WithinDuration(t, time.Now(), time.UnixMilli(row.Event.ObservedAtUnixMs), time.Minute)
		last = row
	}
}

// Bad and repeated messages between good ones: each is counted by its reason, none stops the
// good ones.
func TestBadMessagesAreCounted(t *testing.T) {
	t.Parallel()
	endpoint := tcp(ports.Block(t, 2))
	engine := publish(t, endpoint, "--ranks", "2", "--count", "660", "--rate", "600", "--bad-every", "3")
	c := quickstart(t, endpoint, 2)
	engine.waitFor(t, "sent")
	c.delivered(t, 1320)
	telemetry := c.quiet(t)
	want, bad := engine.sent(t)
	require.Len(t, bad, 5)
	assert.Equal(t, bad["duplicate"], telemetry.count(received+"messages", "outcome", "duplicate"))
	delete(bad, "duplicate")
	for reason, n := range bad {
		assert.Equal(t, n, telemetry.count(received+"rejected", "reason", reason), reason)
	}
	assert.Zero(t, telemetry.count(received+"lost"))
	assertLedger(t, telemetry)
	engine.end(t)
	c.stop(t)
	assertRowsAreSent(t, c.rows(t), want)
	assert.Contains(t, c.log.String(), "event plane")
	assert.Less(t, strings.Count(c.log.String(), "\n"), 100, "a log line for each bad message")
}

// Segments read with every gzip, also while they are written.
func TestSegmentsReadAtAnyTime(t *testing.T) {
	t.Parallel()
	endpoint := tcp(ports.Block(t, 1))
	engine := publish(t, endpoint, "--count", "3000", "--rate", "600")
	c := quickstart(t, endpoint, 1, "\nexporters: {fpm_trace: {roll_bytes: 400000, max_segments: 100, flush_interval: 100ms}}")
	seen := 0
	for !strings.Contains(engine.log.String(), "sent") {
		rows := 0
		for _, name := range c.segments(t) {
			rows += assertGrowingSegmentReads(t, name)
		}
		require.GreaterOrEqual(t, rows, seen, "rows went away")
		seen = rows
		time.Sleep(20 * time.Millisecond)
	}
	assert.Greater(t, seen, 1000, "next to nothing could be read while the Collector ran")
	c.delivered(t, 3000)
	assertLedger(t, c.quiet(t))
	engine.end(t)
	c.stop(t)
	want, _ := engine.sent(t)
	assertRowsAreSent(t, c.rows(t), want)
	require.Greater(t, len(c.segments(t)), 3)
	for _, name := range c.segments(t) {
		text, err := gunzip(t, name)
		require.NoError(t, err)
		assert.LessOrEqual(t, len(text), 400000, "a segment over roll_bytes")
		assertGzipReads(t, name)
	}
}

// A trace queue that is far too small: the oldest rows go, each is counted, and
// the page does not notice.
func TestTraceQueueOverflows(t *testing.T) {
	t.Parallel()
	endpoint := tcp(ports.Block(t, 1))
	engine := publish(t, endpoint, "--count", "1200", "--rate", "400", "--worker-id", "vllm-0")
	c := quickstart(t, endpoint, 1, "\nexporters: {fpm_trace: {queue_size: 50}}")
	engine.waitFor(t, "sent")
	c.delivered(t, 1200)
	page, telemetry := c.latest(t, 1, 1199), c.quiet(t)
	dropped := telemetry.sum(traced+"dropped", "reason", "queue_full")
	assert.Positive(t, dropped)
	assertLedger(t, telemetry)
	engine.end(t)
	c.stop(t)
	want, _ := engine.sent(t)
	assertPage(t, page, 0, totalsOf(t, want[0]))
	rows := c.rows(t)
	require.Len(t, rows, 1200-int(dropped))
	assert.Equal(t, string(want[0][1199].FPM), string(rows[len(rows)-1].Event.FPM), "the newest row went, not the oldest")
}

// A sampled trace has a row an interval and rank, always the newest.
func TestSampledTrace(t *testing.T) {
	t.Parallel()
	endpoint := tcp(ports.Block(t, 2))
	engine := publish(t, endpoint, "--ranks", "2", "--count", "1200", "--rate", "400", "--worker-id", "vllm-0")
	c := quickstart(t, endpoint, 2, "\nexporters: {fpm_trace: {mode: sampled, sample_interval: 500ms}}")
	engine.waitFor(t, "sent")
	c.delivered(t, 2400)
	telemetry := c.quiet(t)
	assertLedger(t, telemetry)
	engine.end(t)
	c.stop(t)
	want, _ := engine.sent(t)
	rows := map[int][]record{}
	for _, row := range c.rows(t) {
		require.Equal(t, "sampled", row.Event.CaptureMode)
		s := sent{FPM: row.Event.FPM}
		r := s.record(t)
		require.Equal(t, string(want[r.DPRank][r.CounterID].FPM), string(row.Event.FPM))
		rows[r.DPRank] = append(rows[r.DPRank], r)
	}
	for rank, all := range rows {
		for i := 1; i < len(all); i++ {
			require.Greater(t, all[i].CounterID, all[i-1].CounterID)
		}
		assert.EqualValues(t, 1199, all[len(all)-1].CounterID, "the last message of rank %d", rank)
		// 3 s of messages: a row each 500 ms, and one for the rest.
		assert.InDelta(t, 7, len(all), 2, "rows of rank %d", rank)
	}
	require.Len(t, rows, 2)
	assert.Equal(t, len(rows[0])+len(rows[1]), telemetry.count(traced+"rows", "outcome", "written"))
}
