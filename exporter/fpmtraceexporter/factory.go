// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/otelcol-fpm/otelcol-fpm/exporter/fpmtraceexporter/internal/metadata"
	"github.com/otelcol-fpm/otelcol-fpm/internal/shared"
)

// NewFactory creates the factory of fpm_trace. The metrics and the logs
// exporter of one configuration are one instance: they write the same files.
func NewFactory() exporter.Factory {
	return newFactory(&shared.Instances[*instance]{})
}

func newFactory(instances *shared.Instances[*instance]) exporter.Factory {
	handleOf := func(set exporter.Settings, cfg component.Config) *handle {
		return &handle{instance: instances.Of(cfg, func(forget func()) *instance {
			return &instance{exporter: newTraceExporter(set, cfg.(*Config)), forget: forget}
		})}
	}
	return exporter.NewFactory(
		metadata.Type,
		createDefaultConfig,
		exporter.WithMetrics(func(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
			h := handleOf(set, cfg)
			return exporterhelper.NewMetrics(ctx, set, cfg, h.exporter.consumeMetrics, h.options()...)
		}, metadata.MetricsStability),
		exporter.WithLogs(func(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Logs, error) {
			h := handleOf(set, cfg)
			return exporterhelper.NewLogs(ctx, set, cfg, h.exporter.consumeLogs, h.options()...)
		}, metadata.LogsStability),
	)
}

// options are the same for both signals. Nothing of what exporterhelper offers
// is needed beside its own telemetry: the queue is ours, and a record that was
// taken cannot fail any more.
func (h *handle) options() []exporterhelper.Option {
	return []exporterhelper.Option{
		exporterhelper.WithStart(h.start),
		exporterhelper.WithShutdown(h.shutdown),
		exporterhelper.WithCapabilities(consumer.Capabilities{MutatesData: false}),
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{Timeout: 0}),
	}
}
