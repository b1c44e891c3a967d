// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmarktest

import "strconv"

func makeEngine(o Options, rank int) *Object {
	return NewObject(
		"attention", NewObject(
			"backend_requested", nil, "backend_per_kind", NewObject(), "mla_prefill_backend_requested", nil,
			"flash_attn_version", 3, "use_trtllm_attention", false, "indexer_kv_dtype", "fp8", "indexer_kv_dtype_configured", "auto",
			"backend_resolved", nil, "mla_prefill_backend_resolved", nil, "resolution", "pending_worker_probe",
		),
		"kv_cache", NewObject("cache_dtype", "auto", "block_size", 64, "enable_prefix_caching", true,
			"groups", List{NewObject("type", "FullAttentionSpec", "dtype", "bfloat16", "head_size", 128, "num_kv_heads", 8, "block_size", 64, "kv_quant_mode", "NONE")},
			"kv_cache_layout", "LBHNC"),
		"quantization", NewObject("method", "fp8", "checkpoint_config", NewObject("quant_method", "fp8", "activation_scheme", "dynamic"), "quant_config_class", "Fp8Config"),
		"scheduler", NewObject("max_num_batched_tokens", 8192, "max_num_seqs", 256, "async_scheduling", true, "enable_chunked_prefill", true, "long_prefill_token_threshold", 0),
		"model", NewObject("dtype", "bfloat16", "model_type", "deepseek_v3", "architectures", List{"DeepseekV3ForCausalLM"}, "model", "deepseek-ai/DeepSeek-V3"),
		"parallel", NewObject("data_parallel_size", o.Ranks, "data_parallel_rank", rank, "tensor_parallel_size", 1, "pipeline_parallel_size", 1,
			"prefill_context_parallel_size", 1, "enable_expert_parallel", true, "enable_eplb", false, "all2all_backend", "deepep_high_throughput"),
		"speculative", nil,
		"graph", NewObject("cudagraph_mode", "FULL", "cudagraph_capture_sizes", List{1, 2, 4, 8, 16, 32}, "resolution", "pre_resolution"),
		"versions", NewObject("vllm", "0.29.0", "vllm_build_commit", "abcdef0", "dynamo", "0.9.0", "python", "3.12.3"),
		"resolved", nil,
		"resolution", "pending_worker_probe",
	)
}

// makeSidecar is of a probe that every worker answered.
func makeSidecar(o Options) *Object {
	all := make([]int, o.Ranks)
	files, ranks := List{}, NewObject()
	for rank := range all {
		all[rank] = rank
		files = append(files, Folder+Name(rank))
		result := ProbeResult(o, []int{rank}, all)
		entry := NewObject("rank_file", Folder+Name(rank))
		for _, key := range result.keys {
			entry.Set(key, result.values[key])
		}
		ranks.Set(strconv.Itoa(rank), entry)
	}
	return NewObject(
		"schema", "dynamo.fpm.benchmark_worker_probe", "schema_version", 1, "run_id", o.RunID,
		"merged_output_path", Folder+MergedName, "rank_files", files,
		"merged", ProbeResult(o, all, all), "ranks", ranks,
	)
}

// Probe replaces the sidecar by that of a probe that only some ranks answered.
func (r *Run) Probe(answered ...int) {
	all := make([]int, r.Options.Ranks)
	for rank := range all {
		all[rank] = rank
	}
	r.Sidecar = makeSidecar(r.Options)
	r.Sidecar.Set("merged", ProbeResult(r.Options, all, answered))
	for rank := range all {
		entry := r.Sidecar.Object("ranks." + strconv.Itoa(rank))
		result := ProbeResult(r.Options, []int{rank}, answered)
		for _, key := range result.keys {
			entry.Set(key, result.values[key])
		}
	}
}

// ProbeResult is the result for the ranks in scope when those of answered
// replied, each with one worker.
func ProbeResult(o Options, scope, answered []int) *Object {
	responses, observed, missing := List{}, List{}, List{}
	var representative any
	for index, rank := range answered {
		responses = append(responses, NewObject("rpc_index", index, "response", reply(rank), "issues", List{}))
	}
	expected := List{}
	for _, rank := range scope {
		expected = append(expected, rank)
		if !contains(answered, rank) {
			missing = append(missing, rank)
			continue
		}
		observed = append(observed, NewObject("dp_rank", rank, "worker_rank", 0, "tp_rank", 0, "pp_rank", 0, "pcp_rank", 0))
		if representative == nil {
			representative = reply(rank)
		}
	}
	resolution, backend, prefill, scopeText := "worker_probe", any("FLASH_ATTN_MLA"), any("FlashAttnPrefillBackend"), any("representative_worker")
	switch {
	case representative == nil:
		resolution, backend, prefill, scopeText = "worker_probe_unobserved", nil, nil, nil
	case len(missing) > 0:
		resolution = "worker_probe_partial"
	}
	return NewObject(
		"resolved", representative, "resolved_scope", scopeText, "resolution", resolution,
		"worker_probe", NewObject(
			"schema_version", 1, "scope", "post_collection_collective_rpc", "responses", responses,
			"coverage", NewObject("scope", "artifact_workers", "expected_dp_ranks", expected, "expected_workers_per_dp", 1,
				"observed_workers", observed, "missing_dp_ranks", missing, "complete", len(missing) == 0),
			"disagreements", List{}, "error", nil,
		),
		"attention", NewObject("backend_resolved", backend, "mla_prefill_backend_resolved", prefill, "resolution", resolution),
	)
}

func contains(ranks []int, rank int) bool {
	for _, other := range ranks {
		if other == rank {
			return true
		}
	}
	return false
}

func reply(rank int) *Object {
	return NewObject(
		"tp_rank", 0, "pp_rank", 0, "pcp_rank", 0, "worker_rank", 0, "dp_rank", rank,
		"attention_backends", NewObject("model.layers.0.self_attn", "FLASH_ATTN_MLA"),
		"mla_prefill_backend", "FlashAttnPrefillBackend", "cudagraph_mode_resolved", "FULL",
		"cudagraph_capture_sizes_resolved", List{1, 2, 4, 8, 16, 32}, "capture_errors", NewObject(),
	)
}

// ProbeInside writes the probe's results into the artifacts themselves, as
// earlier versions did, and removes the sidecar.
func (r *Run) ProbeInside() {
	into := func(engine, result *Object) {
		for _, key := range []string{"resolved", "resolved_scope", "resolution", "worker_probe"} {
			engine.Set(key, Clone(result.values[key]))
		}
		for _, key := range result.Object("attention").keys {
			engine.Set("attention."+key, result.At("attention."+key))
		}
	}
	for rank, file := range r.Ranks {
		into(file.Object("engine"), r.Sidecar.Object("ranks."+strconv.Itoa(rank)))
	}
	into(r.Merged.Object("engine"), r.Sidecar.Object("merged"))
	r.Merged.Delete("worker_probe_path")
	r.Sidecar = nil
}
