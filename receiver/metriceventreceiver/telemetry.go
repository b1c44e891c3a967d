// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelmetric "go.opentelemetry.io/otel/metric"
)

// startTelemetry shows connections, queue and producers as they are when
// somebody looks.
func (r *metricEventReceiver) startTelemetry() error {
	builder := r.ledger.counters
	ofProducer := func(value func(*producer) int64) func(context.Context, otelmetric.Int64Observer) error {
		return func(_ context.Context, o otelmetric.Int64Observer) error {
			for _, p := range r.producers.list() {
				p.mu.Lock()
				n := value(p)
				p.mu.Unlock()
				o.Observe(n, otelmetric.WithAttributes(attribute.String("producer", p.id)))
			}
			return nil
		}
	}
	of := func(value func() int) func(context.Context, otelmetric.Int64Observer) error {
		return func(_ context.Context, o otelmetric.Int64Observer) error {
			o.Observe(int64(value()))
			return nil
		}
	}
	return errors.Join(
		builder.RegisterReceiverMetricEventConnectionsCallback(of(r.server.connections)),
		builder.RegisterReceiverMetricEventQueueLengthCallback(of(r.delivery.queue.waiting)),
		builder.RegisterReceiverMetricEventProducersCallback(of(r.producers.count)),
		builder.RegisterReceiverMetricEventSeriesCallback(of(func() int { return int(r.producers.series.Load()) })),
		builder.RegisterReceiverMetricEventProducerAcceptedCallback(ofProducer(func(p *producer) int64 { return p.accepted })),
		builder.RegisterReceiverMetricEventProducerDroppedCallback(ofProducer(func(p *producer) int64 { return p.continuity.dropped() })),
		builder.RegisterReceiverMetricEventProducerLostCallback(ofProducer(func(p *producer) int64 { return p.continuity.lost(time.Now()) })),
	)
}
