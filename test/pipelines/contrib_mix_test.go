// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

// enginePage is an excerpt of what vLLM shows of itself; there is no vLLM where
// tests run.
const enginePage = `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="test"} 32
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="test"} 1234
`

// Forward passes and the engine's own page side by side, through stock
// processors, to a page and a file.
func TestContribMix(t *testing.T) {
	t.Parallel()
	const ranks, count = 2, 300
	endpoint, page := harness.TCP(ports.Block(t, ranks)), harness.Address(t)
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write([]byte(enginePage))
	}))
	t.Cleanup(own.Close)
	engine := harness.Publish(t, endpoint, ranks, count, 300)
	collector := harness.StartCollector(t, harness.CollectorConfig{
		File: "contrib-mix.yaml",
		// The file's scrape_interval is 15 s; a list in an override replaces the list.
		Override: fmt.Sprintf(`
receivers:
  fpm: {endpoint: %q, dp_size: %d}
  prometheus: {config: {scrape_configs: [{job_name: vllm, scrape_interval: 500ms, static_configs: [{targets: ["${env:ENGINE_METRICS}"]}]}]}}
exporters: {prometheus: {endpoint: %q}}
`, endpoint, ranks, page),
		Env: []string{"CLUSTER=eu-1", "ENGINE_METRICS=" + strings.TrimPrefix(own.URL, "http://")},
	})
	engine.WaitForLine(t, "sent")
	collector.Delivered(t, "metrics", ranks*count)
	harness.Wait(t, "the engine's own page is not there", func() bool {
		return len(harness.Scrape(t, page).With("vllm:num_requests_running", "job", "vllm", "cluster", "eu-1")) == 1
	})
	shown := harness.Scrape(t, page)
	assertTotalsBy(t, "rank", shown, engine.Sent(t), "cluster", "eu-1", "job", "default/backend")
	assert.NotContains(t, shown, "fpm_queued_decode_kv_tokens_variance")
	assert.Contains(t, shown, "fpm_scheduled_decode_kv_tokens_variance")
	collector.Stop(t)

	counted := counts{}
	for _, batch := range metricsIn(t, filepath.Join(collector.Dir, "run", "metrics.jsonl")) {
		counted.add(batch, "fpm.step.duration", "rank")
	}
	assert.Equal(t, passesOf(engine.Sent(t)), counted.byRank(), "passes in the file")
}

// metricsIn reads what the file exporter wrote.
func metricsIn(t *testing.T, name string) (batches []pmetric.Metrics) {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	for line := range bytes.Lines(text) {
		batch, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(line)
		require.NoError(t, err)
		batches = append(batches, batch)
	}
	return batches
}
