// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package stocktest

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

// TestPrometheusExporter: what is scraped is what the passes add up to, across batches, idle gaps in which the exporter
// forgets the series, and a restart of the engine.
func TestPrometheusExporter(t *testing.T) {
	address := fmt.Sprintf("127.0.0.1:%d", ports.One(t))
	c := startCollector(t, `
receivers: {inject: {}}
processors: {gauge_dedup: {}}
exporters: {prometheus: {endpoint: "`+address+`", metric_expiration: 400ms}}
`+pipelineOf("inject", "gauge_dedup", "prometheus"))
	e := newEngine(1, "gpu-7:20380", time.Now().Add(-time.Minute))

	for range 20 {
		c.consume(e.batch(1 + e.IntN(20)))
	}
	checkScrape(t, address, e)

	time.Sleep(600 * time.Millisecond)
	require.Empty(t, scrape(t, address), "the exporter forgets what it does not hear of")
	c.consume(e.batch(3))
	checkScrape(t, address, e)

	e.restart()
	for range 5 {
		c.consume(e.batch(1 + e.IntN(20)))
	}
	checkScrape(t, address, e)
	require.Empty(t, c.logs.All(), "nothing is dropped or misaligned")
}

func checkScrape(t *testing.T, address string, e *engine) {
	t.Helper()
	page := scrape(t, address)
	want := e.totals()
	assert.Equal(t, float64(want.queued), one(t, page, "fpm_queued_decode_requests").GetGauge().GetValue())
	assert.Equal(t, float64(want.counter), one(t, page, "fpm_messages_total").GetCounter().GetValue())
	assert.Equal(t, float64(want.tokens), one(t, page, "fpm_decode_tokens_total").GetCounter().GetValue())

	latency := one(t, page, "fpm_decode_token_latency_seconds").GetHistogram()
	assert.Equal(t, want.latencyCount, latency.GetSampleCount())
	assert.InEpsilon(t, want.latencySum, latency.GetSampleSum(), 1e-12)
	below := uint64(0)
	for i, bucket := range latency.GetBucket() {
		below += want.latency[i]
		assert.Equal(t, below, bucket.GetCumulativeCount(), "le %v", bucket.GetUpperBound())
	}
	steps := one(t, page, "fpm_step_duration_seconds").GetHistogram()
	assert.Equal(t, want.steps, steps.GetSampleCount())
	assert.InEpsilon(t, want.stepSum, steps.GetSampleSum(), 1e-12)
}

func scrape(t *testing.T, address string) map[string]*dto.MetricFamily {
	t.Helper()
	resp, err := http.Get("http://" + address + "/metrics")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	page, err := parser.TextToMetricFamilies(resp.Body)
	require.NoError(t, err)
	delete(page, "target_info")
	return page
}

// one returns the only series of a metric.
func one(t *testing.T, page map[string]*dto.MetricFamily, name string) *dto.Metric {
	t.Helper()
	require.Contains(t, page, name)
	require.Len(t, page[name].GetMetric(), 1, name)
	return page[name].GetMetric()[0]
}
