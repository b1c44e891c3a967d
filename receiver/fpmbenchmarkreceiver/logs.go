// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"cmp"
	"context"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
	"github.com/otelcol-fpm/otelcol-fpm/receiver/fpmbenchmarkreceiver/internal/metadata"
)

const (
	// maxBatchBytes bounds the JSON text of the events of one batch, maxBatchEvents
	// their number: OTLP over gRPC takes 4 MiB unless told otherwise. A single
	// larger event goes alone.
	maxBatchBytes  = 512 << 10
	maxBatchEvents = 256
)

// logBatches cuts the events of a run into batches and hands them on.
type logBatches struct {
	ctx      context.Context
	receiver *benchmarkReceiver
	run      *trackedRun
	source   *source
	// skip is how many batches are done with.
	skip int

	logs   plog.Logs
	scope  plog.ScopeLogs
	bytes  int
	events int
}

// sendLogs hands on the batches from number from on: run, violations, engine,
// warm-ups, points.
func (r *benchmarkReceiver) sendLogs(ctx context.Context, run *trackedRun, s *source, from int) error {
	b := &logBatches{ctx: ctx, receiver: r, run: run, source: s, skip: from}
	b.begin()
	for _, event := range s.events() {
		if err := b.add(event.bytes, event.fill); err != nil {
			return err
		}
	}
	if err := b.addPoints(); err != nil {
		return err
	}
	return b.flush()
}

// addPoints adds the events of all points, file by file. Only the first file is
// still in memory.
func (b *logBatches) addPoints() error {
	s := b.source
	for _, h := range b.run.members() {
		if !s.run.Contributes(h.path) {
			continue
		}
		a := s.reference
		if h.path != a.File {
			loaded, err := b.receiver.load(b.run, h)
			if err != nil {
				return err
			}
			a = loaded
		}
		for result := range s.run.Results(a) {
			if err := b.add(len(result.FPMs.JSON())+len(result.Point.JSON()), func(record plog.LogRecord) { s.pointEvent(record, &result) }); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *logBatches) begin() {
	b.logs = plog.NewLogs()
	resource := b.logs.ResourceLogs().AppendEmpty()
	b.source.resource.CopyTo(resource.Resource())
	b.scope = resource.ScopeLogs().AppendEmpty()
	b.source.setScope(b.scope.Scope())
	b.bytes, b.events = 0, 0
}

// add adds an event of about so many bytes of JSON. Those of a batch that is
// done with are counted, not built.
func (b *logBatches) add(bytes int, fill func(plog.LogRecord)) error {
	if b.events > 0 && (b.bytes+bytes > maxBatchBytes || b.events == maxBatchEvents) {
		if err := b.flush(); err != nil {
			return err
		}
	}
	b.bytes += bytes
	b.events++
	if b.skip > 0 {
		return nil
	}
	record := b.scope.LogRecords().AppendEmpty()
	record.SetTimestamp(b.source.time)
	record.SetObservedTimestamp(b.source.observed)
	fill(record)
	record.Attributes().PutBool("fpm.benchmark.valid", b.source.run.Valid)
	if valid := b.source.run.ArtifactValid; valid != nil {
		record.Attributes().PutBool("fpm.benchmark.artifact_valid", *valid)
	}
	return nil
}

func (b *logBatches) flush() error {
	if b.skip > 0 {
		b.skip--
		b.begin()
		return nil
	}
	r := b.receiver
	count := b.events
	operation := r.report.StartLogsOp(b.ctx)
	err := r.logs.ConsumeLogs(operation, b.logs)
	r.report.EndLogsOp(operation, metadata.Type.String(), count, err)
	b.begin()
	return r.took(b.run, signalLogs, err)
}

// pointEvent is one result whole, with benchmark_measurement.
func (s *source) pointEvent(record plog.LogRecord, result *benchmark.Result) {
	record.SetEventName("fpm.benchmark.point")
	body := record.Body().SetEmptyMap()
	putValue(body.PutEmpty("point"), result.Point)
	putGiven(body, "kv_seed_regime", result.SeedRegime)
	putValue(body.PutEmpty("fpms"), result.FPMs)

	attributes := record.Attributes()
	p := s.point(result)
	if p == nil {
		putRank(attributes, result.Rank)
		attributes.PutInt("fpm.benchmark.id", result.ID)
		return
	}
	putPoint(attributes, p)
	putGiven(attributes, "fpm.benchmark.point_key", p.Key)
	if p.Observed != nil {
		attributes.PutStr("fpm.benchmark.observed_cudagraph_mode", p.Observed.Mode)
	}
	putResolved(attributes, s.run.Engine.RankProbes[result.Rank])
}

// point finds a result's point, which are sorted by id and rank.
func (s *source) point(result *benchmark.Result) *benchmark.Point {
	index, found := slices.BinarySearchFunc(s.run.Points, result, func(p benchmark.Point, wanted *benchmark.Result) int {
		return cmp.Or(cmp.Compare(p.ID, wanted.ID), cmp.Compare(p.Rank, wanted.Rank))
	})
	if !found {
		return nil
	}
	return &s.run.Points[index]
}

func putRanks(to pcommon.Slice, ranks []int) {
	for _, rank := range ranks {
		to.AppendEmpty().SetInt(int64(rank))
	}
}
