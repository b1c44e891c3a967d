// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

// The log table has every pass with its own time, the metric tables have their
// totals.
func TestClickHouse(t *testing.T) {
	t.Parallel()
	const ranks, count = 2, 300
	server := startClickHouse(t)
	endpoint := harness.TCP(ports.Block(t, ranks))
	engine := harness.Publish(t, endpoint, ranks, count, 300, "--worker-id", "vllm-0")
	collector := harness.StartCollector(t, harness.CollectorConfig{
		File: "clickhouse.yaml", Override: fpmAt(endpoint, ranks),
		Env: []string{"CLICKHOUSE_ENDPOINT=http://" + server.address + "?compress=none"},
	})
	engine.WaitForLine(t, "sent")
	sent := engine.Sent(t)
	harness.Wait(t, "the log table lacks rows", func() bool { return len(server.table("otel_logs")) >= ranks*count })
	harness.Wait(t, "the histogram table lacks totals", func() bool {
		return assert.ObjectsAreEqual(passesOf(sent), countsIn(t, server.table("otel_metrics_histogram"), "fpm.step.duration"))
	})
	next := map[int]int{}
	var last time.Time
	for _, row := range server.table("otel_logs") {
		rank, err := strconv.Atoi(row["LogAttributes"].(map[string]string)["fpm.dp_rank"])
		require.NoError(t, err)
		assert.Equal(t, "fpm.forward_pass", row["EventName"])
		assert.Equal(t, "vllm-0", row["ResourceAttributes"].(map[string]string)["service.instance.id"])
		assert.JSONEq(t, string(sent[rank][next[rank]].FPM), row["Body"].(string))
		next[rank]++
		if rank == 0 {
			at := row["Timestamp"].(time.Time)
			assert.True(t, at.After(last), "times of a rank strictly increase")
			last = at
		}
	}
	assert.Equal(t, map[int]int{0: count, 1: count}, next)
	assert.NotEmpty(t, server.table("otel_metrics_gauge"))
	assert.NotEmpty(t, server.table("otel_metrics_sum"))
	collector.Stop(t)
	assert.Empty(t, server.errors)
}

// countsIn are the largest counts of a metric, by rank.
func countsIn(t *testing.T, rows []map[string]any, metric string) map[int64]uint64 {
	t.Helper()
	counts := map[int64]uint64{}
	for _, row := range rows {
		if row["MetricName"] == metric {
			rank, err := strconv.ParseInt(row["Attributes"].(map[string]string)["fpm.dp_rank"], 10, 64)
			require.NoError(t, err)
			counts[rank] = max(counts[rank], row["Count"].(uint64))
		}
	}
	return counts
}
