// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package stocktest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// last returns what a backend knows in the end: of each metric the last point, delta points added up.
func last(batches []pmetric.Metrics) (t totals) {
	for _, md := range batches {
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					t.read(m)
				}
			}
		}
	}
	return t
}

func (t *totals) read(m pmetric.Metric) {
	switch m.Name() {
	case "fpm.queued.decode.requests":
		for _, dp := range m.Gauge().DataPoints().All() {
			t.queued = dp.IntValue()
		}
	case "fpm.messages":
		for _, dp := range m.Sum().DataPoints().All() {
			t.counter = dp.IntValue()
		}
	case "fpm.decode.tokens":
		for _, dp := range m.Sum().DataPoints().All() {
			if m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityCumulative {
				t.tokens = 0
			}
			t.tokens += dp.IntValue()
		}
	case "fpm.decode.token_latency":
		for _, dp := range m.Histogram().DataPoints().All() {
			if m.Histogram().AggregationTemporality() == pmetric.AggregationTemporalityCumulative || t.latency == nil {
				t.latencyCount, t.latencySum, t.latency = 0, 0, make([]uint64, len(bounds)+1)
			}
			t.latencyCount += dp.Count()
			t.latencySum += dp.Sum()
			for i, count := range dp.BucketCounts().AsRaw() {
				t.latency[i] += count
			}
		}
	case "fpm.step.duration":
		for _, dp := range m.ExponentialHistogram().DataPoints().All() {
			if m.ExponentialHistogram().AggregationTemporality() == pmetric.AggregationTemporalityCumulative {
				t.steps, t.stepSum = 0, 0
			}
			t.steps += dp.Count()
			t.stepSum += dp.Sum()
		}
	}
}

func checkTotals(t *testing.T, want, have totals) {
	t.Helper()
	assert.InEpsilon(t, want.latencySum, have.latencySum, 1e-12)
	assert.InEpsilon(t, want.stepSum, have.stepSum, 1e-12)
	have.latencySum, have.stepSum = want.latencySum, want.stepSum
	assert.Equal(t, want, have)
}

// TestStockProcessors: delta_to_cumulative and interval after gauge_dedup leave the totals alone, whatever gauge_dedup's
// temporality; and delta_to_cumulative loses nothing that comes with delta temporality.
func TestStockProcessors(t *testing.T) {
	tests := []struct{ name, dedup, after string }{
		{"none", "{}", ""},
		{"none, delta", "{histograms: {temporality: delta}, sums: {temporality: delta}}", ""},
		{"delta_to_cumulative", "{}", "delta_to_cumulative"},
		{"delta_to_cumulative, delta", "{histograms: {temporality: delta}, sums: {temporality: delta}}", "delta_to_cumulative"},
		{"interval", "{}", "interval"},
		{"both", "{histograms: {temporality: delta}, sums: {temporality: delta}}", "delta_to_cumulative, interval"},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			processors := "gauge_dedup"
			if tt.after != "" {
				processors += ", " + tt.after
			}
			c := startCollector(t, `
receivers: {inject: {}}
processors: {gauge_dedup: `+tt.dedup+`, delta_to_cumulative: {}, interval: {interval: 50ms}}
exporters: {capture: {}}
`+pipelineOf("inject", processors, "capture"))
			e := newEngine(uint64(10+i), "gpu-7:20380", time.Now().Add(-time.Minute))
			for range 30 {
				c.consume(e.batch(1 + e.IntN(20)))
			}
			want := e.totals()
			require.Eventually(t, func() bool { return last(c.arrived()).steps == want.steps }, 10*time.Second, 10*time.Millisecond)
			checkTotals(t, want, last(c.arrived()))
			require.Empty(t, c.logs.All(), "nothing is dropped or out of order")
		})
	}
}
