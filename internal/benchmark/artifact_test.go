// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/benchmarktest"
)

func TestReadKinds(t *testing.T) {
	run := benchmarktest.New(benchmarktest.Options{})
	for _, test := range []struct {
		name       string
		text       []byte
		kind       benchmark.Kind
		version    int64
		rank, size int
		probe      benchmark.ProbeState
	}{
		{name: "rank", text: run.Ranks[1].JSON(), kind: benchmark.Rank, version: 2, rank: 1, size: 2, probe: benchmark.ProbePending},
		{name: "merged", text: run.Merged.JSON(), kind: benchmark.Merged, version: 2, rank: 0, size: 2, probe: benchmark.ProbePending},
		{name: "sidecar", text: run.Sidecar.JSON(), kind: benchmark.Sidecar, version: 1, rank: benchmark.NoRank},
		{name: "version 1", text: benchmarktest.Version1().JSON(), kind: benchmark.Rank, version: 1, rank: 0, size: 1},
		{
			name: "merged without its type", text: []byte(`{"schema_version": 2, "dp": {"ranks": [0, 1], "source_ranks": [1], "global_size": 2}}`),
			kind: benchmark.Merged, version: 2, rank: 1, size: 2,
		},
		{
			name: "aborted", text: []byte(`{"schema_version": 2, "status": "failed", "valid": false, "error": "benchmark aborted"}`),
			kind: benchmark.Rank, version: 2, rank: benchmark.NoRank,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, err := benchmark.Read("file", test.text)
			require.NoError(t, err)
			assert.Equal(t, test.kind, a.Kind)
			assert.Equal(t, test.version, a.SchemaVersion)
			assert.Equal(t, test.rank, a.Rank)
			assert.Equal(t, test.size, a.Size)
			assert.Equal(t, test.probe, a.ProbeState())
		})
	}
}

func TestReadRefuses(t *testing.T) {
	long := strings.Repeat("x", 257)
	for _, test := range []struct {
		name, text, want string
	}{
		{"empty", ``, `json: line 1, column 1: got the end of the file, want a value`},
		{"cut", `{"schema_version": 2, "artifact_type": "rank", "results": [{"po`, `json: line 1, column 64: got the end of the file, want the end of a string`},
		{"too deep", strings.Repeat(`{"a":`, 65), `json: line 1, column 321: got one level more, want at most 64 levels`},
		{"NaN", `{"schema_version": 2, "timing": {"benchmark_elapsed_seconds": NaN}}`, `not_finite: line 1, column 63: got NaN, want a finite number`},
		{"-Infinity", `[-Infinity]`, `not_finite: line 1, column 2: got -Infinity, want a finite number`},
		{"a list", `[]`, `schema: file: got [], want an object`},
		{"no version", `{}`, `schema: schema_version: got absent, want 1 or 2`},
		{"version 3", `{"schema_version": 3, "results": []}`, `schema: schema_version: got 3, want 1 or 2`},
		{"a text as version", `{"schema_version": "2", "results": []}`, `schema: schema_version: got "2", want 1 or 2`},
		{"another type", `{"schema_version": 2, "artifact_type": "plot"}`, `schema: artifact_type: got "plot", want "rank" or "merged"`},
		{"something else", `{"schema_version": 1, "name": "x"}`, `schema: results: got absent, want a list`},
		{"another schema", `{"schema": "dynamo.fpm.trace.v1"}`, `schema: schema: got "dynamo.fpm.trace.v1", want "dynamo.fpm.benchmark_worker_probe" or no schema`},
		{"sidecar of version 2", `{"schema": "dynamo.fpm.benchmark_worker_probe", "schema_version": 2}`, `schema: schema_version: got 2, want 1`},
		{"sidecar of no run", `{"schema": "dynamo.fpm.benchmark_worker_probe", "schema_version": 1}`, `schema: run_id: got absent, want the run that was probed`},
		{
			"long run id", `{"schema_version": 2, "status": "failed", "run_id": "` + long + `"}`,
			`schema: run_id: got "` + long[:119] + `…, want at most 256 bytes`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := benchmark.Read("file", []byte(test.text))
			require.EqualError(t, err, test.want)
			var wrong *benchmark.ReadError
			require.True(t, errors.As(err, &wrong))
			assert.True(t, strings.HasPrefix(test.want, string(wrong.Reason)+":"))
		})
	}
}

func TestProbeInsideArtifacts(t *testing.T) {
	run := benchmarktest.New(benchmarktest.Options{})
	run.ProbeInside()
	for _, a := range read(t, run) {
		assert.Equal(t, benchmark.ProbeInside, a.ProbeState(), a.File)
	}
}
