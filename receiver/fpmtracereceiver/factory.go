// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-fpm/otelcol-fpm/internal/shared"
	"github.com/otelcol-fpm/otelcol-fpm/receiver/fpmtracereceiver/internal/metadata"
)

// NewFactory makes the factory of the receiver fpm_trace.
func NewFactory() receiver.Factory {
	var receivers shared.Instances[*traceReceiver]
	of := func(settings receiver.Settings, config component.Config) *traceReceiver {
		return receivers.Of(config, func(forget func()) *traceReceiver { return newReceiver(config.(*Config), settings, forget) })
	}
	return receiver.NewFactory(
		metadata.Type,
		createDefaultConfig,
		receiver.WithMetrics(func(_ context.Context, settings receiver.Settings, config component.Config, next consumer.Metrics) (receiver.Metrics, error) {
			r := of(settings, config)
			r.metrics = next
			return r, nil
		}, metadata.MetricsStability),
		receiver.WithLogs(func(_ context.Context, settings receiver.Settings, config component.Config, next consumer.Logs) (receiver.Logs, error) {
			r := of(settings, config)
			r.logs = next
			return r, nil
		}, metadata.LogsStability),
	)
}
