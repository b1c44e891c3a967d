// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	received = "otelcol_receiver_fpm_"
	deduped  = "otelcol_processor_gauge_dedup_"
	traced   = "otelcol_exporter_fpm_trace_"
)

// quiet waits until input has ended and nothing moves in the Collector any more.
func (c *collector) quiet(t *testing.T) page {
	t.Helper()
	var (
		last  page
		since = time.Now()
	)
	return c.until(t, "the Collector does not come to rest", func(p page) bool {
		now := p.with(received, deduped, traced)
		for name := range now {
			if strings.Contains(name, "endpoint_state") {
				delete(now, name)
			}
		}
		if !reflect.DeepEqual(sums(now), sums(last)) {
			last, since = now, time.Now()
		}
		// Longer than the receiver's batch timeout and the exporter's flush interval.
		return time.Since(since) > 1500*time.Millisecond &&
			p.sum(received+"queue_length") == 0 && p.sum(traced+"queue_length") == 0
	})
}

func sums(p page) map[string]float64 {
	out := map[string]float64{}
	for name := range p {
		out[name] = p.sum(name)
	}
	return out
}

// assertLedger checks the loss ledger of the quickstart's components: what went
// in came out or was counted. It needs a Collector at rest.
func assertLedger(t *testing.T, p page) {
	t.Helper()
	read := p.count(received + "messages")
	require.Positive(t, read, "nothing was read: the ledger says nothing")
	rejected := p.count(received+"rejected") - p.count(received+"rejected", "reason", "oversize")
	assert.Equal(t, p.count(received+"messages", "outcome", "rejected"), rejected, "rejected messages and their reasons")
	for _, signal := range []string{"metrics", "logs"} {
		out := p.count(received+"delivered", "signal", signal) + p.count(received+"dropped", "signal", signal) +
			rejected + p.count(received+"messages", "outcome", "duplicate")
		assert.Equal(t, read, out, "fpm, signal %s", signal)
	}

	// What a component took is what the processor before it gave, by the count of
	// the Collector's own framework.
	given := func(signal string) int {
		n := p.count("otelcol_processor_outgoing_items", "processor", "memory_limiter", "otel_signal", signal)
		assert.Positive(t, n, signal)
		return n
	}
	assert.Equal(t, given("metrics"), p.count(deduped+"points"), "gauge_dedup")
	assert.Equal(t, p.count(received+"delivered", "signal", "logs"), given("logs"))
	assert.Equal(t, given("logs"), p.count(traced+"rows")+p.count(traced+"dropped"), "fpm_trace")
}
