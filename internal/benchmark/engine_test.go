// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/benchmarktest"
	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"
)

// What a missing or failed capture, sidecar or probe may mean: never an invalid
// run, and never a value.
func TestEngineEvidence(t *testing.T) {
	partialCapture := func() *benchmarktest.Object {
		return benchmarktest.NewObject("attention", benchmarktest.NewObject("backend_requested", "FLASHINFER"), "capture_error", "hf_config missing")
	}
	captureErrors := func(r *benchmarktest.Run, errors *benchmarktest.Object) {
		r.Merged.Set("engine.capture_errors", errors)
	}
	for _, test := range []struct {
		name    string
		options benchmarktest.Options
		edit    func(*benchmarktest.Run)
		// rank is whose block it is, when there is one.
		rank          int
		noBlock       bool
		captureErrors []benchmark.CaptureError
		resolution    string
		scope         string
		backend       string
		complete      bool
		// observed are the ranks with a representative of their own.
		observed []int
	}{
		{
			name: "all answered", rank: benchmark.NoRank, complete: true,
			resolution: "worker_probe", scope: "representative_worker", backend: "FLASH_ATTN_MLA", observed: []int{0, 1},
		},
		{
			name: "one answered", edit: func(r *benchmarktest.Run) { r.Probe(0) }, rank: benchmark.NoRank,
			resolution: "worker_probe_partial", scope: "representative_worker", backend: "FLASH_ATTN_MLA", observed: []int{0},
		},
		{name: "none answered", edit: func(r *benchmarktest.Run) { r.Probe() }, rank: benchmark.NoRank, resolution: "worker_probe_unobserved"},
		{
			name: "the probe failed", rank: benchmark.NoRank, resolution: "probe_failed: TimeoutError: ",
			edit: func(r *benchmarktest.Run) {
				r.Probe()
				r.Sidecar.Set("merged.resolution", "probe_failed: TimeoutError: ")
			},
		},
		{
			name: "the backends differ", rank: benchmark.NoRank, resolution: "worker_probe_mixed", scope: "representative_worker", observed: []int{0, 1},
			edit: func(r *benchmarktest.Run) {
				r.Sidecar.Set("merged.resolution", "worker_probe_mixed")
				r.Sidecar.Set("merged.attention.backend_resolved", nil)
				r.Sidecar.Set("merged.attention.resolution", "worker_probe_mixed")
			},
		},
		{
			name: "complete is said, and not so", rank: benchmark.NoRank, observed: []int{0, 1},
			resolution: "worker_probe", scope: "representative_worker", backend: "FLASH_ATTN_MLA",
			edit: func(r *benchmarktest.Run) { r.Sidecar.Set("merged.worker_probe.coverage.complete", false) },
		},
		{
			name: "a representative without its scope", rank: benchmark.NoRank, resolution: "worker_probe", complete: true, observed: []int{0, 1},
			edit: func(r *benchmarktest.Run) { r.Sidecar.Set("merged.resolved_scope", nil) },
		},
		{
			name: "a rank's representative is another's", rank: benchmark.NoRank, observed: []int{0}, complete: true,
			resolution: "worker_probe", scope: "representative_worker", backend: "FLASH_ATTN_MLA",
			edit: func(r *benchmarktest.Run) { r.Sidecar.Set("ranks.1.resolved.dp_rank", 0) },
		},
		{name: "no sidecar", edit: func(r *benchmarktest.Run) { r.Sidecar = nil }, rank: benchmark.NoRank},
		{
			name: "written into the artifacts", edit: (*benchmarktest.Run).ProbeInside, rank: benchmark.NoRank, complete: true,
			resolution: "worker_probe", scope: "representative_worker", backend: "FLASH_ATTN_MLA", observed: []int{0, 1},
		},
		{name: "no engine", options: benchmarktest.Options{NoEngine: true}, noBlock: true, rank: benchmark.NoRank},
		{
			name: "one rank without a block", rank: benchmark.NoRank,
			edit: func(r *benchmarktest.Run) {
				r.Ranks[1].Delete("engine")
				captureErrors(r, benchmarktest.NewObject("1", "missing engine block"))
				r.Sidecar = nil
			},
			captureErrors: []benchmark.CaptureError{{Rank: 1, Text: "missing engine block"}},
		},
		{
			name: "one capture failed, merged here", rank: 1,
			edit: func(r *benchmarktest.Run) {
				r.Ranks[0].Set("engine", partialCapture())
				r.Merged, r.Sidecar = nil, nil
			},
			captureErrors: []benchmark.CaptureError{{Rank: 0, Text: "hf_config missing"}},
		},
		{
			name: "all captures failed", rank: 0,
			edit: func(r *benchmarktest.Run) {
				r.Ranks[0].Set("engine", partialCapture())
				r.Ranks[1].Delete("engine")
				r.Merged, r.Sidecar = nil, nil
			},
			captureErrors: []benchmark.CaptureError{{Rank: 0, Text: "hf_config missing"}, {Rank: 1, Text: "missing engine block"}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := benchmarktest.New(test.options)
			if test.edit != nil {
				test.edit(run)
			}
			got := check(t, run)
			assert.True(t, got.Valid, texts(got))
			assert.Equal(t, !test.noBlock, got.Engine.Block.Exists())
			assert.Equal(t, test.rank, got.Engine.Rank)
			assert.Equal(t, test.captureErrors, got.Engine.CaptureErrors)
			if test.resolution == "" {
				assert.Nil(t, got.Engine.Probe)
				assert.Empty(t, got.Engine.RankProbes)
				return
			}
			probe := got.Engine.Probe
			assert.Equal(t, test.resolution, probe.Resolution)
			assert.Equal(t, test.scope, probe.Scope)
			assert.Equal(t, test.scope != "", probe.Resolved.Exists())
			assert.Equal(t, test.complete, probe.Complete())
			backend, _ := probe.Attention.Get("backend_resolved").Text()
			assert.Equal(t, test.backend, backend)
			var observed []int
			for rank := range 2 {
				if rankProbe := got.Engine.RankProbes[rank]; rankProbe.Resolved.Exists() {
					observed = append(observed, rank)
					assert.Equal(t, "representative_worker", rankProbe.Scope)
				} else {
					assert.Empty(t, rankProbe.Scope)
					assert.False(t, rankProbe.Attention.Exists())
				}
			}
			assert.Equal(t, test.observed, observed)
			// The probe says nothing of what the engine believed at start.
			graph := got.Engine.Block.Get("graph")
			assert.JSONEq(t, `{"cudagraph_mode":"FULL","cudagraph_capture_sizes":[1,2,4,8,16,32],"resolution":"pre_resolution"}`, graph.Short())
		})
	}
}

// One rank without a usable block does not end the comparison of the others.
func TestEngineIdentityBesideAFailedCapture(t *testing.T) {
	run := benchmarktest.New(benchmarktest.Options{Ranks: 3})
	run.Ranks[0].Delete("engine")
	run.Ranks[2].Set("engine.attention.backend_requested", "FLASHINFER")
	run.Merged, run.Sidecar = nil, nil
	got := check(t, run)
	require.Len(t, got.Violations, 1)
	violation := got.Violations[0]
	assert.Equal(t, "engine_identity", violation.Rule.Name)
	assert.Equal(t, "engine.attention.backend_requested", violation.Field)
	assert.Equal(t, "null", violation.Expected)
	assert.Equal(t, `"FLASHINFER"`, violation.Actual)
	assert.Equal(t, []int{2}, violation.Ranks)
}

func TestSidecarOfAnotherRun(t *testing.T) {
	run := benchmarktest.New(benchmarktest.Options{})
	run.Sidecar.Set("run_id", "another")
	artifacts := read(t, run)
	checker := benchmark.NewChecker()
	for _, a := range artifacts[:3] {
		checker.Add(a)
	}
	err := checker.AddSidecar(artifacts[3])
	require.EqualError(t, err, `sidecar_run_id: run_id: got "another", want "3f6a0c1e9b2d4e7f8a5b6c7d8e9f0a1b"`)
	got := checker.Finish()
	assert.True(t, got.Valid)
	assert.Nil(t, got.Engine.Probe)
}

func TestIdentity(t *testing.T) {
	run := check(t, benchmarktest.New(benchmarktest.Options{}))
	fields := map[string]string{}
	for field, value := range run.Engine.Identity() {
		assert.NotEqual(t, document.Null, value.Kind(), field)
		fields[field] = value.Short()
	}
	assert.Equal(t, `"bfloat16"`, fields["model.dtype"])
	assert.Equal(t, `"deepseek-ai/DeepSeek-V3"`, fields["model.model"])
	assert.Equal(t, `1`, fields["parallel.tensor_parallel_size"])
	assert.Equal(t, `"fp8"`, fields["quantization.method"])
	assert.Equal(t, `"0.29.0"`, fields["versions.vllm"])
	for _, field := range []string{"parallel.data_parallel_rank", "attention.resolution", "attention.backend_resolved", "kv_cache.groups", "model.architectures"} {
		assert.NotContains(t, fields, field)
	}
}
