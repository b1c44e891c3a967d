// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-fpm/otelcol-fpm/receiver/fpmbenchmarkreceiver/internal/metadata"
)

// NewFactory makes the factory of the receiver fpm_benchmark.
func NewFactory() receiver.Factory {
	instances := &instances{byConfig: make(map[component.Config]*benchmarkReceiver)}
	return receiver.NewFactory(
		metadata.Type,
		createDefaultConfig,
		receiver.WithMetrics(instances.createMetrics, metadata.MetricsStability),
		receiver.WithLogs(instances.createLogs, metadata.LogsStability),
	)
}

// instances shares one receiver among the signals of one configuration: a run is
// read once for both.
type instances struct {
	mu       sync.Mutex
	byConfig map[component.Config]*benchmarkReceiver
}

func (s *instances) createMetrics(_ context.Context, settings receiver.Settings, config component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	r := s.get(settings, config)
	r.metrics = next
	return r, nil
}

func (s *instances) createLogs(_ context.Context, settings receiver.Settings, config component.Config, next consumer.Logs) (receiver.Logs, error) {
	r := s.get(settings, config)
	r.logs = next
	return r, nil
}

func (s *instances) get(settings receiver.Settings, config component.Config) *benchmarkReceiver {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.byConfig[config]; r != nil {
		return r
	}
	r := newReceiver(config.(*Config), settings, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.byConfig, config)
	})
	s.byConfig[config] = r
	return r
}
