// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-fpm/otelcol-fpm/exporter/fpmtraceexporter/internal/metadata"
	"github.com/otelcol-fpm/otelcol-fpm/internal/lograte"
	"github.com/otelcol-fpm/otelcol-fpm/internal/segment"
)

// The reasons for which a record that was taken is not written.
const (
	// reasonInvalid: the record is not a version 1 forward pass.
	reasonInvalid = "invalid"
	// reasonIncomplete: the metrics of the pass did not all come together.
	reasonIncomplete = "incomplete"
	// reasonFolded: the metrics of the pass were added up with others'.
	reasonFolded = "folded"
	// reasonQueueFull: the oldest row went because queue_size or queue_bytes was
	// reached.
	reasonQueueFull = "queue_full"
	// reasonKeyLimit: a waiting record went because its key was forgotten to
	// keep max_keys.
	reasonKeyLimit = "key_limit"
	// reasonProducerLimit: too many writers beyond max_open_producers were still
	// closing.
	reasonProducerLimit = "producer_limit"
	// reasonWriteError: the last attempt to write the row failed, at shutdown or
	// when its writer was closed to keep max_open_producers.
	reasonWriteError = "write_error"
	// reasonShutdown: the deadline of the shutdown came first.
	reasonShutdown = "shutdown"
)

const (
	outcomeWritten    = "written"
	outcomeSuperseded = "superseded"
)

// telemetry is the exporter's own: the counters of the ledger, and log lines
// at a bounded rate.
//
// Records taken are rows{written} + rows{superseded} + dropped, once all is
// quiet (every scenario of the tests asserts it).
type telemetry struct {
	logger  *zap.Logger
	builder *metadata.TelemetryBuilder
	limiter lograte.Limiter

	written, superseded      metric.MeasurementOption
	uncompressed, compressed metric.MeasurementOption
	reasons                  map[string]metric.MeasurementOption
}

func newTelemetry(set component.TelemetrySettings) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	t := &telemetry{
		logger:       set.Logger,
		builder:      builder,
		written:      label("outcome", outcomeWritten),
		superseded:   label("outcome", outcomeSuperseded),
		uncompressed: label("kind", "uncompressed"),
		compressed:   label("kind", "compressed"),
		reasons:      map[string]metric.MeasurementOption{},
	}
	for _, reason := range []string{
		reasonInvalid, reasonIncomplete, reasonFolded, reasonQueueFull, reasonKeyLimit, reasonProducerLimit, reasonWriteError, reasonShutdown,
	} {
		t.reasons[reason] = label("reason", reason)
	}
	return t, nil
}

func label(key, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))
}

// count counts records that will not be written.
func (t *telemetry) count(reason string, records int) {
	t.builder.ExporterFpmTraceDropped.Add(context.Background(), int64(records), t.reasons[reason])
}

// drop counts them and says so.
func (t *telemetry) drop(reason, source string, records int, fields ...zap.Field) {
	if records == 0 {
		return
	}
	t.count(reason, records)
	fields = append(fields, zap.String("reason", reason), zap.String("producer_id", source), zap.Int("records", records))
	t.warn(lograte.Key{Source: source, Reason: reason}, "forward passes are not written to the trace", fields...)
}

func (t *telemetry) supersede(records int) {
	if records > 0 {
		t.builder.ExporterFpmTraceRows.Add(context.Background(), int64(records), t.superseded)
	}
}

// report counts what a write did. Troubles are logged; they did not cost a
// row that was not written yet.
func (t *telemetry) report(source string, report *segment.Report) {
	ctx := context.Background()
	if report.Lines > 0 {
		t.builder.ExporterFpmTraceRows.Add(ctx, int64(report.Lines), t.written)
		t.builder.ExporterFpmTraceBytes.Add(ctx, report.Text, t.uncompressed)
		t.builder.ExporterFpmTraceBytes.Add(ctx, report.File, t.compressed)
	}
	if report.Rolls > 0 {
		t.builder.ExporterFpmTraceRolls.Add(ctx, int64(report.Rolls))
	}
	t.pruned(report.Pruned)
	for _, trouble := range report.Troubles {
		t.trouble(source, trouble)
	}
}

func (t *telemetry) pruned(segments int) {
	if segments > 0 {
		t.builder.ExporterFpmTracePruned.Add(context.Background(), int64(segments))
	}
}

// trouble counts and logs what went wrong with one file.
func (t *telemetry) trouble(source string, err error) {
	t.builder.ExporterFpmTraceWriteErrors.Add(context.Background(), 1)
	t.warn(lograte.Key{Source: source, Reason: "trouble"}, "trouble with a trace file", zap.Error(err))
}

// writeFailed counts and logs a failed attempt to write. It usually concerns
// all producers, so that all share one line.
func (t *telemetry) writeFailed(err error) {
	t.builder.ExporterFpmTraceWriteErrors.Add(context.Background(), 1)
	t.warn(lograte.Key{Reason: "write"}, "traces cannot be written, their rows are kept while the queue lasts", zap.Error(err))
}

func (t *telemetry) warn(key lograte.Key, message string, fields ...zap.Field) {
	show, hidden := t.limiter.Allow(key, time.Now())
	if !show {
		return
	}
	if hidden > 0 {
		fields = append(fields, zap.Int("not_shown", hidden))
	}
	t.logger.Warn(message, fields...)
}
