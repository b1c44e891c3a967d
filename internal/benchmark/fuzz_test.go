// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/benchmarktest"
)

// FuzzCheck makes runs of files that were edited at random, with and without a
// merged file: a Checker must end in a run that is consistent in itself.
func FuzzCheck(f *testing.F) {
	points := []benchmarktest.Point{benchmarktest.StandardPoints()[0], benchmarktest.StandardPoints()[4]}
	points[1].Batch = 1
	kinds := []benchmarktest.Options{{Points: points}, {Points: points, Legacy: true}, {Points: points, NoEvidence: true, Partial: true}}
	for kind := range kinds {
		f.Add(byte(kind), true, []byte{})
		f.Add(byte(kind), false, []byte{2, 25, 1, 0, 1, 3, 1, 0, 1, 0, 11})
	}
	f.Fuzz(func(t *testing.T, kind byte, merged bool, choices []byte) {
		run := benchmarktest.New(kinds[int(kind)%len(kinds)])
		if !merged {
			run.Merged, run.Sidecar = nil, nil
		}
		run.Mutate(choices[:min(len(choices), 256)])
		var artifacts []*benchmark.Artifact
		files := run.Files()
		for _, name := range slices.Sorted(maps.Keys(files)) {
			a, err := benchmark.Read(name, files[name])
			if err != nil {
				var wrong *benchmark.ReadError
				require.True(t, errors.As(err, &wrong))
				require.NotEmpty(t, wrong.Field)
				continue
			}
			artifacts = append(artifacts, a)
		}
		benchmark.Sort(artifacts)
		checker := benchmark.NewChecker()
		added := 0
		for _, a := range artifacts {
			if a.Kind == benchmark.Sidecar {
				_ = checker.AddSidecar(a)
				continue
			}
			checker.Add(a)
			added++
		}
		if added > 0 {
			consistent(t, checker.Finish(), artifacts)
		}
	})
}

// FuzzRead gives any text to Read, and what it takes to a Checker.
func FuzzRead(f *testing.F) {
	run := benchmarktest.New(benchmarktest.Options{Ranks: 1, Points: benchmarktest.StandardPoints()[:1]})
	for _, text := range run.Files() {
		f.Add(text)
	}
	f.Add([]byte(`{"schema_version": 2, "status": "failed", "dp": {"rank": 0}}`))
	f.Add([]byte(`{"schema_version": 1, "results": [{"fpms": [{"wall_time": 1e-9}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := benchmark.Read("file", text)
		if err != nil || a.Kind == benchmark.Sidecar {
			return
		}
		consistent(t, checkAll(t, []*benchmark.Artifact{a}), []*benchmark.Artifact{a})
	})
}

func consistent(t *testing.T, run *benchmark.Run, artifacts []*benchmark.Artifact) {
	t.Helper()
	violations := map[string]int{}
	for i := range run.Violations {
		v := &run.Violations[i]
		violations[v.Rule.Name]++
		assert.NotEmpty(t, v.Field)
		assert.NotEmpty(t, v.Expected)
		assert.NotEmpty(t, v.Actual)
		assert.Less(t, len(v.String()), 4096)
	}
	violated := false
	for _, outcome := range run.Outcomes {
		violated = violated || outcome.Verdict == benchmark.Violated
		assert.Equal(t, outcome.Verdict == benchmark.Violated, outcome.Count > 0)
		assert.Equal(t, min(outcome.Count, 16), violations[outcome.Rule.Name])
	}
	assert.Equal(t, !violated, run.Valid)
	if !run.Valid {
		assert.Empty(t, run.Groups)
	}
	for i := range run.Points {
		p := &run.Points[i]
		if p.WallTime != nil {
			assert.Greater(t, *p.WallTime, 0.0)
			assert.False(t, math.IsInf(*p.WallTime, 0))
		}
		if p.Samples != nil {
			assert.LessOrEqual(t, p.Samples.Min, p.Samples.Max)
		}
	}
	results := 0
	for _, a := range artifacts {
		for range run.Results(a) {
			results++
		}
	}
	assert.Equal(t, len(run.Points), results, "each result is a point")
	if run.Coverage != nil {
		assert.GreaterOrEqual(t, min(run.Coverage.Expected, run.Coverage.Completed, run.Coverage.Skipped), int64(0))
	}
	for _, probe := range run.Engine.RankProbes {
		assert.Equal(t, probe.Scope != "", probe.Resolved.Exists())
	}
}

// What is hostile and large is judged in one pass: none of these takes more than
// a moment.
func TestHostileShapes(t *testing.T) {
	const many = 50_000
	repeat := func(item string) string { return "[" + strings.Repeat(item+",", many) + item + "]" }
	for name, text := range map[string]string{
		"empty groups":         `{"schema_version": 2, "artifact_type": "rank", "iteration_groups": ` + repeat(`{"benchmark_id":-10}`) + `}`,
		"one id for all":       `{"schema_version": 2, "artifact_type": "rank", "iteration_groups": ` + repeat(`{"benchmark_id":1}`) + `, "results": ` + repeat(`{"point":{"benchmark_id":1}}`) + `}`,
		"a group of all":       `{"schema_version": 2, "artifact_type": "rank", "dp": {"rank": 49999, "size": 50001}, "iteration_groups": [{"benchmark_id": 1, "rank_results": ` + repeat(`{"dp_rank":1,"fpms":[]}`) + `}], "results": ` + repeat(`{"point":{"benchmark_id":1}}`) + `}`,
		"a size without ranks": `{"schema_version": 2, "artifact_type": "rank", "dp": {"rank": 0, "size": 2147483647}, "results": []}`,
		"warm-ups": `{"schema_version": 2, "artifact_type": "rank", "dp": {"rank": 0, "size": 1}, "measurement_protocol": {"execution_evidence": {}},
			"warmup_evidence": {"status": "recorded", "records": ` + repeat(`{"forward_index_end":1}`) + `},
			"results": ` + repeat(`{"point":{"benchmark_id":1},"fpms":[{"benchmark_measurement":{"preparation":{"warmup_records_before":50000},"raw_fpms":[{"benchmark_sample":{"forward_index":0}}]}}]}`) + `}`,
		"negative warm-ups": `{"schema_version": 2, "artifact_type": "rank", "dp": {"rank": 0, "size": 1}, "measurement_protocol": {"execution_evidence": {}},
			"warmup_evidence": {"status": "recorded", "records": []},
			"results": [{"fpms":[{"benchmark_measurement":{"preparation":{"warmup_records_before":-1},"raw_fpms":[{"benchmark_sample":{"forward_index":0}}]}}]}]}`,
		"ledgers":      `{"schema_version": 2, "artifact_type": "merged", "rank_warmup_evidence": {` + numbered(many, `{"records":[]}`) + `}, "engine": {"capture_errors": {` + numbered(many, `"x"`) + `}}}`,
		"huge numbers": `{"schema_version": 2, "artifact_type": "merged", "dp": {"global_size": 2147483647}, "coverage": {"expected_points": 9223372036854775807, "completed_points": 9223372036854775807}}`,
	} {
		t.Run(name, func(t *testing.T) {
			a, err := benchmark.Read(name, []byte(text))
			require.NoError(t, err)
			run := checkAll(t, []*benchmark.Artifact{a})
			assert.False(t, run.Valid)
			consistent(t, run, []*benchmark.Artifact{a})
		})
	}
}

// numbered are members with the keys 0 … count−1.
func numbered(count int, value string) string {
	var text strings.Builder
	for i := range count {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, `"%d":%s`, i, value)
	}
	return text.String()
}
