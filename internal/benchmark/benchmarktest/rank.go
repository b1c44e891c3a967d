// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmarktest

import "fmt"

// makeRank is the file of one rank.
func makeRank(o Options, rank int, groups List, measured float64) *Object {
	file := NewObject(
		"schema_version", 2,
		"artifact_type", "rank",
		"status", "complete", "valid", true, "usable", true, "stop_reason", nil, "timing_valid", true,
		"run_id", o.RunID, "grid_digest", GridDigest,
		"timing", NewObject(
			"started_at", "2026-09-19T12:00:00+00:00",
			"completed_at", fmt.Sprintf("2026-09-19T12:00:%02d.500000+00:00", 10+rank),
			"benchmark_elapsed_seconds", 10.5+float64(rank),
			"measured_iteration_seconds", measured,
		),
		"dp", NewObject("rank", rank, "size", o.Ranks),
		"synchronization", NewObject("enabled", o.Ranks > 1, "coordinator_rank", 0, "port", 20380+o.Ranks),
		"coverage", NewObject("expected_points", len(o.Points), "completed_points", len(groups), "skipped_points", 0),
		"config", NewObject("mode", "agg", "warmup_iterations", 5, "output_path", Folder+"benchmark_results.json"),
		"limits", NewObject(
			"max_num_scheduled_tokens", 8192, "max_num_running_reqs", 256, "max_model_len", 131072-rank*64,
			"block_size", 64, "num_gpu_blocks", 20000-rank*16, "configured_max_batch_size", 256, "feasible_max_batch_size", 256,
		),
		"measurement_policy", NewObject("decode", "steady_state_second_step", "prefill", "single_step"),
		"synthetic_prompts", NewObject("mode", "random", "vocab_size", 129280),
		"cudagraph", NewObject("mode", "FULL_AND_PIECEWISE", "max_capture_size", 128, "capture_sizes", List{1, 2, 4, 8, 16, 32, 64, 128}),
		"results", makeResults(rank, groups),
		"iteration_groups", Clone(groups),
		"skipped_points", List{},
		"missing_phases", List{},
		"error", nil,
	)
	if o.Partial {
		for key, value := range map[string]any{"status": "partial", "valid": false, "stop_reason": "timeout"} {
			file.Set(key, value)
		}
	}
	if !o.Legacy {
		file.Set("measurement_protocol", makeProtocol(o))
		file.Set("kvwarm", NewObject("enabled", true, "initialization_strategy", "native_exact_context",
			"stages", List{NewObject("context", 256, "status", "completed")}))
	}
	if !o.NoEvidence {
		file.Set("warmup_evidence", makeWarmup(rank))
	}
	if !o.NoEngine {
		file.Set("engine", makeEngine(o, rank))
	}
	return file
}

// makeResults are a rank's own results, out of the groups.
func makeResults(rank int, groups List) List {
	results := List{}
	for _, item := range groups {
		group := item.(*Object)
		results = append(results, NewObject(
			"point", Clone(group.Object("point")),
			"kv_seed_regime", seedRegime(group.Object("point")),
			"fpms", Clone(group.List(fmt.Sprintf("rank_results.%d.fpms", rank))),
		))
	}
	return results
}

func seedRegime(point *Object) string {
	switch {
	case point.At("point_type") == "decode":
		return "real_kv"
	case point.At("total_kv_read_tokens") != 0:
		return "real_prefix"
	default:
		return "not_applicable"
	}
}

func makeProtocol(o Options) *Object {
	protocol := NewObject(
		"schema_version", 1,
		"content_identity", "coordinate_rank_slot_v1",
		"content_seed", "0", "synthetic_content", "random", "synthetic_pool_tag", "",
		"prompt_hash_encoding", "uint32_le", "independent_repetitions", 1, "timing_metric", "scheduler_wall_time",
	)
	if !o.NoEvidence {
		protocol.Set("execution_evidence", NewObject(
			"schema_version", 1, "sample_field", "benchmark_sample", "warmup_field", "warmup_evidence",
			"forward_index_scope", "rank_process", "timing_clock", "process_local_monotonic",
			"cudagraph_source", "ModelRunnerOutput.cudagraph_stats",
			"warmup_scope", "request_completion_and_existing_shape_validation",
		))
	}
	protocol.Set("input_evidence_scope", "injected_prompt_token_ids")
	protocol.Set("unobserved", List{"sampled_continuation_token_ids", "kv_cache_tensors", "recurrent_state_tensors", "execution_history_equivalence"})
	protocol.Set("preparation", NewObject("warmup_iterations", 5, "prefill_real_seed", true, "decode_real_kv_warmup", true,
		"giant_kv_threshold", 262144, "giant_kv_repeats", 3))
	return protocol
}

// warmupForwards is how many forwards came before the first point.
const warmupForwards = 5

func makeWarmup(rank int) *Object {
	return NewObject("status", "recorded", "records", List{
		NewObject(
			"kind", "global", "requested_shape", NewObject("prompt_lengths", List{32 + rank}), "status", "completed",
			"forward_index_start", 0, "forward_index_end", 3, "completed_points_before", 0, "observed_forward_count", 3,
			"first_scheduled_requests", NewObject("num_requests", 1), "last_scheduled_requests", NewObject("num_requests", 1),
			"validation", NewObject("status", "not_performed", "reason", nil),
		),
		NewObject(
			"kind", "eager_shape", "requested_shape", NewObject("batch_size", 4), "status", "completed",
			"forward_index_start", 3, "forward_index_end", warmupForwards, "completed_points_before", 0, "observed_forward_count", 2,
			"first_scheduled_requests", nil, "last_scheduled_requests", nil,
			"validation", NewObject("status", "passed", "reason", nil, "scope", "attention_dp_group", "failed_dp_rank", nil),
		),
	})
}
