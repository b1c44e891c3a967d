// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
	"github.com/otelcol-fpm/otelcol-fpm/receiver/fpmbenchmarkreceiver/internal/metadata"
)

// ledger accounts for files and runs in the receiver's own telemetry.
//
// Invariant: every version of a file that was looked into counts once in files,
// and every run that is done with, once in runs; files{rejected} is the sum of
// rejected, but for the reason limit, whose files nobody looked into.
type ledger struct {
	counters *metadata.TelemetryBuilder
}

// runOutcome is what became of a run.
type runOutcome string

const (
	// runValid: delivered, and no rule is violated.
	runValid runOutcome = "valid"
	// runInvalid: delivered, and a rule is violated.
	runInvalid runOutcome = "invalid"
	// runIncomplete: delivered, and ranks are missing.
	runIncomplete runOutcome = "incomplete"
	// runRefused: the next consumer refused some or all of it for good.
	runRefused runOutcome = "refused"
	// runLost: its files were gone before it was delivered.
	runLost runOutcome = "lost"
)

// begin makes the series that every receiver has visible before they count.
func (l ledger) begin() {
	for _, o := range []outcome{fileTaken, fileDuplicate, fileIgnored, fileRejected} {
		l.counters.ReceiverFpmBenchmarkFiles.Add(context.Background(), 0, withOutcome(string(o)))
	}
	for _, o := range []runOutcome{runValid, runInvalid, runIncomplete, runRefused, runLost} {
		l.counters.ReceiverFpmBenchmarkRuns.Add(context.Background(), 0, withOutcome(string(o)))
	}
}

func withOutcome(name string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("outcome", name))
}

func (l ledger) file(o outcome) {
	l.counters.ReceiverFpmBenchmarkFiles.Add(context.Background(), 1, withOutcome(string(o)))
}

func (l ledger) rejected(reason benchmark.Reason) {
	l.counters.ReceiverFpmBenchmarkRejected.Add(context.Background(), 1, metric.WithAttributes(attribute.String("reason", string(reason))))
}

func (l ledger) run(o runOutcome) {
	l.counters.ReceiverFpmBenchmarkRuns.Add(context.Background(), 1, withOutcome(string(o)))
}
