// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-fpm/otelcol-fpm/internal/shared"
	"github.com/otelcol-fpm/otelcol-fpm/receiver/fpmbenchmarkreceiver/internal/metadata"
)

// NewFactory makes the factory of the receiver fpm_benchmark.
func NewFactory() receiver.Factory {
	f := &factory{}
	return receiver.NewFactory(
		metadata.Type,
		createDefaultConfig,
		receiver.WithMetrics(f.createMetrics, metadata.MetricsStability),
		receiver.WithLogs(f.createLogs, metadata.LogsStability),
	)
}

// factory shares one receiver among the signals of one configuration: a run is
// read once for both.
type factory struct {
	instances shared.Instances[*benchmarkReceiver]
}

func (f *factory) createMetrics(_ context.Context, settings receiver.Settings, config component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	r := f.get(settings, config)
	r.metrics = next
	return r, nil
}

func (f *factory) createLogs(_ context.Context, settings receiver.Settings, config component.Config, next consumer.Logs) (receiver.Logs, error) {
	r := f.get(settings, config)
	r.logs = next
	return r, nil
}

func (f *factory) get(settings receiver.Settings, config component.Config) *benchmarkReceiver {
	return f.instances.Of(config, func(forget func()) *benchmarkReceiver {
		return newReceiver(config.(*Config), settings, forget)
	})
}
