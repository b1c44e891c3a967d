// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/benchmarktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "rewrite testdata/*.txt and the examples in README.md")

type (
	fixture = benchmarktest.Options
	object  = benchmarktest.Object
)

// result is what a command did.
type result struct {
	code           int
	stdout, stderr string
}

// command runs the program in a folder, so that its output has no path of the
// machine.
func command(t *testing.T, folder string, args ...string) result {
	t.Helper()
	t.Chdir(folder)
	var stdout, stderr bytes.Buffer
	code := run(args, &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

// written writes a run into a new folder.
func written(t *testing.T, run *benchmarktest.Run) string {
	t.Helper()
	folder := t.TempDir()
	run.Write(t, folder)
	return folder
}

// mergedFile writes the merged file of a run under a name.
func mergedFile(t *testing.T, folder, name string, run *benchmarktest.Run) {
	t.Helper()
	benchmarktest.WriteFile(t, filepath.Join(folder, name), run.Merged.JSON())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join(testdata, name+".txt")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// testdata is found from any folder.
var testdata, _ = filepath.Abs("testdata")

func TestUsage(t *testing.T) {
	folder := written(t, benchmarktest.New(fixture{}))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "cut.json"), []byte(`{"schema_version": 2, "resu`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "nan.json"), []byte(`{"schema_version": 2, "timing": NaN}`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "none.json"), []byte(`{"schema_version": 2, "status": "failed"}`), 0o600))
	for _, test := range []struct {
		args   string
		code   int
		stderr []string
	}{
		{"", 2, []string{"usage: fpmbench show"}},
		{"--help", 0, nil},
		{"help", 0, nil},
		{"show --help", 0, nil},
		{"frobnicate", 2, []string{`got "frobnicate", want show, check or compare`}},
		{"show", 2, []string{"want the files of a run"}},
		{"show --bogus x.json", 2, []string{"flag provided but not defined: -bogus"}},
		{"check --fail-over 2 x.json", 2, []string{"flag provided but not defined: -fail-over"}},
		{"show nothing.json", 2, []string{"nothing.json: stat nothing.json: no such file or directory"}},
		{"check cut.json nan.json", 2, []string{
			"cut.json: json: line 1, column 28: got the end of the file, want the end of a string",
			"nan.json: not_finite: line 1, column 33: got NaN, want a finite number",
		}},
		{"check benchmark_results_merged_worker_probe.json", 2, []string{"only sidecars; want a rank or merged file"}},
		{"compare benchmark_results.json", 2, []string{"got 1 files, want two"}},
		{"compare a b c", 2, []string{"got 3 files, want two"}},
		{"compare --fail-over x a b", 2, []string{`invalid value "x" for flag -fail-over: want a ratio above 0, such as 1.1`}},
		{"compare --fail-over 0 a b", 2, []string{"want a ratio above 0"}},
		{"compare --fail-over 1.1x a b", 2, []string{"want a ratio above 0"}},
		{"compare --allow-different= a b", 2, []string{"want a field, such as engine.versions.vllm"}},
		{"compare nothing.json cut.json", 2, []string{"nothing.json: stat", "cut.json: json:"}},
		{"compare none.json benchmark_results.json", 2, []string{"none.json: no points"}},
	} {
		t.Run(test.args, func(t *testing.T) {
			got := command(t, folder, strings.Fields(test.args)...)
			assert.Equal(t, test.code, got.code, got.stderr)
			if test.code == 0 {
				assert.Equal(t, usage, got.stdout)
				assert.Empty(t, got.stderr)
				return
			}
			assert.Empty(t, got.stdout)
			for _, text := range test.stderr {
				assert.Contains(t, got.stderr, text)
			}
		})
	}
}

func TestShow(t *testing.T) {
	for name, test := range map[string]struct {
		options fixture
		edit    func(*benchmarktest.Run)
		code    int
		files   []string
	}{
		"show": {code: 0, files: []string{benchmarktest.MergedName}},
		"show_partial_probe": {
			edit: func(r *benchmarktest.Run) { r.Probe(0) }, files: []string{benchmarktest.MergedName},
		},
		"show_ranks": {
			edit:  func(r *benchmarktest.Run) { r.Merged = nil },
			files: []string{benchmarktest.Name(0), benchmarktest.Name(1), benchmarktest.SidecarName},
		},
		"show_violated": {
			edit: func(r *benchmarktest.Run) { r.Ranks[1].Set("results.0.fpms.0.wall_time", 0.5) },
			code: 1, files: []string{benchmarktest.Name(1), benchmarktest.Name(0)},
		},
		"show_partial": {options: fixture{Partial: true}, files: []string{benchmarktest.MergedName}},
		"show_legacy":  {options: fixture{Legacy: true, Ranks: 1}, files: []string{benchmarktest.Name(0)}},
	} {
		t.Run(name, func(t *testing.T) {
			run := benchmarktest.New(test.options)
			if test.edit != nil {
				test.edit(run)
			}
			folder := written(t, run)
			got := command(t, folder, append([]string{"show"}, test.files...)...)
			assert.Equal(t, test.code, got.code)
			assert.Empty(t, got.stderr)
			golden(t, name, got.stdout)
			for line := range strings.Lines(got.stdout) {
				assert.Equal(t, strings.TrimRight(line, " \n"), strings.TrimRight(line, "\n"), "no line ends in blanks")
			}

			asJSON := command(t, folder, append([]string{"show", "--json"}, test.files...)...)
			assert.Equal(t, test.code, asJSON.code)
			var shown jsonRun
			require.NoError(t, json.Unmarshal([]byte(asJSON.stdout), &shown))
			assert.Equal(t, test.code == 0, shown.Valid)
			assert.NotEmpty(t, shown.Points)
			assert.Equal(t, shown.Valid, len(shown.Groups) > 0)
		})
	}
}

func TestShowVersion1(t *testing.T) {
	folder := t.TempDir()
	benchmarktest.WriteFile(t, filepath.Join(folder, "old.json"), benchmarktest.Version1().JSON())
	got := command(t, folder, "show", "old.json")
	assert.Equal(t, 0, got.code)
	golden(t, "show_version1", got.stdout)
}

// A sidecar that cannot be used is said, and no fault of the run.
func TestSidecarOfAnotherRun(t *testing.T) {
	run := benchmarktest.New(fixture{})
	run.Sidecar.Set("run_id", "another")
	folder := written(t, run)
	got := command(t, folder, "show", benchmarktest.MergedName)
	assert.Equal(t, 0, got.code)
	assert.Contains(t, got.stdout, "no post-run evidence")
	assert.Equal(t, `fpmbench: no worker replies: `+benchmarktest.SidecarName+`: sidecar_run_id: run_id: got "another", want "3f6a0c1e9b2d4e7f8a5b6c7d8e9f0a1b"`+"\n", got.stderr)
	// Named by the user it is an error.
	got = command(t, folder, "show", benchmarktest.MergedName, benchmarktest.SidecarName)
	assert.Equal(t, 2, got.code)
}

func TestCheck(t *testing.T) {
	folder := written(t, benchmarktest.New(fixture{}))
	got := command(t, folder, "check", benchmarktest.Name(0), benchmarktest.Name(1), benchmarktest.MergedName)
	assert.Equal(t, 0, got.code)
	golden(t, "check", got.stdout)

	got = command(t, folder, "check", benchmarktest.MergedName)
	assert.Equal(t, 0, got.code)
	golden(t, "check_merged_alone", got.stdout)

	got = command(t, folder, "check", benchmarktest.Name(0))
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stdout, "ranks_present: rank 1: dp.size: expected files of 2 ranks, got 1, without rank 1\n")
}

// Each rule's variant is found, by name, in table and JSON.
func TestCheckFindsEveryBrokenRule(t *testing.T) {
	for _, variant := range benchmarktest.Broken() {
		t.Run(variant.Rule+"/"+variant.Name, func(t *testing.T) {
			run := benchmarktest.New(variant.Options)
			variant.Edit(run)
			run.Sidecar = nil
			folder := t.TempDir()
			var files []string
			for _, path := range run.Write(t, folder) {
				files = append(files, filepath.Base(path))
			}
			got := command(t, folder, append([]string{"check"}, files...)...)
			assert.Equal(t, 1, got.code, got.stderr)
			assert.Regexp(t, `(?m)^violated +`+variant.Rule+` +\d+ times$`, got.stdout)
			assert.Regexp(t, `(?m)^`+variant.Rule+`: .*expected .*, got `, got.stdout)

			got = command(t, folder, append([]string{"check", "--json"}, files...)...)
			assert.Equal(t, 1, got.code)
			var checked jsonCheck
			require.NoError(t, json.Unmarshal([]byte(got.stdout), &checked))
			assert.Len(t, checked.Rules, len(benchmark.Rules))
			found := false
			for _, violation := range checked.Violations {
				found = found || violation.Rule == variant.Rule
			}
			assert.True(t, found)
		})
	}
}

// However often a rule is violated, the count is right.
func TestCheckCountsTheRest(t *testing.T) {
	var points []benchmarktest.Point
	for range 40 {
		points = append(points, benchmarktest.StandardPoints()[0])
	}
	run := benchmarktest.New(fixture{Ranks: 1, Points: points})
	for id := range points {
		run.EachFPM(0, id+1, func(fpm *object) { fpm.Set("counter_id", 0) })
	}
	got := command(t, written(t, run), "check", benchmarktest.MergedName)
	assert.Equal(t, 1, got.code)
	assert.Regexp(t, `(?m)^violated +fpm_counter_id +40 times$`, got.stdout)
	assert.Contains(t, got.stdout, "fpm_counter_id: and 24 more\n")
}

// Text of a file cannot steer the terminal.
func TestOutputIsPrintable(t *testing.T) {
	const evil = "\x1b[2Jevil\u202e\t\n\u0085"
	run := benchmarktest.New(fixture{RunID: evil, Ranks: 1})
	run.Each(func(file *object) {
		file.Set("engine.model.model", evil)
		file.Set("engine.versions.vllm", evil)
		file.Set("grid_digest", evil)
		file.Set("stop_reason", evil)
	})
	for id := range run.Options.Points {
		run.EachFPM(0, id+1, func(fpm *object) { fpm.Set("dp_rank", evil) })
	}
	run.Each(func(file *object) { file.Set("iteration_groups.0.point.point_type", evil) })
	folder := written(t, run)
	for _, args := range [][]string{
		{"show", benchmarktest.MergedName},
		{"check", benchmarktest.MergedName, benchmarktest.Name(0)},
		{"compare", benchmarktest.MergedName, benchmarktest.Name(0)},
		{"compare", "--json", benchmarktest.MergedName, benchmarktest.Name(0)},
	} {
		got := command(t, folder, args...)
		for _, r := range got.stdout + got.stderr {
			assert.True(t, r == '\n' || printable(string(r)) == string(r) || args[1] == "--json" && r != '\x1b', "%q in %v", r, args)
		}
		assert.NotContains(t, got.stdout+got.stderr, "\x1b")
	}
}
