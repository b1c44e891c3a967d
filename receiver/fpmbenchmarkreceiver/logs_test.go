// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/benchmarktest"
)

// bodyPath is a value below a record's body.
func bodyPath(t *testing.T, record plog.LogRecord, keys ...any) pcommon.Value {
	t.Helper()
	value := record.Body()
	for _, key := range keys {
		switch key := key.(type) {
		case string:
			member, ok := value.Map().Get(key)
			require.True(t, ok, "no %s", key)
			value = member
		case int:
			value = value.Slice().At(key)
		}
	}
	return value
}

func TestEventsOfARun(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		g := deliver(t, folder, benchmarktest.New(benchmarktest.Options{}))
		records := g.logs.records()
		var order []string
		for _, record := range records {
			name := strings.TrimPrefix(record.EventName(), "fpm.benchmark.")
			if len(order) == 0 || order[len(order)-1] != name {
				order = append(order, name)
			}
			assert.True(t, record.Timestamp().AsTime().Equal(time.Date(2026, 9, 19, 12, 0, 11, 500_000_000, time.UTC)))
			assert.WithinDuration(t, time.Now(), record.ObservedTimestamp().AsTime(), 2*time.Minute)
			assert.Equal(t, true, attr(t, record, "fpm.benchmark.valid"))
			assert.Equal(t, true, attr(t, record, "fpm.benchmark.artifact_valid"))
		}
		assert.Equal(t, []string{"run", "engine", "warmup", "point"}, order)

		run := events(records, "run")[0]
		assert.Equal(t, int64(0), attr(t, run, "fpm.benchmark.violations"))
		assert.Equal(t, true, attr(t, run, "fpm.engine.post_run_evidence"))
		assert.Equal(t, int64(2), bodyPath(t, run, "dp_size").Int())
		assert.Equal(t, int64(10), bodyPath(t, run, "coverage", "completed").Int())
		assert.Equal(t, 4, bodyPath(t, run, "files").Slice().Len())
		assert.Equal(t, len(benchmark.Rules), bodyPath(t, run, "rules").Map().Len())
		assert.Equal(t, "holds", bodyPath(t, run, "rules", "group_wall_time").Str())
		assert.Equal(t, "not_checked", bodyPath(t, run, "rules", "ranks_present").Str())
		assert.Equal(t, "coordinate_rank_slot_v1", bodyPath(t, run, "measurement_protocol", "content_identity").Str())
	})
}

// The event of a point is the result whole: keys in order, ints as ints.
func TestPointEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		run := benchmarktest.New(benchmarktest.Options{})
		for rank := range 2 {
			run.EachFPM(rank, 4, func(fpm *benchmarktest.Object) {
				fpm.Set("unknown", benchmarktest.NewObject("z", 1, "a", 2.0, "big", benchmarktest.Raw("18446744073709551616")))
			})
		}
		g := deliver(t, folder, run)
		points := events(g.logs.records(), "point")
		require.Len(t, points, 10)
		record := points[7]
		assert.Equal(t, int64(4), attr(t, record, "fpm.benchmark.id"))
		assert.Equal(t, int64(1), attr(t, record, "fpm.dp_rank"))
		assert.Equal(t, int64(6), attr(t, record, "fpm.benchmark.batch_size"))
		assert.Equal(t, "FULL", attr(t, record, "fpm.benchmark.expected_cudagraph_mode"))
		assert.Equal(t, "FULL", attr(t, record, "fpm.benchmark.observed_cudagraph_mode"))
		assert.Equal(t, benchmarktest.PointKey(benchmarktest.StandardPoints()[3]), attr(t, record, "fpm.benchmark.point_key"))
		assert.Equal(t, "FLASH_ATTN_MLA", attr(t, record, "fpm.engine.attention.backend_resolved"))
		assert.Equal(t, "representative_worker", attr(t, record, "fpm.engine.resolved_scope"))
		assert.Equal(t, "worker_probe", attr(t, record, "fpm.engine.resolution"))

		assert.Equal(t, "real_kv", bodyPath(t, record, "kv_seed_regime").Str())
		assert.Equal(t, int64(4), bodyPath(t, record, "point", "benchmark_id").Int())
		fpm := bodyPath(t, record, "fpms", 0)
		var keys []string
		for key := range fpm.Map().All() {
			keys = append(keys, key)
		}
		assert.Equal(t, []string{
			"version", "worker_id", "dp_rank", "counter_id", "wall_time", "scheduled_requests", "queued_requests", "benchmark_measurement", "unknown",
		}, keys)
		assert.Equal(t, pcommon.ValueTypeInt, bodyPath(t, record, "fpms", 0, "unknown", "z").Type())
		assert.Equal(t, pcommon.ValueTypeDouble, bodyPath(t, record, "fpms", 0, "unknown", "a").Type())
		assert.InDelta(t, 18446744073709551616.0, bodyPath(t, record, "fpms", 0, "unknown", "big").Double(), 0)
		assert.Equal(t, 2, bodyPath(t, record, "fpms", 0, "benchmark_measurement", "raw_fpms").Slice().Len())
		assert.Equal(t, "recorded", bodyPath(t, record, "fpms", 0, "benchmark_measurement", "prompts", "status").Str())
		assert.Equal(t, int64(2), bodyPath(t, record, "fpms", 0, "benchmark_measurement", "raw_fpms", 1, "benchmark_sample", "cudagraph", "num_paddings").Int())
	})
}

func TestViolationEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		run := benchmarktest.New(benchmarktest.Options{})
		run.EachFPM(1, 4, func(fpm *benchmarktest.Object) { fpm.Set("counter_id", 4711) })
		g := deliver(t, folder, run)
		records := g.logs.records()
		violations := events(records, "violation")
		require.Len(t, violations, 1)
		violation := violations[0]
		assert.Equal(t, plog.SeverityNumberWarn, violation.SeverityNumber())
		assert.Equal(t, "fpm_counter_id", attr(t, violation, "fpm.benchmark.rule"))
		assert.Equal(t, folder+"/benchmark_results.json", attr(t, violation, "fpm.benchmark.file"))
		assert.Equal(t, []any{int64(1)}, attr(t, violation, "fpm.benchmark.ranks"))
		assert.Equal(t, int64(4), attr(t, violation, "fpm.benchmark.id"))
		assert.Equal(t, "fpms.counter_id", attr(t, violation, "fpm.benchmark.field"))
		assert.Equal(t, "4", attr(t, violation, "fpm.benchmark.expected"))
		assert.Equal(t, "4711", attr(t, violation, "fpm.benchmark.actual"))
		assert.Contains(t, violation.Body().Str(), "fpm_counter_id: ")
		for _, record := range records {
			assert.Equal(t, false, attr(t, record, "fpm.benchmark.valid"))
			assert.Equal(t, true, attr(t, record, "fpm.benchmark.artifact_valid"), "what the artifact says of itself")
		}
		assert.Equal(t, "violated", bodyPath(t, events(records, "run")[0], "rules", "fpm_counter_id").Str())
		assert.Len(t, events(records, "point"), 10)
	})
}

// Every rule's variant is delivered, with its violations as events and valid 0.
func TestEveryBrokenRunIsDelivered(t *testing.T) {
	for _, variant := range benchmarktest.Broken() {
		t.Run(variant.Rule+"/"+variant.Name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, folder string) {
				run := benchmarktest.New(variant.Options)
				variant.Edit(run)
				run.Write(t, folder)
				g := newRig(t, folder)
				g.start()
				g.pass(25 * time.Minute)
				g.stop()
				g.settled()
				wellFormed(t, g.metrics.all())
				switch {
				case variant.Rule == "run_id":
					// Files of another run id are another run's.
				case variant.Rule == "dp_rank" && variant.Name == "that of another file":
					assert.Equal(t, int64(1), g.counts("files")["duplicate"])
				default:
					named := false
					for _, record := range events(g.logs.records(), "violation") {
						named = named || attr(t, record, "fpm.benchmark.rule") == variant.Rule
					}
					assert.True(t, named)
					assert.Equal(t, int64(1), g.counts("runs")["invalid"]+g.counts("runs")["incomplete"])
				}
				assert.NotEmpty(t, named(g.metrics.points(), "fpm.benchmark.valid"))
			})
		})
	}
}

func TestEngineEvents(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		run := benchmarktest.New(benchmarktest.Options{})
		run.Probe(0)
		g := deliver(t, folder, run)
		records := events(g.logs.records(), "engine")
		require.Len(t, records, 3, "the run's and one a rank")

		whole := records[0]
		assert.False(t, hasAttribute(whole, "fpm.dp_rank"))
		assert.Equal(t, "worker_probe_partial", attr(t, whole, "fpm.engine.resolution"))
		assert.Equal(t, "representative_worker", attr(t, whole, "fpm.engine.resolved_scope"))
		assert.Equal(t, "FLASH_ATTN_MLA", attr(t, whole, "fpm.engine.attention.backend_resolved"))
		assert.Equal(t, false, attr(t, whole, "fpm.engine.probe.complete"))
		assert.Equal(t, []any{int64(1)}, attr(t, whole, "fpm.engine.probe.missing_dp_ranks"))
		assert.Equal(t, []any{}, attr(t, whole, "fpm.engine.probe.disagreements"))
		assert.Equal(t, "bfloat16", bodyPath(t, whole, "model", "dtype").Str())
		assert.Equal(t, pcommon.ValueTypeEmpty, bodyPath(t, whole, "parallel", "data_parallel_rank").Type())
		assert.Equal(t, "pre_resolution", bodyPath(t, whole, "graph", "resolution").Str(), "the probe never alters graph")
		assert.Equal(t, "FLASH_ATTN_MLA", bodyPath(t, whole, "attention", "backend_resolved").Str())
		assert.Equal(t, int64(3), bodyPath(t, whole, "attention", "flash_attn_version").Int(), "what was captured at start stays")
		assert.Equal(t, 1, bodyPath(t, whole, "worker_probe", "responses").Slice().Len())

		observed, unobserved := records[1], records[2]
		assert.Equal(t, int64(0), attr(t, observed, "fpm.dp_rank"))
		assert.Equal(t, "FLASH_ATTN_MLA", attr(t, observed, "fpm.engine.attention.backend_resolved"))
		assert.Equal(t, int64(1), attr(t, unobserved, "fpm.dp_rank"))
		assert.Equal(t, "worker_probe_unobserved", attr(t, unobserved, "fpm.engine.resolution"))
		assert.Equal(t, false, attr(t, unobserved, "fpm.engine.post_run_evidence"))
		for _, name := range []string{"fpm.engine.attention.backend_resolved", "fpm.engine.resolved_scope", "fpm.engine.cudagraph_mode_resolved"} {
			assert.False(t, hasAttribute(unobserved, name), name)
		}
		assert.Equal(t, pcommon.ValueTypeEmpty, bodyPath(t, unobserved, "resolved").Type())

		// The points of a rank say what is known of it.
		for _, record := range events(g.logs.records(), "point") {
			assert.Equal(t, attr(t, record, "fpm.dp_rank") == int64(0), hasAttribute(record, "fpm.engine.attention.backend_resolved"))
		}
	})
}

// No post-run evidence is said, not guessed; a failed capture is named.
func TestEngineEventWithoutEvidence(t *testing.T) {
	for name, edit := range map[string]func(*benchmarktest.Run){
		"no sidecar": func(r *benchmarktest.Run) { r.Sidecar = nil },
		"probe failed": func(r *benchmarktest.Run) {
			r.Probe()
			r.Sidecar.Set("merged.resolution", "probe_failed: TimeoutError: ")
			r.Sidecar.Set("merged.worker_probe.error", "probe_failed: TimeoutError: ")
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, folder string) {
				run := benchmarktest.New(benchmarktest.Options{})
				run.Ranks[1].Delete("engine")
				run.Merged.Set("engine.capture_errors", benchmarktest.NewObject("1", "missing engine block"))
				edit(run)
				g := deliver(t, folder, run)
				assert.Equal(t, map[string]int64{"valid": 1}, g.counts("runs"), "never a reason to call a run invalid")
				records := g.logs.records()
				assert.Equal(t, false, attr(t, events(records, "run")[0], "fpm.engine.post_run_evidence"))
				engine := events(records, "engine")[0]
				assert.Equal(t, false, attr(t, engine, "fpm.engine.post_run_evidence"))
				assert.Equal(t, []any{int64(1)}, attr(t, engine, "fpm.engine.capture_error_ranks"))
				assert.Equal(t, "missing engine block", bodyPath(t, engine, "capture_errors", "1").Str())
				assert.False(t, hasAttribute(engine, "fpm.engine.attention.backend_resolved"))
				assert.Equal(t, name == "probe failed", hasAttribute(engine, "fpm.engine.probe.error"))
			})
		})
	}
}

func TestProbeInsideTheArtifacts(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		run := benchmarktest.New(benchmarktest.Options{})
		run.ProbeInside()
		run.Write(t, folder)
		g := newRig(t, folder)
		g.start() // at once: nothing is to be waited for
		assert.Equal(t, map[string]int64{"valid": 1}, g.counts("runs"))
		g.stop()
		records := events(g.logs.records(), "engine")
		require.Len(t, records, 3)
		assert.Equal(t, "FLASH_ATTN_MLA", attr(t, records[0], "fpm.engine.attention.backend_resolved"))
		assert.Equal(t, int64(1), attr(t, records[2], "fpm.dp_rank"))
		assert.Equal(t, "pre_resolution", bodyPath(t, records[0], "graph", "resolution").Str())
	})
}

// Warm-up is an event a rank; not_performed stays what it is.
func TestWarmupEvents(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		g := deliver(t, folder, benchmarktest.New(benchmarktest.Options{}))
		records := events(g.logs.records(), "warmup")
		require.Len(t, records, 2)
		record := records[1]
		assert.Equal(t, int64(1), attr(t, record, "fpm.dp_rank"))
		assert.Equal(t, "recorded", attr(t, record, "fpm.benchmark.warmup.status"))
		assert.Equal(t, "global", bodyPath(t, record, "warmup_evidence", "records", 0, "kind").Str())
		assert.Equal(t, "not_performed", bodyPath(t, record, "warmup_evidence", "records", 0, "validation", "status").Str())
		assert.Equal(t, int64(3), bodyPath(t, record, "warmup_evidence", "records", 0, "forward_index_end").Int())
		assert.Equal(t, "native_exact_context", bodyPath(t, record, "kvwarm", "initialization_strategy").Str())
		assert.Equal(t, 1, bodyPath(t, record, "kvwarm", "stages").Slice().Len())
	})
}

// A batch stays below what exporters take, unless one event is larger alone.
func TestLogBatchesBySize(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		var grid []benchmarktest.Point
		for i := range 40 {
			p := benchmarktest.StandardPoints()[4]
			p.Batch, p.KV = 512+i, 1<<20
			p.Reasons = nil
			grid = append(grid, p)
		}
		g := deliver(t, folder, benchmarktest.New(benchmarktest.Options{Ranks: 1, Points: grid}))
		assert.Len(t, events(g.logs.records(), "point"), 40)
		assert.Greater(t, len(g.logs.all()), 4)
		sizer := &plog.ProtoMarshaler{}
		for _, batch := range g.logs.all() {
			assert.Less(t, sizer.LogsSize(batch), 2<<20)
		}
	})
}
