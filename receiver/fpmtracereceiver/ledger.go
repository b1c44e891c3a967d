// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-fpm/otelcol-fpm/receiver/fpmtracereceiver/internal/metadata"
)

// ledger accounts for every line in the receiver's own telemetry.
//
// Invariant (asserted at the end of every behaviour test): once all is quiet,
// for each signal that has a pipeline,
//
//	lines decompressed = rows{accepted} + rows{no_envelope} + rows{rejected}
//	rows{rejected} = rejected(all reasons)
//	rows{accepted} + rows{no_envelope} = delivered(signal) + dropped(signal)
//
// A line counts when its batch is settled. One that a shutdown has left
// unsettled is read again, and counts then.
type ledger struct {
	counters *metadata.TelemetryBuilder
}

// Reasons and outcomes beside those of the row reader.
const (
	// rejectedOversize: a line over maxRowBytes.
	rejectedOversize = "oversize"
	// droppedRefused: the next consumer refused for good.
	droppedRefused = "refused"

	// skippedTorn: the end of a file that is no longer written is incomplete.
	skippedTorn = "torn"
	// skippedCorrupt: bytes in front of a member that verifies, or of the end.
	skippedCorrupt = "corrupt"
	// skippedRemoved: the file was removed or replaced before it was read to its
	// end.
	skippedRemoved = "removed"

	memberWhole = "whole"
)

func with(key, value string) metric.AddOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))
}

// begin makes the series that every receiver has visible before they count.
func (l ledger) begin() {
	ctx := context.Background()
	for _, outcome := range []string{"accepted", "no_envelope", "rejected"} {
		l.counters.ReceiverFpmTraceRows.Add(ctx, 0, with("outcome", outcome))
	}
	for _, outcome := range []string{memberWhole, skippedTorn, skippedCorrupt} {
		l.counters.ReceiverFpmTraceMembers.Add(ctx, 0, with("outcome", outcome))
	}
	for _, reason := range []string{skippedTorn, skippedCorrupt, skippedRemoved} {
		l.counters.ReceiverFpmTraceSkippedBytes.Add(ctx, 0, with("reason", reason))
	}
	l.counters.ReceiverFpmTraceOverflow.Add(ctx, 0)
}

// settled counts the lines of a batch.
func (l ledger) settled(t *tally) {
	ctx := context.Background()
	rejected := 0
	for reason, lines := range t.rejected {
		rejected += lines
		l.counters.ReceiverFpmTraceRejected.Add(ctx, int64(lines), with("reason", reason))
	}
	for outcome, lines := range map[string]int{"accepted": t.accepted, "no_envelope": t.noEnvelope, "rejected": rejected} {
		if lines > 0 {
			l.counters.ReceiverFpmTraceRows.Add(ctx, int64(lines), with("outcome", outcome))
		}
	}
}

func (l ledger) delivered(s signal, rows int) {
	l.counters.ReceiverFpmTraceDelivered.Add(context.Background(), int64(rows), with("signal", s.String()))
}

func (l ledger) dropped(s signal, reason string, rows int) {
	l.counters.ReceiverFpmTraceDropped.Add(context.Background(), int64(rows),
		metric.WithAttributes(attribute.String("signal", s.String()), attribute.String("reason", reason)))
}

func (l ledger) member() {
	l.counters.ReceiverFpmTraceMembers.Add(context.Background(), 1, with("outcome", memberWhole))
}

// skipped counts bytes that are not read, and, unless they were removed, a place
// where no member verifies.
func (l ledger) skipped(reason string, bytes int64) {
	ctx := context.Background()
	l.counters.ReceiverFpmTraceSkippedBytes.Add(ctx, bytes, with("reason", reason))
	if reason != skippedRemoved {
		l.counters.ReceiverFpmTraceMembers.Add(ctx, 1, with("outcome", reason))
	}
}

func (l ledger) overflowed(observations int) {
	if observations > 0 {
		l.counters.ReceiverFpmTraceOverflow.Add(context.Background(), int64(observations))
	}
}
