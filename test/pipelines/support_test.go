// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package pipelines runs each file of config/ with real data: a publisher with
// the libraries of the engines, the built Collector, and what the file sends to.
// A test overrides what it must have for itself, as ports, and nothing else.
package pipelines

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
)

// fpmAt points the fpm receiver at an engine.
func fpmAt(endpoint string, ranks int) string {
	return fmt.Sprintf("receivers: {fpm: {endpoint: %q, dp_size: %d}}\n", endpoint, ranks)
}

// assertPage checks that the Prometheus page at an address has counted each
// message of each rank and shows its last one, once it says that one at all:
// gauge_interval lets it wait. It must be asked before the ranks are stale.
func assertPage(t *testing.T, address string, sent map[int][]harness.Sent, labels ...string) {
	t.Helper()
	var page harness.Page
	harness.Wait(t, "the page does not say the newest message of each rank", func() bool {
		page = harness.Scrape(t, address)
		for rank, messages := range sent {
			label := append([]string{"fpm_dp_rank", strconv.Itoa(rank)}, labels...)
			if page.Sum("fpm_messages_total", label...) != float64(messages[len(messages)-1].Record.CounterID) {
				return false
			}
		}
		return true
	})
	assertTotals(t, page, sent, labels...)
	assertGauges(t, page, sent, labels...)
}

// assertTotals checks that a Prometheus page has counted each message of each
// rank. The labels pick the engine.
func assertTotals(t *testing.T, page harness.Page, sent map[int][]harness.Sent, labels ...string) {
	t.Helper()
	assertTotalsBy(t, "fpm_dp_rank", page, sent, labels...)
}

// assertTotalsBy is assertTotals where the label of the rank has another name.
func assertTotalsBy(t *testing.T, rankLabel string, page harness.Page, sent map[int][]harness.Sent, labels ...string) {
	t.Helper()
	require.NotEmpty(t, sent)
	for rank, messages := range sent {
		want := harness.TotalsOf(messages)
		require.Positive(t, want.Passes)
		one := func(metric string) float64 {
			return page.One(t, metric, append([]string{rankLabel, strconv.Itoa(rank)}, labels...)...)
		}
		assert.Equal(t, want.Last.CounterID, int64(one("fpm_messages_total")))
		assert.Zero(t, one("fpm_messages_lost_total"))
		assert.Equal(t, want.Passes, one("fpm_step_duration_seconds_count"))
		assert.InEpsilon(t, want.PassSeconds, one("fpm_step_duration_seconds_sum"), 1e-9)
		assert.InEpsilon(t, want.DecodeSeconds, one("fpm_decode_token_latency_seconds_sum"), 1e-9)
		assert.Equal(t, want.PrefillTokens, one("fpm_prefill_tokens_total"))
		assert.Equal(t, want.DecodeTokens, one("fpm_decode_tokens_total"))
	}
}

// assertGauges checks that a Prometheus page shows the last message of each
// rank. It must be asked before the ranks are stale: then their gauges end.
func assertGauges(t *testing.T, page harness.Page, sent map[int][]harness.Sent, labels ...string) {
	t.Helper()
	for rank, messages := range sent {
		label := append([]string{"fpm_dp_rank", strconv.Itoa(rank)}, labels...)
		for metric, value := range gaugesOf(messages[len(messages)-1].Record) {
			assert.Equal(t, value, page.One(t, metric, label...), "%s of rank %d", metric, rank)
		}
	}
}

// gaugesOf are some gauges after a message, by their names in Prometheus.
func gaugesOf(r harness.Record) map[string]float64 {
	return map[string]float64{
		"fpm_scheduled_prefill_tokens":    r.Scheduled.SumPrefillTokens,
		"fpm_scheduled_prefill_kv_tokens": r.Scheduled.SumPrefillKVTokens,
		"fpm_scheduled_decode_requests":   r.Scheduled.NumDecodeRequests,
		"fpm_queued_prefill_requests":     r.Queued.NumPrefillRequests,
		"fpm_queued_decode_requests":      r.Queued.NumDecodeRequests,
		"fpm_queued_decode_kv_tokens":     r.Queued.SumDecodeKVTokens,
	}
}

// assertRows checks that a trace has each message once, byte for byte, in the
// order of its rank.
func assertRows(t *testing.T, rows []harness.Row, sent map[int][]harness.Sent) {
	t.Helper()
	next := map[int]int{}
	for i := range rows {
		rank := rows[i].Record(t).DPRank
		require.Less(t, next[rank], len(sent[rank]), "more rows than messages of rank %d", rank)
		require.Equal(t, string(sent[rank][next[rank]].FPM), string(rows[i].Event.FPM), "row %d of rank %d", next[rank], rank)
		next[rank]++
	}
	for rank, messages := range sent {
		assert.Equal(t, len(messages), next[rank], "rows of rank %d", rank)
	}
}
