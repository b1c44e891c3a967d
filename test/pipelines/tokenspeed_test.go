// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
	"github.com/otelcol-fpm/otelcol-fpm/test/python"
)

// Two engine processes with the output plugin: the page shows every event under
// TokenSpeed's own names.
func TestTokenSpeed(t *testing.T) {
	t.Parallel()
	const count = 500
	interpreter := python.Path(t)
	endpoint, page := "tcp://"+harness.Address(t), harness.Address(t)
	collector := harness.StartCollector(t, harness.CollectorConfig{
		File:     "tokenspeed.yaml",
		Override: fmt.Sprintf("exporters: {prometheus: {endpoint: %q}}\n", page),
		Env:      []string{"TOKENSPEED_ENDPOINT=" + endpoint},
	})
	var engines sync.WaitGroup
	for rank := range 2 {
		engines.Go(func() {
			command := exec.CommandContext(t.Context(), interpreter, filepath.Join("testdata", "tokenspeed.py"), endpoint, strconv.Itoa(rank), strconv.Itoa(count))
			command.Env = append(command.Environ(), "PYTHONDONTWRITEBYTECODE=1",
				"PYTHONPATH="+filepath.Join(harness.Root(), "plugins", "tokenspeed", "src"))
			out, err := command.CombinedOutput()
			assert.NoError(t, err, "%s", out)
		})
	}
	engines.Wait()
	collector.Until(t, "events did not get through", func(p harness.Page) bool {
		return p.Count("otelcol_receiver_metric_event_delivered") >= 2*3*count
	})
	shown := harness.Scrape(t, page)
	for rank := range 2 {
		one := func(metric string) float64 {
			return shown.One(t, metric, "dp_rank", strconv.Itoa(rank), "model_name", "test")
		}
		assert.Equal(t, 3.0*count, one("tokenspeed:inter_token_latency_seconds_count"), "a weight multiplies the count")
		assert.InEpsilon(t, 0.01*3*count, one("tokenspeed:inter_token_latency_seconds_sum"), 1e-9)
		assert.Equal(t, 3.0*count, one("tokenspeed:generation_tokens_total"))
		assert.Equal(t, float64(count-1), one("tokenspeed:num_requests_running"))
	}
	assert.Zero(t, harness.Scrape(t, collector.Telemetry).Sum("otelcol_receiver_metric_event_producer_lost"))
	collector.Stop(t)
}
