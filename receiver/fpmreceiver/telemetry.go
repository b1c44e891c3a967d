// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-fpm/otelcol-fpm/receiver/fpmreceiver/internal/metadata"
)

// startTelemetry shows the ledger and the endpoints. All instruments read what
// is counted anyway, so a message costs them nothing.
func (r *fpmReceiver) startTelemetry() error {
	builder, err := metadata.NewTelemetryBuilder(r.settings.TelemetrySettings)
	if err != nil {
		return err
	}
	r.telemetry = builder
	ledger := &r.ledger
	return errors.Join(
		builder.RegisterReceiverFpmMessagesCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(ledger.accepted.Load(), withOutcome("accepted"))
			o.Observe(ledger.duplicate.Load(), withOutcome("duplicate"))
			o.Observe(ledger.rejected.total()-ledger.rejected.snapshot()[rejectedOversize], withOutcome("rejected"))
			return nil
		}),
		builder.RegisterReceiverFpmRejectedCallback(func(_ context.Context, o metric.Int64Observer) error {
			for reason, n := range ledger.rejected.snapshot() {
				o.Observe(n, metric.WithAttributes(attribute.String("reason", reason)))
			}
			return nil
		}),
		builder.RegisterReceiverFpmSequenceMismatchCallback(observe(&ledger.sequenceMismatch)),
		builder.RegisterReceiverFpmLostCallback(observe(&ledger.lost)),
		builder.RegisterReceiverFpmRestartsCallback(observe(&ledger.restarts)),
		builder.RegisterReceiverFpmOverflowCallback(observe(&ledger.overflow)),
		builder.RegisterReceiverFpmDeliveredCallback(func(_ context.Context, o metric.Int64Observer) error {
			r.eachPipeline(func(s signal, _ *queue) {
				o.Observe(ledger.signals[s].delivered.Load(), withSignal(s))
			})
			return nil
		}),
		builder.RegisterReceiverFpmDroppedCallback(func(_ context.Context, o metric.Int64Observer) error {
			r.eachPipeline(func(s signal, _ *queue) {
				for reason, n := range ledger.signals[s].dropped.snapshot() {
					o.Observe(n, withSignal(s), metric.WithAttributes(attribute.String("reason", reason)))
				}
			})
			return nil
		}),
		builder.RegisterReceiverFpmQueueLengthCallback(func(_ context.Context, o metric.Int64Observer) error {
			r.eachPipeline(func(s signal, q *queue) {
				messages, _ := q.length()
				o.Observe(int64(messages), withSignal(s))
			})
			return nil
		}),
		builder.RegisterReceiverFpmConnectsCallback(func(_ context.Context, o metric.Int64Observer) error {
			for _, e := range r.endpoints {
				o.Observe(e.connects.Load(), metric.WithAttributes(attribute.String("endpoint", e.address.String())))
			}
			return nil
		}),
		builder.RegisterReceiverFpmEndpointStateCallback(func(_ context.Context, o metric.Int64Observer) error {
			now := time.Now()
			for _, e := range r.endpoints {
				is := e.state(now)
				for s := range stateNames {
					value := int64(0)
					if state(s) == is {
						value = 1
					}
					o.Observe(value, metric.WithAttributes(
						attribute.String("endpoint", e.address.String()), attribute.String("state", state(s).String())))
				}
			}
			return nil
		}),
	)
}

func (r *fpmReceiver) eachPipeline(f func(signal, *queue)) {
	for s, q := range r.queues {
		if q != nil {
			f(signal(s), q)
		}
	}
}

func observe(counter *atomic.Int64) metric.Int64Callback {
	return func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(counter.Load())
		return nil
	}
}

func withOutcome(outcome string) metric.ObserveOption {
	return metric.WithAttributes(attribute.String("outcome", outcome))
}

func withSignal(s signal) metric.ObserveOption {
	return metric.WithAttributes(attribute.String("signal", s.String()))
}
