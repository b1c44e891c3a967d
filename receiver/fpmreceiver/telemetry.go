// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-fpm/otelcol-fpm/receiver/fpmreceiver/internal/metadata"
)

// startTelemetry makes the ledger, and shows endpoints and queues as they are
// when somebody looks.
func (r *fpmReceiver) startTelemetry() error {
	builder, err := metadata.NewTelemetryBuilder(r.settings.TelemetrySettings)
	if err != nil {
		return err
	}
	r.ledger.counters = builder
	r.ledger.begin()
	return errors.Join(
		builder.RegisterReceiverFpmConnectsCallback(func(_ context.Context, o metric.Int64Observer) error {
			for _, e := range r.endpoints {
				o.Observe(e.connects.Load(), metric.WithAttributes(attribute.String("endpoint", e.address.String())))
			}
			return nil
		}),
		// Only the state that an endpoint is in has a point: with all four, 500
		// endpoints would reach the SDK's limit of 2,000 series an instrument.
		builder.RegisterReceiverFpmEndpointStateCallback(func(_ context.Context, o metric.Int64Observer) error {
			now := time.Now()
			for _, e := range r.endpoints {
				o.Observe(1, metric.WithAttributes(
					attribute.String("endpoint", e.address.String()),
					attribute.String("state", e.state(now).String()),
				))
			}
			return nil
		}),
		builder.RegisterReceiverFpmQueueLengthCallback(func(_ context.Context, o metric.Int64Observer) error {
			r.ledger.count() // for the other instruments: who looks sees all that was accepted
			for _, run := range r.runners {
				if run != nil {
					o.Observe(int64(run.queue.length()), metric.WithAttributes(attribute.String("signal", run.signal.String())))
				}
			}
			return nil
		}),
	)
}
