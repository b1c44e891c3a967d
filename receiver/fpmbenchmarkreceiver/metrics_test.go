// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/benchmarktest"
)

// deliver delivers one run and gives the rig.
func deliver(t *testing.T, folder string, run *benchmarktest.Run, edits ...func(*Config)) *rig {
	t.Helper()
	run.Write(t, folder)
	g := newRig(t, folder, edits...)
	g.start()
	g.pass(time.Minute)
	g.stop()
	g.settled()
	wellFormed(t, g.metrics.all())
	return g
}

func TestMetricsOfARun(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		g := deliver(t, folder, benchmarktest.New(benchmarktest.Options{WorkerID: "4192"}), func(c *Config) {
			c.Namespace, c.ResourceAttributes = "team-a", map[string]any{"k8s.node.name": "gpu-7", "rack": 12}
		})
		points := g.metrics.points()
		completed := time.Date(2026, 9, 19, 12, 0, 11, 500_000_000, time.UTC)
		for _, p := range points {
			assert.True(t, p.time.Equal(completed), p.metric)
		}

		resource := points[0].resource
		for key, want := range map[string]any{
			"service.namespace": "team-a", "service.name": "backend", "service.instance.id": "4192", "fpm.worker_id": "4192",
			"fpm.benchmark.run_id": "3f6a0c1e9b2d4e7f8a5b6c7d8e9f0a1b", "fpm.benchmark.grid_digest": benchmarktest.GridDigest, "fpm.benchmark.status": "complete",
			"k8s.node.name": "gpu-7", "rack": int64(12),
			"fpm.engine.model.model": "deepseek-ai/DeepSeek-V3", "fpm.engine.model.dtype": "bfloat16",
			"fpm.engine.quantization.method": "fp8", "fpm.engine.parallel.tensor_parallel_size": int64(1), "fpm.engine.parallel.data_parallel_size": int64(2),
			"fpm.engine.versions.vllm": "0.29.0", "fpm.engine.kv_cache.enable_prefix_caching": true,
			"fpm.engine.attention.backend_resolved": "FLASH_ATTN_MLA", "fpm.engine.attention.mla_prefill_backend_resolved": "FlashAttnPrefillBackend",
			"fpm.engine.cudagraph_mode_resolved": "FULL", "fpm.engine.resolution": "worker_probe", "fpm.engine.resolved_scope": "representative_worker",
		} {
			assert.Equal(t, want, resource[key], key)
		}
		for _, absent := range []string{"fpm.engine.parallel.data_parallel_rank", "fpm.engine.attention.backend_requested"} {
			assert.NotContains(t, resource, absent)
		}

		for metric, want := range map[string]float64{
			"fpm.benchmark.coverage.expected": 10, "fpm.benchmark.coverage.completed": 10, "fpm.benchmark.elapsed": 11.5, "fpm.benchmark.valid": 1,
		} {
			got := named(points, metric)
			require.Len(t, got, 1, metric)
			assert.InDelta(t, want, got[0].value, 0, metric)
			assert.Empty(t, got[0].attributes)
		}

		durations := named(points, "fpm.benchmark.step.duration")
		require.Len(t, durations, 10)
		assert.Equal(t, map[string]any{
			"fpm.dp_rank": int64(1), "fpm.benchmark.id": int64(4), "fpm.benchmark.point_type": "decode", "fpm.benchmark.batch_size": int64(6),
			"fpm.benchmark.prefill_tokens": int64(0), "fpm.benchmark.kv_read_tokens": int64(6144),
			"fpm.benchmark.expected_cudagraph_mode": "FULL", "fpm.benchmark.expected_capture_size": int64(8),
		}, durations[7].attributes)
		assert.InDelta(t, 0.0075*1.01, durations[7].value, 1e-12)
		assert.Equal(t, "s", durations[7].unit)
		assert.NotContains(t, durations[2].attributes, "fpm.benchmark.expected_capture_size", "mode NONE has no capture size")

		rates := named(points, "fpm.benchmark.tokens_per_second")
		require.Len(t, rates, 10)
		assert.InDelta(t, 1000/0.0375, rates[2].value, 1e-6)
		assert.InDelta(t, 6/0.0075, rates[6].value, 1e-6)

		assert.InDelta(t, 0.0225, named(points, "fpm.benchmark.sample.min")[8].value, 1e-12)
		assert.InDelta(t, 0.0275, named(points, "fpm.benchmark.sample.max")[8].value, 1e-12)

		expected := named(points, "fpm.benchmark.padding")
		require.Len(t, expected, 8, "a point without a graph expects none")
		assert.True(t, expected[0].whole)
		observed := named(points, "fpm.benchmark.observed.padding")
		require.Len(t, observed, 10)
		assert.Equal(t, "NONE", observed[2].attributes["fpm.benchmark.observed_cudagraph_mode"])
		assert.InDelta(t, 2, observed[6].value, 0)
	})
}

// An empty worker id, as Dynamo's default is, is replaced by the host's name.
func TestInstanceWithoutAWorkerID(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		g := deliver(t, folder, benchmarktest.New(benchmarktest.Options{}))
		resource := g.metrics.points()[0].resource
		assert.NotEmpty(t, resource["service.instance.id"])
		assert.Empty(t, resource["fpm.worker_id"])
	})
}

// What not every worker said does not stand for all of them.
func TestPartialProbeIsNoResourceAttribute(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		run := benchmarktest.New(benchmarktest.Options{})
		run.Probe(0)
		g := deliver(t, folder, run)
		resource := g.metrics.points()[0].resource
		assert.Equal(t, "worker_probe_partial", resource["fpm.engine.resolution"])
		for _, absent := range []string{"fpm.engine.attention.backend_resolved", "fpm.engine.cudagraph_mode_resolved", "fpm.engine.resolved_scope"} {
			assert.NotContains(t, resource, absent)
		}
	})
}

// A dispatch that was not observed gives no point: not 0, not NONE.
func TestUnavailableDispatchGivesNoPoint(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		run := benchmarktest.New(benchmarktest.Options{})
		for rank := range 2 {
			run.EachFPM(rank, 4, func(fpm *benchmarktest.Object) {
				for _, raw := range fpm.List("benchmark_measurement.raw_fpms") {
					raw.(*benchmarktest.Object).Set("benchmark_sample.cudagraph", benchmarktest.NewObject("status", "unavailable",
						"runtime_mode", nil, "num_unpadded_tokens", nil, "num_padded_tokens", nil, "num_paddings", nil))
				}
			})
		}
		g := deliver(t, folder, run)
		assert.Equal(t, map[string]int64{"valid": 1}, g.counts("runs"))
		for _, p := range named(g.metrics.points(), "fpm.benchmark.observed.padding") {
			assert.NotEqual(t, int64(4), p.attributes["fpm.benchmark.id"])
		}
		assert.Len(t, named(g.metrics.points(), "fpm.benchmark.observed.padding"), 8)
		assert.Len(t, named(g.metrics.points(), "fpm.benchmark.padding"), 8, "what was expected is as it was")
	})
}

// An older run has what it has.
func TestMetricsOfALegacyRun(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		g := deliver(t, folder, benchmarktest.New(benchmarktest.Options{Legacy: true}))
		points := g.metrics.points()
		assert.Len(t, named(points, "fpm.benchmark.step.duration"), 10)
		assert.Empty(t, named(points, "fpm.benchmark.sample.min"))
		assert.Empty(t, named(points, "fpm.benchmark.observed.padding"))
		for key := range maps.Keys(points[0].resource) {
			assert.NotContains(t, key, "fpm.engine")
		}
		assert.InDelta(t, 1, named(points, "fpm.benchmark.valid")[0].value, 0)
	})
}

// Version 1 has neither id nor time nor totals.
func TestMetricsOfVersion1(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		benchmarktest.WriteFile(t, folder+"/old.json", benchmarktest.Version1().JSON())
		g := newRig(t, folder)
		g.start()
		g.pass(time.Minute)
		delivered := time.Now()
		g.stop()
		wellFormed(t, g.metrics.all())
		points := g.metrics.points()
		assert.NotContains(t, points[0].resource, "fpm.benchmark.run_id")
		durations := named(points, "fpm.benchmark.step.duration")
		require.Len(t, durations, 2)
		assert.WithinDuration(t, delivered, durations[0].time, time.Minute, "no completion time: when it was delivered")
		assert.Equal(t, map[string]any{
			"fpm.dp_rank": int64(0), "fpm.benchmark.id": int64(2), "fpm.benchmark.point_type": "decode", "fpm.benchmark.batch_size": int64(3),
		}, durations[1].attributes)
		assert.Equal(t, map[string]int64{"valid": 1}, g.counts("runs"))
	})
}

// A large run comes in batches.
func TestMetricsInBatches(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		var grid []benchmarktest.Point
		for i := range 150 {
			p := benchmarktest.StandardPoints()[0]
			p.Prefill += i
			p.Capture += i
			grid = append(grid, p)
		}
		g := deliver(t, folder, benchmarktest.New(benchmarktest.Options{Ranks: 8, Points: grid}))
		assert.Len(t, named(g.metrics.points(), "fpm.benchmark.step.duration"), 1200)
		assert.Len(t, g.metrics.all(), 4, "the run, and 500 points × ranks each")
		seen := map[[2]any]bool{}
		for _, p := range named(g.metrics.points(), "fpm.benchmark.step.duration") {
			seen[[2]any{p.attributes["fpm.benchmark.id"], p.attributes["fpm.dp_rank"]}] = true
		}
		assert.Len(t, seen, 1200)
		records := g.logs.records()
		assert.Len(t, events(records, "point"), 1200)
		for _, batch := range g.logs.all() {
			assert.LessOrEqual(t, batch.LogRecordCount(), maxBatchEvents)
		}
	})
}

// A violated run is delivered with the ranks' own results and valid 0.
func TestMetricsOfAViolatedRun(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		run := benchmarktest.New(benchmarktest.Options{})
		run.Ranks[1].Set("results.0.fpms.0.wall_time", 0.5)
		g := deliver(t, folder, run)
		points := g.metrics.points()
		assert.InDelta(t, 0, named(points, "fpm.benchmark.valid")[0].value, 0)
		durations := named(points, "fpm.benchmark.step.duration")
		require.Len(t, durations, 10)
		assert.True(t, slices.ContainsFunc(durations, func(p point) bool { return p.value == 0.5 }))
		assert.Equal(t, map[string]int64{"invalid": 1}, g.counts("runs"))
	})
}

// A file that names a point twice gives one point of a series.
func TestPointTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		run := benchmarktest.New(benchmarktest.Options{Ranks: 1})
		run.Ranks[0].Set("results", append(run.Ranks[0].List("results"), run.Ranks[0].At("results.0")))
		g := deliver(t, folder, run)
		assert.Len(t, named(g.metrics.points(), "fpm.benchmark.step.duration"), 5)
		assert.Len(t, events(g.logs.records(), "point"), 6, "events have both")
	})
}

// Attributes stay short and few, whatever the file says.
func TestAttributesAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		long := strings.Repeat("é", 100_000)
		run := benchmarktest.New(benchmarktest.Options{WorkerID: long, Ranks: 1})
		run.Each(func(file *benchmarktest.Object) {
			for _, path := range []string{"grid_digest", "engine.model.model", "stop_reason", "iteration_groups.0.point.point_type", "iteration_groups.1.point.expected_cudagraph_mode"} {
				file.Set(path, long)
			}
			file.Set(long, long)
			for i := range 1000 {
				file.Set(fmt.Sprintf("engine.model.field%d", i), i)
			}
		})
		run.Sidecar.Set("merged.resolution", long)
		run.Sidecar.Set("ranks.0.attention.backend_resolved", long)
		g := deliver(t, folder, run)
		assert.Equal(t, counts{"invalid": 1}, g.counts("runs"))
		for _, p := range g.metrics.points() {
			assert.Less(t, len(p.resource), 150)
			assert.Less(t, len(fmt.Sprint(p.resource)), 20_000)
			assert.Less(t, len(fmt.Sprint(p.attributes)), 4_000)
		}
		for _, record := range g.logs.records() {
			assert.Less(t, len(fmt.Sprint(record.Attributes().AsRaw())), 8_000, record.EventName())
			if record.EventName() == "fpm.benchmark.violation" {
				assert.Less(t, len(record.Body().Str()), 2_000)
			}
		}
	})
}
