// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/benchmarktest"
)

func TestPoints(t *testing.T) {
	run := check(t, benchmarktest.New(benchmarktest.Options{WorkerID: "4192"}))
	require.Len(t, run.Points, 10)
	for i, p := range run.Points {
		assert.EqualValues(t, i/2+1, p.ID)
		assert.Equal(t, i%2, p.Rank)
		assert.NotEmpty(t, p.Key)
		assert.NotEmpty(t, p.PromptHash)
		assert.Equal(t, "4192", p.WorkerID)
	}
	assert.Equal(t, "4192", run.WorkerID)

	// A prefill point without a graph.
	p := run.Points[3]
	assert.Equal(t, benchmark.PrefillPoint, p.Type)
	assert.EqualValues(t, 4, *p.BatchSize)
	assert.EqualValues(t, 1000, *p.PrefillTokens)
	assert.EqualValues(t, 512, *p.KVReadTokens)
	assert.Equal(t, "NONE", p.ExpectedCUDAGraphMode)
	assert.Nil(t, p.ExpectedCaptureSize)
	assert.Nil(t, p.ExpectedPadding)
	assert.Equal(t, "real_prefix", p.SeedRegime)
	assert.InDelta(t, 0.037875, *p.WallTime, 1e-12)
	assert.Equal(t, &benchmark.Samples{Count: 1, Min: *p.WallTime, Max: *p.WallTime}, p.Samples)
	assert.Equal(t, &benchmark.Dispatch{Mode: "NONE", Padded: 1000}, p.Observed)
	rate, ok := p.TokensPerSecond()
	assert.True(t, ok)
	assert.InDelta(t, 1000/0.037875, rate, 1e-6)

	// A decode point with padding.
	p = run.Points[6]
	assert.Equal(t, benchmark.DecodePoint, p.Type)
	assert.EqualValues(t, 8, *p.ExpectedCaptureSize)
	assert.EqualValues(t, 2, *p.ExpectedPadding)
	assert.Equal(t, &benchmark.Dispatch{Mode: "FULL", Padded: 8, Paddings: 2}, p.Observed)
	assert.False(t, p.OffByBatch)
	rate, _ = p.TokensPerSecond()
	assert.InDelta(t, 6/0.0075, rate, 1e-6, "decode counts requests")

	// A median of several: the admission step is no sample of it.
	p = run.Points[8]
	assert.True(t, p.OffByBatch)
	assert.InDelta(t, 0.025, *p.WallTime, 1e-12)
	assert.Equal(t, 3, p.Samples.Count)
	assert.InDelta(t, 0.0225, p.Samples.Min, 1e-12)
	assert.InDelta(t, 0.0275, p.Samples.Max, 1e-12)
}

func TestRunOfTheNewestKind(t *testing.T) {
	run := check(t, benchmarktest.New(benchmarktest.Options{}))
	assert.Equal(t, "3f6a0c1e9b2d4e7f8a5b6c7d8e9f0a1b", run.ID)
	assert.Equal(t, benchmarktest.GridDigest, run.GridDigest)
	assert.Equal(t, benchmark.StatusComplete, run.Status)
	assert.True(t, *run.ArtifactValid)
	assert.Equal(t, 2, run.Size)
	assert.Equal(t, []benchmark.File{
		{Name: "benchmark_results.json", Kind: benchmark.Rank, Rank: 0},
		{Name: "benchmark_results_dp1.json", Kind: benchmark.Rank, Rank: 1},
		{Name: "benchmark_results_merged.json", Kind: benchmark.Merged, Rank: benchmark.NoRank},
		{Name: "benchmark_results_merged_worker_probe.json", Kind: benchmark.Sidecar, Rank: benchmark.NoRank},
	}, run.Files)
	assert.Equal(t, &benchmark.Coverage{Expected: 10, Completed: 10}, run.Coverage)
	assert.InDelta(t, 11.5, *run.Elapsed, 0, "the slowest rank's")
	assert.Equal(t, time.Date(2026, 9, 19, 12, 0, 11, 500_000_000, time.UTC), run.CompletedAt.UTC(), "the latest rank's")
	assert.Empty(t, run.WorkerID)
	require.Len(t, run.Groups, 5)
	assert.InDelta(t, 0.0375*1.01, run.Groups[1].WallTime, 1e-12, "the slowest rank's")
	require.Len(t, run.Warmups, 2)
	assert.Equal(t, 2, run.Warmups[1].Evidence.Get("records").Len())
	assert.Equal(t, 1, run.Warmups[1].KVWarm.Get("stages").Len())
}

func TestPartialRun(t *testing.T) {
	run := check(t, benchmarktest.New(benchmarktest.Options{Partial: true}))
	assert.True(t, run.Valid, "our rules hold")
	assert.False(t, *run.ArtifactValid, "that the run was cut short is another thing")
	assert.Equal(t, benchmark.StatusPartial, run.Status)
	assert.Equal(t, "timeout", run.StopReason)
	assert.Equal(t, &benchmark.Coverage{Expected: 10, Completed: 8}, run.Coverage)
	assert.Len(t, run.Points, 8)
}

// Without a merged file the ranks are merged here, by the same rules.
func TestOwnMergeIsTheMergedFile(t *testing.T) {
	for name, options := range map[string]benchmarktest.Options{
		"newest": {Ranks: 4}, "legacy": {Ranks: 4, Legacy: true}, "partial": {Ranks: 3, Partial: true},
	} {
		t.Run(name, func(t *testing.T) {
			ranks := benchmarktest.New(options)
			ranks.Merged, ranks.Sidecar = nil, nil
			merged := benchmarktest.New(options)
			merged.Ranks, merged.Sidecar = nil, nil
			own, theirs := check(t, ranks), check(t, merged)
			require.True(t, own.Valid && theirs.Valid, texts(own)+texts(theirs))
			assert.Equal(t, theirs.Points, own.Points)
			assert.Equal(t, theirs.Groups, own.Groups)
			assert.Equal(t, theirs.Coverage, own.Coverage)
			assert.Equal(t, theirs.Elapsed, own.Elapsed)
			assert.Equal(t, theirs.CompletedAt, own.CompletedAt)
			assert.Equal(t, theirs.Status, own.Status)
			assert.Len(t, own.Warmups, len(theirs.Warmups))
			for field, value := range own.Engine.Identity() {
				assert.NotEqual(t, "parallel.data_parallel_rank", field)
				found := false
				for other, theirValue := range theirs.Engine.Identity() {
					found = found || other == field && theirValue.Short() == value.Short()
				}
				assert.True(t, found, field)
			}
		})
	}
}

// Groups may stand in any order.
func TestIDsOutOfOrder(t *testing.T) {
	run := benchmarktest.New(benchmarktest.Options{NoEvidence: true})
	run.Each(func(file *benchmarktest.Object) {
		groups := file.List("iteration_groups")
		groups[0], groups[4] = groups[4], groups[0]
		sum := 0.0
		for _, group := range groups {
			sum += group.(*benchmarktest.Object).At("wall_time").(float64)
		}
		file.Set("timing.measured_iteration_seconds", sum)
	})
	got := check(t, run)
	assert.True(t, got.Valid, texts(got))
	for i, p := range got.Points {
		assert.EqualValues(t, i/2+1, p.ID)
	}
	assert.EqualValues(t, 1, got.Groups[0].ID)
}

// A node of several writes a merged file of the ranks that it manages; its
// groups have those of the others too.
func TestOneNodeOfSeveral(t *testing.T) {
	run := benchmarktest.New(benchmarktest.Options{Ranks: 4})
	run.Ranks[0], run.Ranks[1], run.Sidecar = nil, nil, nil
	run.Merged.Set("dp.source_ranks", benchmarktest.List{2, 3})
	run.Merged.Set("dp.managed_size", 2)
	run.Merged.Set("rank_files", benchmarktest.List{"/tmp/benchmark_results_dp2.json", "/tmp/benchmark_results_dp3.json"})
	for _, rank := range []string{"0", "1"} {
		run.Merged.Set("rank_warmup_evidence."+rank, benchmarktest.NewObject(
			"status", "unavailable", "records", benchmarktest.List{}, "reason", "rank_artifact_not_loaded"))
	}
	got := check(t, run)
	assert.True(t, got.Valid, texts(got))
	assert.Len(t, got.Points, 20)
	assert.Equal(t, &benchmark.Coverage{Expected: 20, Completed: 20}, got.Coverage)
}

// What version 1 did not have is no violation, and nothing is made up for it.
func TestVersion1(t *testing.T) {
	a, err := benchmark.Read("old.json", benchmarktest.Version1().JSON())
	require.NoError(t, err)
	run := checkAll(t, []*benchmark.Artifact{a})
	assert.True(t, run.Valid, texts(run))
	assert.Empty(t, run.ID)
	assert.Equal(t, benchmark.StatusComplete, run.Status)
	assert.Empty(t, run.Groups)
	assert.Nil(t, run.Elapsed)
	assert.True(t, run.CompletedAt.IsZero())
	require.Len(t, run.Points, 2)
	p := run.Points[1]
	assert.EqualValues(t, 2, p.ID, "the position stands for the id")
	assert.InDelta(t, 0.005, *p.WallTime, 0)
	assert.EqualValues(t, 3, *p.BatchSize)
	assert.Nil(t, p.KVReadTokens, "isl and context_length are of one request")
	assert.Equal(t, &benchmark.Coverage{Expected: 2, Completed: 2}, run.Coverage)
	for _, name := range []string{"run_id", "grid_digest", "dp_size", "groups_present", "timing_values"} {
		assert.Contains(t, with(run, benchmark.NotChecked), name)
	}
}

// A violated run gives each rank's own results, never the groups'.
func TestViolatedRunHasTheRanksOwnResults(t *testing.T) {
	run := benchmarktest.New(benchmarktest.Options{})
	run.Ranks[1].Set("results.0.fpms.0.wall_time", 0.5)
	got := check(t, run)
	require.False(t, got.Valid)
	require.Len(t, got.Points, 10)
	assert.InDelta(t, 0.5, *got.Points[1].WallTime, 0)
	assert.Empty(t, got.Groups)

	artifacts := read(t, run)
	files := map[string]int{}
	for _, a := range artifacts[:3] {
		for result := range got.Results(a) {
			assert.Equal(t, a.Rank, result.Rank)
			files[a.File]++
		}
		assert.Equal(t, files[a.File] > 0, got.Contributes(a.File), a.File)
	}
	assert.Equal(t, map[string]int{"benchmark_results.json": 5, "benchmark_results_dp1.json": 5}, files)
}

// A rank whose file is missing is taken from the merged file.
func TestViolatedRunWithoutARankFile(t *testing.T) {
	run := benchmarktest.New(benchmarktest.Options{Ranks: 3})
	run.Ranks[1] = nil
	run.Ranks[2].Set("grid_digest", "another")
	got := check(t, run)
	require.False(t, got.Valid)
	ranks := map[int]int{}
	for _, a := range read(t, run)[:3] {
		for result := range got.Results(a) {
			ranks[result.Rank]++
			assert.Equal(t, result.Rank == 1, a.Kind == benchmark.Merged)
		}
	}
	assert.Equal(t, map[int]int{0: 5, 1: 5, 2: 5}, ranks)
}

func TestResultsOfAMergedRun(t *testing.T) {
	artifacts := read(t, benchmarktest.New(benchmarktest.Options{}))
	run := checkAll(t, artifacts)
	var got []string
	for _, a := range artifacts {
		for result := range run.Results(a) {
			require.Equal(t, "benchmark_results.json", a.File)
			got = append(got, fmt.Sprint(result.ID, result.Rank, result.SeedRegime, result.FPMs.Len()))
		}
		assert.Equal(t, a.File == "benchmark_results.json", run.Contributes(a.File))
	}
	assert.Equal(t, []string{
		"1 0not_applicable1", "1 1not_applicable1", "2 0real_prefix1", "2 1real_prefix1",
		"3 0real_kv1", "3 1real_kv1", "4 0real_kv1", "4 1real_kv1", "5 0real_kv1", "5 1real_kv1",
	}, got)
}

// However often a rule is violated, a run names 16 places and the count.
func TestViolationsAreBounded(t *testing.T) {
	var points []benchmarktest.Point
	for range 40 {
		points = append(points, benchmarktest.StandardPoints()[0])
	}
	run := benchmarktest.New(benchmarktest.Options{Ranks: 1, Points: points})
	for id := range points {
		run.EachFPM(0, id+1, func(fpm *benchmarktest.Object) { fpm.Set("counter_id", 0) })
	}
	got := check(t, run)
	assert.Len(t, got.Violations, 16)
	for _, outcome := range got.Outcomes {
		if outcome.Rule.Name == "fpm_counter_id" {
			assert.Equal(t, 40, outcome.Count)
		}
	}
}

// A time is read in the ways that Python writes it; one that cannot be read is
// unknown, and no violation.
func TestCompletionTime(t *testing.T) {
	want := time.Date(2026, 9, 19, 12, 0, 11, 500_000_000, time.UTC)
	for text, known := range map[string]bool{
		"2026-09-19T12:00:11.500000+00:00": true,
		"2026-09-19T14:00:11.5+02:00":      true,
		"2026-09-19T12:00:11.500Z":         true,
		"2026-09-19T12:00:11.500000":       true,
		"2026-09-19 12:00:11.500000":       true,
		"2026-09-19 12:00:11.500000+00:00": true,
		"yesterday":                        false,
		"9999-12-31T23:59:59Z":             false,
		"0001-01-01T00:00:00Z":             false,
	} {
		run := benchmarktest.New(benchmarktest.Options{})
		run.Each(func(file *object) { file.Set("timing.completed_at", text) })
		got := check(t, run)
		assert.True(t, got.Valid, texts(got))
		if known {
			assert.True(t, got.CompletedAt.Equal(want), text)
		} else {
			assert.True(t, got.CompletedAt.IsZero(), text)
		}
	}
}
