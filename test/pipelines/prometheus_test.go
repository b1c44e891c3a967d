// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

// Each forward pass is counted on the page, and Prometheus keeps the labels that
// tell engines apart.
func TestPrometheusScrape(t *testing.T) {
	t.Parallel()
	const ranks, count = 2, 400
	endpoint, page := harness.TCP(ports.Block(t, ranks)), harness.Address(t)
	engine := harness.Publish(t, endpoint, ranks, count, 400, "--heartbeat-every", "9", "--worker-id", "vllm-0")
	collector := harness.StartCollector(t, harness.CollectorConfig{
		File:     "prometheus-scrape.yaml",
		Override: fpmAt(endpoint, ranks) + fmt.Sprintf("exporters: {prometheus: {endpoint: %q}}", page),
	})
	engine.WaitForLine(t, "sent")
	collector.Delivered(t, "metrics", ranks*count)
	assertPage(t, page, engine.Sent(t), "job", "default/backend", "instance", "vllm-0")

	prometheus := harness.StartPrometheus(t, fmt.Sprintf(`
global: {scrape_interval: 1s}
scrape_configs:
  - {job_name: fpm, honor_labels: true, static_configs: [{targets: [%q]}]}
`, page))
	for rank, messages := range engine.Sent(t) {
		query := fmt.Sprintf(`fpm_step_duration_seconds_count{job="default/backend",instance="vllm-0",fpm_dp_rank="%d"}`, rank)
		var found []harness.Result
		harness.Wait(t, "Prometheus does not have "+query, func() bool {
			found = prometheus.Query(t, query)
			return len(found) > 0
		})
		require.Len(t, found, 1)
		assert.Equal(t, harness.TotalsOf(messages).Passes, found[0].Samples[0].Value)
	}
	collector.Stop(t)
}

// What Prometheus has of a gauge after remote write are its changes, each and in
// order, and the totals are those of all messages.
func TestRemoteWrite(t *testing.T) {
	t.Parallel()
	const ranks, count = 2, 600
	prometheus := harness.StartPrometheus(t, "global: {}\n", "--web.enable-remote-write-receiver")
	endpoint := harness.TCP(ports.Block(t, ranks))
	engine := harness.Publish(t, endpoint, ranks, count, 300, "--worker-id", "vllm-0")
	collector := harness.StartCollector(t, harness.CollectorConfig{
		File:     "remote-write.yaml",
		Override: fpmAt(endpoint, ranks),
		Env:      []string{"REMOTE_WRITE_ENDPOINT=http://" + prometheus.Address + "/api/v1/write"},
	})
	engine.WaitForLine(t, "sent")
	collector.Delivered(t, "metrics", ranks*count)
	sent := engine.Sent(t)
	for rank, messages := range sent {
		want := harness.TotalsOf(messages)
		label := `{job="default/backend",instance="vllm-0",fpm_dp_rank="` + strconv.Itoa(rank) + `"}`
		harness.Wait(t, "the last total does not arrive", func() bool {
			found := prometheus.Query(t, "fpm_step_duration_seconds_count"+label)
			return len(found) == 1 && found[0].Samples[0].Value == want.Passes
		})
		for metric, total := range map[string]float64{
			"fpm_decode_token_latency_seconds_count": want.DecodeTokens - untimed(messages),
			"fpm_decode_tokens_total":                want.DecodeTokens,
			"fpm_prefill_tokens_total":               want.PrefillTokens,
			"fpm_messages_total":                     float64(want.Last.CounterID),
		} {
			found := prometheus.Query(t, metric+label)
			require.Len(t, found, 1, metric)
			assert.Equal(t, total, found[0].Samples[0].Value, metric)
		}
		found := prometheus.Query(t, "fpm_queued_decode_kv_tokens"+label+"[1h]")
		require.Len(t, found, 1)
		assert.Equal(t, changesSent(messages), changesStored(found[0].Samples), "changes of a gauge of rank %d", rank)
	}
	telemetry := harness.Scrape(t, collector.Telemetry)
	assert.Zero(t, telemetry.Count("otelcol_exporter_send_failed_metric_points"))
	assert.Zero(t, telemetry.Count("otelcol_exporter_enqueue_failed_metric_points"))
	collector.Stop(t)
	assert.NotContains(t, prometheus.Log(), "level=error")
}

// untimed are the decode requests of passes without a duration.
func untimed(messages []harness.Sent) (n float64) {
	for i := range messages {
		if messages[i].Record.WallTime == 0 {
			n += messages[i].Record.Scheduled.NumDecodeRequests
		}
	}
	return n
}

func changesSent(messages []harness.Sent) (changes []float64) {
	for i := range messages {
		changes = change(changes, messages[i].Record.Queued.SumDecodeKVTokens)
	}
	return changes
}

func changesStored(samples []harness.Sample) (changes []float64) {
	for _, s := range samples {
		changes = change(changes, s.Value)
	}
	return changes
}

func change(changes []float64, value float64) []float64 {
	if len(changes) > 0 && changes[len(changes)-1] == value {
		return changes
	}
	return append(changes, value)
}
