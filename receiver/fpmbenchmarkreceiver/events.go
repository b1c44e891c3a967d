// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"maps"
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
)

// event is one log record to come: about how many bytes of JSON it carries, and
// how it is filled.
type event struct {
	bytes int
	fill  func(plog.LogRecord)
}

// events are the events of a run but those of its points.
func (s *source) events() []event {
	const small = 2048
	all := []event{{bytes: small + len(s.run.Protocol.JSON()), fill: s.runEvent}}
	for i := range s.run.Violations {
		v := &s.run.Violations[i]
		all = append(all, event{bytes: small, fill: func(record plog.LogRecord) { violationEvent(record, v) }})
	}
	engine := &s.run.Engine
	if engine.Block.Exists() || engine.Probe != nil {
		bytes := small + len(engine.Block.JSON())
		if engine.Probe != nil {
			bytes += len(engine.Probe.Worker.JSON())
		}
		all = append(all, event{bytes: bytes, fill: s.engineEvent})
	}
	for _, rank := range slices.Sorted(maps.Keys(engine.RankProbes)) {
		probe := engine.RankProbes[rank]
		all = append(all, event{bytes: small + len(probe.Worker.JSON()), fill: func(record plog.LogRecord) {
			record.SetEventName("fpm.benchmark.engine")
			putRank(record.Attributes(), rank)
			putProbe(record, record.Body().SetEmptyMap(), probe)
		}})
	}
	for i := range s.run.Warmups {
		w := &s.run.Warmups[i]
		all = append(all, event{bytes: small + len(w.Evidence.JSON()) + len(w.KVWarm.JSON()), fill: func(record plog.LogRecord) { warmupEvent(record, w) }})
	}
	return all
}

// runEvent says what the run was and what became of every rule.
func (s *source) runEvent(record plog.LogRecord) {
	record.SetEventName("fpm.benchmark.run")
	run := s.run
	body := record.Body().SetEmptyMap()
	body.PutInt("schema_version", run.SchemaVersion)
	body.PutStr("status", run.Status)
	putGiven(body, "stop_reason", run.StopReason)
	if run.Size > 0 {
		body.PutInt("dp_size", int64(run.Size))
	}
	if run.Coverage != nil {
		coverage := body.PutEmptyMap("coverage")
		coverage.PutInt("expected", run.Coverage.Expected)
		coverage.PutInt("completed", run.Coverage.Completed)
		coverage.PutInt("skipped", run.Coverage.Skipped)
	}
	if run.Elapsed != nil {
		body.PutDouble("elapsed_seconds", *run.Elapsed)
	}
	files := body.PutEmptySlice("files")
	for _, file := range run.Files {
		entry := files.AppendEmpty().SetEmptyMap()
		entry.PutStr("file", file.Name)
		entry.PutStr("kind", file.Kind.String())
		if file.Rank != benchmark.NoRank {
			entry.PutInt("dp_rank", int64(file.Rank))
		}
	}
	rules := body.PutEmptyMap("rules")
	violations := int64(0)
	for _, outcome := range run.Outcomes {
		rules.PutStr(outcome.Rule.Name, outcome.Verdict.String())
		violations += int64(outcome.Count)
	}
	if run.Protocol.Exists() {
		putValue(body.PutEmpty("measurement_protocol"), run.Protocol)
	}
	record.Attributes().PutInt("fpm.benchmark.violations", violations)
	record.Attributes().PutBool(postRunEvidence, run.Engine.Probe != nil && run.Engine.Probe.Scope != "")
}

// postRunEvidence is true when a worker's reply says how the engine was
// resolved.
const postRunEvidence = "fpm.engine.post_run_evidence"

func violationEvent(record plog.LogRecord, v *benchmark.Violation) {
	record.SetEventName("fpm.benchmark.violation")
	record.SetSeverityNumber(plog.SeverityNumberWarn)
	record.SetSeverityText("WARN")
	record.Body().SetStr(v.String())
	attributes := record.Attributes()
	attributes.PutStr("fpm.benchmark.rule", v.Rule.Name)
	putGiven(attributes, "fpm.benchmark.file", v.File)
	if len(v.Ranks) > 0 {
		putRanks(attributes.PutEmptySlice("fpm.benchmark.ranks"), v.Ranks)
	}
	if v.BenchmarkID != 0 {
		attributes.PutInt("fpm.benchmark.id", v.BenchmarkID)
	}
	attributes.PutStr("fpm.benchmark.field", v.Field)
	attributes.PutStr("fpm.benchmark.expected", v.Expected)
	attributes.PutStr("fpm.benchmark.actual", v.Actual)
}

// engineEvent is the engine block with what the workers said of all ranks
// together. The probe never touches the block's graph, which is what the engine
// believed before.
func (s *source) engineEvent(record plog.LogRecord) {
	record.SetEventName("fpm.benchmark.engine")
	engine := &s.run.Engine
	body := record.Body().SetEmptyMap()
	putMembers(body, engine.Block)
	// A block that describes all ranks is no rank's own.
	if parallel, ok := body.Get("parallel"); ok && parallel.Type() == pcommon.ValueTypeMap {
		if _, ok := parallel.Map().Get("data_parallel_rank"); ok {
			parallel.Map().PutEmpty("data_parallel_rank")
		}
	}
	if len(engine.CaptureErrors) > 0 {
		failures := body.PutEmptyMap("capture_errors")
		ranks := record.Attributes().PutEmptySlice("fpm.engine.capture_error_ranks")
		for _, failure := range engine.CaptureErrors {
			failures.PutStr(strconv.Itoa(failure.Rank), failure.Text)
			ranks.AppendEmpty().SetInt(int64(failure.Rank))
		}
	}
	if engine.Probe == nil {
		record.Attributes().PutBool(postRunEvidence, false)
		return
	}
	putProbe(record, body, engine.Probe)
}

// putProbe adds a probe result: the whole of it to the body, and to the
// attributes what it covers. Only what a reply in scope said is resolved.
func putProbe(record plog.LogRecord, body pcommon.Map, probe *benchmark.Probe) {
	attributes := record.Attributes()
	attributes.PutBool(postRunEvidence, probe.Scope != "")
	attributes.PutStr(engineAttribute+"resolution", short(probe.Resolution))
	putResolved(attributes, probe)

	putValue(body.PutEmpty("resolved"), probe.Resolved)
	body.PutStr("resolution", probe.Resolution)
	body.PutEmpty("resolved_scope")
	putGiven(body, "resolved_scope", probe.Scope)
	attention, ok := body.Get("attention")
	if !ok || attention.Type() != pcommon.ValueTypeMap {
		attention = body.PutEmpty("attention")
		attention.SetEmptyMap()
	}
	attention.Map().PutStr("resolution", probe.Resolution)
	for _, field := range []string{"backend_resolved", "mla_prefill_backend_resolved", "resolution"} {
		if value := probe.Attention.Get(field); value.Given() || field != "resolution" {
			putValue(attention.Map().PutEmpty(field), value)
		}
	}
	if probe.Worker.Exists() {
		putValue(body.PutEmpty("worker_probe"), probe.Worker)
	}

	coverage := probe.Worker.Get("coverage")
	for field, name := range map[string]string{"complete": "fpm.engine.probe.complete", "missing_dp_ranks": "fpm.engine.probe.missing_dp_ranks"} {
		if value := coverage.Get(field); value.Given() {
			putValue(attributes.PutEmpty(name), value)
		}
	}
	for field, name := range map[string]string{"disagreements": "fpm.engine.probe.disagreements", "error": "fpm.engine.probe.error"} {
		if value := probe.Worker.Get(field); value.Given() {
			putValue(attributes.PutEmpty(name), value)
		}
	}
}

func warmupEvent(record plog.LogRecord, w *benchmark.Warmup) {
	record.SetEventName("fpm.benchmark.warmup")
	putRank(record.Attributes(), w.Rank)
	if status, ok := w.Evidence.Get("status").Text(); ok {
		record.Attributes().PutStr("fpm.benchmark.warmup.status", status)
	}
	body := record.Body().SetEmptyMap()
	if w.Evidence.Exists() {
		putValue(body.PutEmpty("warmup_evidence"), w.Evidence)
	}
	if w.KVWarm.Exists() {
		putValue(body.PutEmpty("kvwarm"), w.KVWarm)
	}
}
