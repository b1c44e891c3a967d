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
)

// NewFactory creates the factory of fpm_trace. The metrics and the logs
// exporter of one configuration are one instance: they write the same files.
func NewFactory() exporter.Factory {
	return newFactory(&instances{byConfig: map[*Config]*instance{}})
}

func newFactory(instances *instances) exporter.Factory {
	return exporter.NewFactory(
		metadata.Type,
		createDefaultConfig,
		exporter.WithMetrics(func(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
			handle, err := instances.handle(set, cfg.(*Config))
			if err != nil {
				return nil, err
			}
			return exporterhelper.NewMetrics(ctx, set, cfg, handle.exporter().consumeMetrics, handle.options()...)
		}, metadata.MetricsStability),
		exporter.WithLogs(func(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Logs, error) {
			handle, err := instances.handle(set, cfg.(*Config))
			if err != nil {
				return nil, err
			}
			return exporterhelper.NewLogs(ctx, set, cfg, handle.exporter().consumeLogs, handle.options()...)
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
