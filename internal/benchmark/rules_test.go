// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/benchmarktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// read reads all files of a run in the order that a Checker wants.
func read(t testing.TB, run *benchmarktest.Run) []*benchmark.Artifact {
	t.Helper()
	files := run.Files()
	var artifacts []*benchmark.Artifact
	for _, name := range slices.Sorted(maps.Keys(files)) {
		artifact, err := benchmark.Read(name, files[name])
		require.NoError(t, err, name)
		artifacts = append(artifacts, artifact)
	}
	benchmark.Sort(artifacts)
	return artifacts
}

// check checks all files of a run.
func check(t testing.TB, run *benchmarktest.Run) *benchmark.Run {
	t.Helper()
	return checkAll(t, read(t, run))
}

func checkAll(t testing.TB, artifacts []*benchmark.Artifact) *benchmark.Run {
	t.Helper()
	checker := benchmark.NewChecker()
	for _, artifact := range artifacts {
		if artifact.Kind == benchmark.Sidecar {
			require.NoError(t, checker.AddSidecar(artifact))
		} else {
			checker.Add(artifact)
		}
	}
	return checker.Finish()
}

func texts(run *benchmark.Run) string {
	var lines []string
	for i := range run.Violations {
		lines = append(lines, run.Violations[i].String())
	}
	return strings.Join(lines, "\n")
}

// with are the names of the rules that have a verdict.
func with(run *benchmark.Run, verdict benchmark.Verdict) []string {
	var names []string
	for _, outcome := range run.Outcomes {
		if outcome.Verdict == verdict {
			names = append(names, outcome.Rule.Name)
		}
	}
	return names
}

// A sound run holds every rule that it has something for.
func TestSoundRuns(t *testing.T) {
	noProtocol := []string{
		"protocol_version", "execution_contract", "measurement", "point_key", "measurement_grid", "sample_count", "sample_identity",
		"estimate_indices", "estimate_value", "sample_retained", "sample_index", "forward_index", "sample_timing", "sample_cudagraph",
		"warmup_ledger", "warmup_record", "warmup_range", "warmup_reference", "warmup_overlap",
	}
	noEvidence := []string{
		"execution_contract", "sample_retained", "sample_index", "forward_index", "sample_timing", "sample_cudagraph",
		"warmup_ledger", "warmup_record", "warmup_range", "warmup_reference", "warmup_overlap",
	}
	rankRules := []string{"dp_rank", "coverage", "coverage_equal", "result_ids", "result_point", "result_fpm"}
	pairRules := []string{"status_equal", "stop_reason_equal", "protocol_equal", "groups_equal", "engine_identity"}
	mergedRules := []string{"merged_dp", "merged_coverage", "merged_results", "merged_timing", "merged_engine"}
	undeclared := []string{"measurement_undeclared", "sample_undeclared", "warmup_undeclared"}

	for _, test := range []struct {
		name       string
		options    benchmarktest.Options
		edit       func(*benchmarktest.Run)
		notChecked []string
	}{
		{name: "newest", notChecked: slices.Concat(undeclared, []string{"status_partial"})},
		{name: "eight ranks", options: benchmarktest.Options{Ranks: 8}, notChecked: slices.Concat(undeclared, []string{"status_partial"})},
		{
			name: "one rank", options: benchmarktest.Options{Ranks: 1},
			notChecked: slices.Concat(undeclared, []string{"status_partial", "coverage_equal"}),
		},
		{name: "partial", options: benchmarktest.Options{Partial: true}, notChecked: slices.Concat(undeclared, []string{"status_complete"})},
		{
			name: "without execution evidence", options: benchmarktest.Options{NoEvidence: true},
			notChecked: slices.Concat(noEvidence, []string{"status_partial", "measurement_undeclared"}),
		},
		{
			name: "legacy", options: benchmarktest.Options{Legacy: true},
			notChecked: slices.Concat(noProtocol, []string{"status_partial", "sample_undeclared", "engine_identity", "merged_engine"}),
		},
		{
			name:       "merged file alone",
			edit:       func(r *benchmarktest.Run) { r.Ranks, r.Sidecar = nil, nil },
			notChecked: slices.Concat(undeclared, rankRules, pairRules, []string{"status_partial"}),
		},
		{
			name:       "rank files alone",
			edit:       func(r *benchmarktest.Run) { r.Merged, r.Sidecar = nil, nil },
			notChecked: slices.Concat(undeclared, mergedRules, []string{"status_partial"}),
		},
		{
			name:       "probe written into the artifacts",
			edit:       (*benchmarktest.Run).ProbeInside,
			notChecked: slices.Concat(undeclared, []string{"status_partial"}),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := benchmarktest.New(test.options)
			if test.edit != nil {
				test.edit(run)
			}
			got := check(t, run)
			assert.Empty(t, texts(got))
			assert.True(t, got.Valid)
			notChecked := test.notChecked
			if run.Merged != nil {
				notChecked = append(notChecked, "ranks_present")
			}
			assert.ElementsMatch(t, notChecked, with(got, benchmark.NotChecked))
		})
	}
}

// Every variant breaks its rule, and no other that can be spared.
func TestBrokenRuns(t *testing.T) {
	covered := make(map[string]bool)
	for _, variant := range benchmarktest.Broken() {
		t.Run(variant.Rule+"/"+variant.Name, func(t *testing.T) {
			run := benchmarktest.New(variant.Options)
			variant.Edit(run)
			got := check(t, run)
			assert.False(t, got.Valid)
			assert.ElementsMatch(t, append(variant.Also, variant.Rule), with(got, benchmark.Violated), texts(got))
			for _, violation := range got.Violations {
				assert.NotEmpty(t, violation.Field)
				assert.NotEmpty(t, violation.Expected)
				assert.NotEmpty(t, violation.Actual)
				assert.NotEqual(t, violation.Expected, violation.Actual)
			}
			assert.Empty(t, got.Groups, "a violated run has no merged results")
		})
		covered[variant.Rule] = true
	}
	for i := range benchmark.Rules {
		assert.True(t, covered[benchmark.Rules[i].Name], "no broken variant for %s", benchmark.Rules[i].Name)
	}
}

func TestRulesTable(t *testing.T) {
	names := make(map[string]bool)
	for i := range benchmark.Rules {
		rule := &benchmark.Rules[i]
		assert.False(t, names[rule.Name], "%s twice", rule.Name)
		names[rule.Name] = true
		assert.Regexp(t, `^[a-z]+(_[a-z]+)*$`, rule.Name)
		assert.NotEmpty(t, rule.Compares, rule.Name)
		assert.True(t, slices.ContainsFunc(benchmark.References, func(r struct{ Key, Text string }) bool { return r.Key == rule.Reference }),
			"%s: unknown reference %s", rule.Name, rule.Reference)
	}
	for line := range strings.Lines(benchmark.RulesTable()) {
		if strings.HasPrefix(line, "| `") {
			assert.Equal(t, 5, strings.Count(line, "|"), line)
		}
	}
}
