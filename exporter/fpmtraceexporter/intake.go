// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
	"github.com/otelcol-fpm/otelcol-fpm/internal/lograte"
)

// intake turns one call of a consumer into events and hands them on in portions,
// so that their text, for which it keeps the memory, is not as large as a call.
type intake struct {
	events  []byte
	records []record
	refused []refusal
	passes  *fpm.Reconstructor
	// folded tells whether the call brought metrics that were added up.
	folded bool
}

// A portion is small for the caches, and large beside what taking the lock costs.
const (
	portionBytes    = 256 << 10 // of text
	portionRefusals = 1 << 10
)

// record is a forward pass whose event lies in the intake's buffer.
type record struct {
	key        sampleKey
	counter    int64
	start, end int
}

// refusal is a record that will not be written.
type refusal struct {
	reason, source string
	err            error
}

func newIntake() *intake { return &intake{passes: fpm.NewReconstructor()} }

// handOn gives what was read to take and lets go of it. A buffer that one large
// record has blown up is not kept.
func (in *intake) handOn(take func(*intake)) {
	if len(in.records)+len(in.refused) == 0 {
		return
	}
	take(in)
	if cap(in.events) > 2*portionBytes {
		in.events = nil
	}
	in.events = in.events[:0]
	clear(in.records)
	in.records = in.records[:0]
	clear(in.refused)
	in.refused = in.refused[:0]
}

func (in *intake) full() bool {
	return len(in.events) >= portionBytes || len(in.refused) >= portionRefusals
}

func (in *intake) event(r *record) []byte { return in.events[r.start:r.end] }

// logs reads log records of forward passes. Other events are not ours. It calls
// take with each portion, which is good until take returns.
func (in *intake) logs(logs plog.Logs, mode string, take func(*intake)) {
	for _, resource := range logs.ResourceLogs().All() {
		source := fpm.SourceOf(resource.Resource())
		for _, scope := range resource.ScopeLogs().All() {
			for _, entry := range scope.LogRecords().All() {
				if name := entry.EventName(); name == fpm.EventForwardPass || name == "" {
					in.log(source, entry, mode)
				}
				if in.full() {
					in.handOn(take)
				}
			}
		}
	}
	in.handOn(take)
}

func (in *intake) log(source fpm.Source, entry plog.LogRecord, mode string) {
	checked, err := fpm.ValidateBody(entry.Body())
	if err != nil {
		in.refuse(reasonInvalid, source, err)
		return
	}
	envelope := fpm.Envelope{Source: source, CaptureMode: mode, ObservedAt: observedAt(entry)}
	if captured, ok := entry.Attributes().Get(fpm.AttrCaptureMode); ok && captured.AsString() == fpm.CaptureSampled {
		envelope.CaptureMode = fpm.CaptureSampled // however often it is written again
	}
	start := len(in.events)
	in.events = fpm.AppendEvent(in.events, &envelope, entry.Body().Map(), &checked)
	in.records = append(in.records, record{
		key:     sampleKey{Source: source, WorkerID: checked.WorkerID, DPRank: checked.DPRank},
		counter: checked.CounterID, start: start, end: len(in.events),
	})
}

// observedAt is when the record was observed, or, when it does not say so, now.
func observedAt(entry plog.LogRecord) int64 {
	at := entry.ObservedTimestamp()
	if at == 0 {
		at = entry.Timestamp()
	}
	if at == 0 {
		return time.Now().UnixMilli()
	}
	return milliseconds(at)
}

func milliseconds(at pcommon.Timestamp) int64 { return int64(at / pcommon.Timestamp(time.Millisecond)) }

// metrics rebuilds forward passes and does with them as logs does.
func (in *intake) metrics(metrics pmetric.Metrics, mode string, take func(*intake)) {
	passes := in.passes.Metrics(metrics)
	in.folded = false
	for i := range passes {
		in.folded = in.folded || passes[i].Completeness() == fpm.Folded
	}
	for i := range passes {
		in.pass(&passes[i], mode)
		if in.full() {
			in.handOn(take)
		}
	}
	in.handOn(take)
}

func (in *intake) pass(pass *fpm.Rebuilt, mode string) {
	switch pass.Completeness() {
	case fpm.Folded:
		in.refuse(reasonFolded, pass.Source, nil)
		return
	case fpm.Incomplete:
		in.refuse(reasonIncomplete, pass.Source, errors.New("did not come with "+pass.Missing()))
		return
	}
	if err := fpm.ValidateRecord(&pass.Record); err != nil {
		in.refuse(reasonInvalid, pass.Source, err)
		return
	}
	envelope := fpm.Envelope{Source: pass.Source, CaptureMode: mode, ObservedAt: milliseconds(pass.Time)}
	start := len(in.events)
	in.events = fpm.AppendRecordEvent(in.events, &envelope, &pass.Record)
	in.records = append(in.records, record{
		key:     sampleKey{Source: pass.Source, WorkerID: pass.Record.WorkerID, DPRank: pass.Record.DPRank},
		counter: pass.Record.CounterID, start: start, end: len(in.events),
	})
}

func (in *intake) refuse(reason string, source fpm.Source, err error) {
	in.refused = append(in.refused, refusal{reason: reason, source: source.ProducerID, err: err})
}

// foldedWarning tells what to do about metrics that were added up.
const foldedWarning = "metrics that were folded over several forward passes cannot be written to a trace: " +
	"fpm_trace belongs before gauge_dedup, in a pipeline without it, and behind a receiver without gauge_interval"

// incompleteWarning does the same for passes that lack metrics.
const incompleteWarning = "a forward pass did not come with all its metrics in one batch and cannot be written to a trace: " +
	"fpm_trace must get them unfiltered, unbatched, before gauge_dedup and from a receiver without gauge_interval, or better the logs"

func (e *traceExporter) consumeLogs(_ context.Context, logs plog.Logs) error {
	return e.consume(func(in *intake) { in.logs(logs, e.mode, e.accept) })
}

func (e *traceExporter) consumeMetrics(_ context.Context, metrics pmetric.Metrics) error {
	return e.consume(func(in *intake) { in.metrics(metrics, e.mode, e.accept) })
}

// consume takes all of a call or nothing.
func (e *traceExporter) consume(read func(*intake)) error {
	if !e.beginCall() {
		return errNotRunning
	}
	defer e.calls.Done()
	if !e.cfg.Enabled {
		return nil
	}
	in := e.intakes.Get().(*intake)
	defer e.intakes.Put(in)
	read(in)
	return nil
}

// tellRefused counts the refused records, reason by reason and producer by
// producer; the log line names the last one.
func (e *traceExporter) tellRefused(in *intake) {
	for i := 0; i < len(in.refused); {
		first, records := in.refused[i], 1
		for i++; i < len(in.refused) && in.refused[i].reason == first.reason && in.refused[i].source == first.source; i++ {
			first, records = in.refused[i], records+1
		}
		switch first.reason {
		case reasonFolded:
			e.telemetry.count(reasonFolded, records)
			e.telemetry.warn(lograte.Key{Source: "metrics", Reason: reasonFolded}, foldedWarning, zap.String("producer_id", first.source))
		case reasonIncomplete:
			e.telemetry.count(reasonIncomplete, records)
			if !in.folded { // else that is the cause
				e.telemetry.warn(lograte.Key{Source: "metrics", Reason: reasonIncomplete}, incompleteWarning,
					zap.String("producer_id", first.source), zap.Error(first.err))
			}
		default:
			e.telemetry.drop(first.reason, first.source, records, zap.Error(first.err))
		}
	}
}
