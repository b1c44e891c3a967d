// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package stocktest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// seen is one point of a gauge: its value or that it ended.
type seen string

const ended seen = "ended"

// gaugePoints returns all points of a gauge, in the order in which they arrived.
func gaugePoints(batches []pmetric.Metrics, name string) (points []seen) {
	for _, md := range batches {
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					if m.Name() != name {
						continue
					}
					for _, dp := range m.Gauge().DataPoints().All() {
						if dp.Flags().NoRecordedValue() {
							points = append(points, ended)
						} else {
							points = append(points, seen(fmt.Sprint(dp.DoubleValue())))
						}
					}
				}
			}
		}
	}
	return points
}

// TestScrapedEngine: of the gauges of an engine that is scraped by the stock receiver, repeats are held back and changes go
// on; when the engine is gone its staleness markers go on, and when it is back so does its first value, also the same one.
func TestScrapedEngine(t *testing.T) {
	var running atomic.Int64
	var down atomic.Bool
	scrapes := atomic.Int64{}
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		scrapes.Add(1)
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprintf(w, "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{model_name=\"m\"} %d\n", running.Load())
	}))
	defer engine.Close()

	c := startCollector(t, `
receivers:
  prometheus:
    config:
      scrape_configs:
        - job_name: vllm
          scrape_interval: 50ms
          scrape_timeout: 50ms
          static_configs: [{targets: ["`+strings.TrimPrefix(engine.URL, "http://")+`"]}]
processors: {gauge_dedup: {refresh_interval: 0}}
exporters: {capture: {}}
`+pipelineOf("prometheus", "gauge_dedup", "capture"))

	const name = "vllm:num_requests_running"
	arrives := func(want ...seen) {
		t.Helper()
		require.Eventually(t, func() bool { return slices.Equal(gaugePoints(c.arrived(), name), want) },
			20*time.Second, 10*time.Millisecond, "want %v", want)
	}
	scraped := func(times int64) {
		t.Helper()
		until := scrapes.Load() + times
		require.Eventually(t, func() bool { return scrapes.Load() >= until }, 20*time.Second, 10*time.Millisecond)
	}
	running.Store(3)
	arrives("3")
	scraped(5)
	arrives("3")
	running.Store(4)
	arrives("3", "4")
	scraped(5)
	arrives("3", "4")
	down.Store(true)
	arrives("3", "4", ended)
	down.Store(false)
	arrives("3", "4", ended, "4")
	scraped(5)
	arrives("3", "4", ended, "4")
}
