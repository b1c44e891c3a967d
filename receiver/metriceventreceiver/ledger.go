// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	otelmetric "go.opentelemetry.io/otel/metric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/zmtp"
	"github.com/otelcol-fpm/otelcol-fpm/receiver/metriceventreceiver/internal/metadata"
)

// ledger accounts for every event in the receiver's own telemetry.
//
// Invariant (asserted at the end of every behaviour test): once input has ended
// and all is quiet, and after Shutdown,
//
//	events in messages read = accepted + rejected
//	accepted = delivered + dropped(all reasons)
//
// A message that is malformed as a whole counts as one event: how many it had
// cannot be told. Oversize and protocol stand apart: they close a connection
// before a message is read.
type ledger struct {
	counters *metadata.TelemetryBuilder
}

// Reasons for which accepted events are dropped.
const (
	// droppedQueueFull: the pipeline was too slow; the oldest events go.
	droppedQueueFull = "queue_full"
	// droppedRefused: the next consumer refused for good.
	droppedRefused = "refused"
	// droppedShutdown: not delivered before the end of Shutdown.
	droppedShutdown = "shutdown"
)

func with(name, value string) otelmetric.MeasurementOption {
	return otelmetric.WithAttributeSet(attribute.NewSet(attribute.String(name, value)))
}

var (
	outcomeAccepted = with("outcome", "accepted")
	outcomeRejected = with("outcome", "rejected")
)

// begin makes the series that every receiver has visible before they count.
func (l ledger) begin() {
	ctx := context.Background()
	l.counters.ReceiverMetricEventEvents.Add(ctx, 0, outcomeAccepted)
	l.counters.ReceiverMetricEventEvents.Add(ctx, 0, outcomeRejected)
	l.counters.ReceiverMetricEventDelivered.Add(ctx, 0)
}

func (l ledger) accept(events int) {
	l.counters.ReceiverMetricEventEvents.Add(context.Background(), int64(events), outcomeAccepted)
}

func (l ledger) reject(r reason, events int) {
	ctx := context.Background()
	if r != rejectedOversize && r != rejectedProtocol {
		l.counters.ReceiverMetricEventEvents.Add(ctx, int64(events), outcomeRejected)
	}
	l.counters.ReceiverMetricEventRejected.Add(ctx, int64(events), with("reason", r.String()))
}

func (l ledger) deliver(events int) {
	l.counters.ReceiverMetricEventDelivered.Add(context.Background(), int64(events))
}

func (l ledger) drop(reason string, events int) {
	l.counters.ReceiverMetricEventDropped.Add(context.Background(), int64(events), with("reason", reason))
}

// refuse counts a connection that never came to its first message.
func (l ledger) refuse(reason zmtp.Reason) {
	l.counters.ReceiverMetricEventRefused.Add(context.Background(), 1, with("reason", string(reason)))
}
