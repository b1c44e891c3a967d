// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
)

// backend takes metrics over OTLP/HTTP with the Collector's own receiver.
type backend struct {
	consumertest.MetricsSink
	address string
}

func startBackend(t *testing.T) *backend {
	t.Helper()
	b := &backend{address: harness.Address(t)}
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"protocols": map[string]any{"http": map[string]any{"endpoint": b.address}},
	}).Unmarshal(config))
	otlp, err := factory.CreateMetrics(t.Context(), receiver.Settings{
		ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings(),
	}, config, &b.MetricsSink)
	require.NoError(t, err)
	require.NoError(t, otlp.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, otlp.Shutdown(t.Context())) })
	return b
}

// passes are the latest counts of fpm.step.duration, by rank, of all processes
// that counted together.
func (b *backend) passes() map[int64]uint64 {
	counted := counts{}
	for _, batch := range b.AllMetrics() {
		counted.add(batch, "fpm.step.duration", "fpm.dp_rank")
	}
	return counted.byRank()
}

// counts are the latest counts of cumulative histograms by rank and start time,
// which a process that counts anew has for itself.
type counts map[stream]uint64

type stream struct {
	rank  int64
	start pcommon.Timestamp
}

// add takes the counts of a metric where they are larger than those that are
// there.
func (c counts) add(batch pmetric.Metrics, metric, rankAttribute string) {
	for _, rm := range batch.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() != metric {
					continue
				}
				for _, p := range m.Histogram().DataPoints().All() {
					rank, _ := p.Attributes().Get(rankAttribute)
					of := stream{rank.Int(), p.StartTimestamp()}
					c[of] = max(c[of], p.Count())
				}
			}
		}
	}
}

func (c counts) byRank() map[int64]uint64 {
	sums := map[int64]uint64{}
	for of, count := range c {
		sums[of.rank] += count
	}
	return sums
}

// passesOf are the passes with a duration that were sent, by rank.
func passesOf(sent map[int][]harness.Sent) map[int64]uint64 {
	passes := map[int64]uint64{}
	for rank, messages := range sent {
		passes[int64(rank)] = uint64(harness.TotalsOf(messages).Passes)
	}
	return passes
}
