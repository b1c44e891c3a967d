// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"fmt"
	"strings"
)

// Rule is one thing that holds for every sound run. Exactly one of its checks
// is set, by what it looks at.
type Rule struct {
	// Name is stable.
	Name string
	// Compares says what is compared with what.
	Compares string
	// Needs says what must be there, else the rule is not checked.
	Needs string
	// Reference is where the rule comes from, a key of References.
	Reference string

	// file looks at each Rank and Merged file; checker.reference is the first.
	file func(*Checker, *Artifact, *report)
	// group looks at each iteration group of the first file.
	group func(*Checker, *group, *report)
	// fpm looks at each rank's result in each group of the first file; at the
	// results of a file without groups.
	fpm func(*Checker, *measured, *report)
	// run looks at the run when all files are known.
	run func(*Checker, *report)
}

// References explains Rule.Reference.
var References = []struct{ Key, Text string }{
	{"rank file", "what Dynamo's merger demands of a rank file before it merges (`_validate_benchmark_rank_payload`)"},
	{"merger", "what Dynamo's merger demands of rank files together (`_merge_benchmark_rank_results`)"},
	{"evidence", "what Dynamo's merger demands of raw samples and warm-up (`_validate_execution_measurement`, `_validate_warmup_evidence`)"},
	{"merged file", "what Dynamo's merger writes"},
	{"page", "the page \"Forward Pass Metrics Trace Reference\" of Dynamo's manual"},
}

// What rules need.
const (
	needsRankFile  = "a rank file"
	needsRankFiles = "two rank files"
	needsFiles     = "two files"
	needsMerged    = "a merged file"
	needsGroups    = "iteration groups"
	needsProtocol  = "`measurement_protocol`"
	needsContract  = "`execution_evidence`"
	needsEngines   = "two `engine` blocks"
)

// Rules are all rules, in the order in which they are shown.
var Rules = []Rule{
	// The run.
	{Name: "run_id", Compares: "`run_id` is a text that is not empty, the same in all files", Reference: "merger", file: checkRunID},
	{Name: "grid_digest", Compares: "`grid_digest` is a text that is not empty, the same in all files", Reference: "merger", file: checkGridDigest},
	{Name: "dp_size", Compares: "`dp.size` (merged: `dp.global_size`) is 1 or more, the same in all files", Reference: "merger", file: checkDPSize},
	{Name: "dp_rank", Compares: "`dp.rank` is 0 … size − 1, another in each file", Needs: needsRankFile, Reference: "merger", file: checkDPRank},
	{Name: "ranks_present", Compares: "without a merged file each rank 0 … size − 1 has a file", Needs: "no merged file", Reference: "page", run: checkRanksPresent},

	// Status and coverage.
	{Name: "status", Compares: "`status` is `complete` or `partial`", Reference: "rank file", file: checkStatus},
	{Name: "status_equal", Compares: "`status` is the same in all files", Needs: needsFiles, Reference: "merger", file: checkStatusEqual},
	{Name: "status_complete", Compares: "a `complete` run is `valid` and `usable`, has all points, none skipped, no `stop_reason`, `error` or missing phase", Needs: "status `complete`", Reference: "rank file", file: checkStatusComplete},
	{Name: "status_partial", Compares: "a `partial` run is not `valid` but `usable`, has some points, none skipped, `stop_reason` `timeout`, no `error` or missing phase", Needs: "status `partial`", Reference: "rank file", file: checkStatusPartial},
	{Name: "stop_reason_equal", Compares: "`stop_reason` is the same in all files", Needs: needsFiles, Reference: "merger", file: checkStopReasonEqual},
	{Name: "coverage", Compares: "`coverage` counts `results`, `iteration_groups` and `skipped_points`; completed + skipped is at most expected", Needs: needsRankFile, Reference: "rank file", file: checkCoverage},
	{Name: "coverage_equal", Compares: "`coverage` is the same in all rank files", Needs: needsRankFiles, Reference: "merger", file: checkCoverageEqual},

	// What the measurements are.
	{Name: "protocol_version", Compares: "`measurement_protocol.schema_version` is 1", Needs: needsProtocol, Reference: "merger", file: checkProtocolVersion},
	{Name: "protocol_equal", Compares: "`measurement_protocol` is the same in all files, or absent in all", Needs: needsFiles, Reference: "merger", file: checkProtocolEqual},
	{Name: "execution_contract", Compares: "`execution_evidence` has `schema_version` 1 and names the fields `benchmark_sample` and `warmup_evidence`", Needs: needsContract, Reference: "merger", file: checkExecutionContract},
	{Name: "engine_identity", Compares: "`engine` is the same in all files, but for `parallel.data_parallel_rank` and what is known only after the run", Needs: needsEngines, Reference: "merger", file: checkEngineIdentity},

	// Timing of the run.
	{Name: "timing_values", Compares: "`timing` has two times and two finite durations, none negative", Reference: "merger", file: checkTimingValues},
	{Name: "timing_order", Compares: "`measured_iteration_seconds` is at most `benchmark_elapsed_seconds` + 1e-12", Reference: "merger", file: checkTimingOrder},
	{Name: "timing_sum", Compares: "`measured_iteration_seconds` is the sum of the groups' `wall_time`, within 1e-9 of it", Needs: needsGroups, Reference: "merger", file: checkTimingSum},

	// Iteration groups.
	{Name: "groups_present", Compares: "`iteration_groups` is a list that is not empty", Reference: "merger", file: checkGroupsPresent},
	{Name: "groups_equal", Compares: "`iteration_groups` is the same in all files", Needs: needsFiles, Reference: "merger", file: checkGroupsEqual},
	{Name: "benchmark_ids", Compares: "the groups' `benchmark_id` are 1 … N, each once, in any order", Needs: needsGroups, Reference: "merger", run: checkBenchmarkIDs},
	{Name: "group_point", Compares: "the `benchmark_id` of a group's `point` is the group's", Needs: needsGroups, Reference: "merger", group: checkGroupPoint},
	{Name: "group_complete", Compares: "a group is `complete`, and its `expected_dp_ranks` are 0 … size − 1", Needs: needsGroups, Reference: "merger", group: checkGroupComplete},
	{Name: "group_ranks", Compares: "the `dp_rank` of a group's `rank_results` are 0 … size − 1, in order", Needs: needsGroups, Reference: "merger", group: checkGroupRanks},
	{Name: "group_wall_time", Compares: "a group's `wall_time` is exactly the largest of its ranks", Needs: needsGroups, Reference: "merger", group: checkGroupWallTime},

	// The FPM of a rank and point.
	{Name: "one_fpm", Compares: "a rank has exactly one FPM a point", Reference: "merger", fpm: checkOneFPM},
	{Name: "fpm_counter_id", Compares: "an FPM's `counter_id` is the point's `benchmark_id`", Reference: "merger", fpm: checkFPMCounterID},
	{Name: "fpm_dp_rank", Compares: "an FPM's `dp_rank` is its rank", Reference: "merger", fpm: checkFPMDPRank},
	{Name: "fpm_wall_time", Compares: "an FPM's `wall_time` is a number, not negative", Reference: "merger", fpm: checkFPMWallTime},
	{Name: "prefill_kv_tokens", Compares: "the `sum_prefill_kv_tokens` that a prefill pass scheduled is the point's `total_kv_read_tokens`", Needs: "a prefill point", Reference: "page", fpm: checkPrefillKVTokens},

	// The results of a rank against the groups.
	{Name: "result_ids", Compares: "a rank's `results` have the `benchmark_id` of the groups, each once", Needs: needsRankFile, Reference: "merger", file: checkResultIDs},
	{Name: "result_point", Compares: "the `point` of a rank's result is the group's", Needs: needsRankFile, Reference: "merger", file: checkResultPoint},
	{Name: "result_fpm", Compares: "the `fpms` of a rank's result are those of the rank in the group", Needs: needsRankFile, Reference: "merger", file: checkResultFPM},

	// benchmark_measurement.
	{Name: "measurement", Compares: "an FPM has a `benchmark_measurement` with `schema_version` 1 and its rank", Needs: needsProtocol, Reference: "merger", fpm: checkMeasurement},
	{Name: "measurement_undeclared", Compares: "without `measurement_protocol` no FPM has a `benchmark_measurement`", Needs: "no `measurement_protocol`", Reference: "merger", fpm: checkMeasurementUndeclared},
	{Name: "point_key", Compares: "`point_key` is a text that is not empty, the same for all ranks of a point", Needs: needsProtocol, Reference: "merger", group: checkPointKey},
	{Name: "measurement_grid", Compares: "`preparation.grid_digest` of a measurement is the run's", Needs: needsProtocol, Reference: "merger", fpm: checkMeasurementGrid},
	{Name: "sample_count", Compares: "`raw_fpms` has 1 … `expected_internal_samples` entries", Needs: needsProtocol, Reference: "evidence", fpm: checkSampleCount},
	{Name: "sample_identity", Compares: "`counter_id`, `dp_rank` and `worker_id` of a raw FPM are those of the FPM kept", Needs: needsProtocol, Reference: "evidence", fpm: checkSampleIdentity},
	{Name: "estimate_indices", Compares: "`estimate.raw_sample_indices` ascend, are there, and are those of `estimate.method`", Needs: needsProtocol, Reference: "evidence", fpm: checkEstimateIndices},
	{Name: "estimate_value", Compares: "an FPM's `wall_time` is the upper median of the raw FPMs it is made of, within 1e-9 of it", Needs: needsProtocol, Reference: "evidence", fpm: checkEstimateValue},

	// benchmark_sample.
	{Name: "sample_undeclared", Compares: "without `execution_evidence` no raw FPM has a `benchmark_sample`", Needs: "no `execution_evidence`", Reference: "merger", fpm: checkSampleUndeclared},
	{Name: "sample_retained", Compares: "the FPM kept has no `benchmark_sample`", Needs: needsContract, Reference: "evidence", fpm: checkSampleRetained},
	{Name: "sample_index", Compares: "`sample_index` is the raw FPM's position, from 0", Needs: needsContract, Reference: "evidence", fpm: checkSampleIndex},
	{Name: "forward_index", Compares: "`forward_index` of a rank grows from raw FPM to raw FPM, from point to point", Needs: needsContract, Reference: "evidence", fpm: checkForwardIndex},
	{Name: "sample_timing", Compares: "a raw FPM's `wall_time` is end − start of its `timing`, within 1e-9; a start that is null is not compared", Needs: needsContract, Reference: "evidence", fpm: checkSampleTiming},
	{Name: "sample_cudagraph", Compares: "`observed` graph statistics have a mode and `num_paddings` = padded − unpadded; `unavailable` ones have no values", Needs: needsContract, Reference: "evidence", fpm: checkSampleCudagraph},

	// Warm-up.
	{Name: "warmup_undeclared", Compares: "without `execution_evidence` there is no `warmup_evidence`", Needs: "no `execution_evidence`", Reference: "merger", file: checkWarmupUndeclared},
	{Name: "warmup_ledger", Compares: "`warmup_evidence` is `recorded` with a list, or `unavailable` with an empty one", Needs: needsContract, Reference: "evidence", file: checkWarmupLedger},
	{Name: "warmup_record", Compares: "a warm-up's `status` and `validation` are known and agree", Needs: needsContract, Reference: "evidence", file: checkWarmupRecord},
	{Name: "warmup_range", Compares: "a warm-up's forward range does not end before it starts and is as long as `observed_forward_count`", Needs: needsContract, Reference: "evidence", file: checkWarmupRange},
	{Name: "warmup_reference", Compares: "`warmup_records_before` counts warm-ups that are recorded; it is null when they are unavailable", Needs: needsContract, Reference: "merger", fpm: checkWarmupReference},
	{Name: "warmup_overlap", Compares: "the warm-ups before a point ended before its first forward", Needs: needsContract, Reference: "merger", fpm: checkWarmupOverlap},

	// The merged file.
	{Name: "merged_dp", Compares: "`dp.ranks` are 0 … size − 1; `managed_size` counts `source_ranks` and `rank_files`", Needs: needsMerged, Reference: "merged file", file: checkMergedDP},
	{Name: "merged_coverage", Compares: "merged `coverage` is that of a rank × size", Needs: needsMerged, Reference: "merged file", file: checkMergedCoverage},
	{Name: "merged_results", Compares: "merged `results` are the groups' results, one after the other, with `point.dp_rank`", Needs: needsMerged, Reference: "merged file", file: checkMergedResults},
	{Name: "merged_timing", Compares: "merged `benchmark_elapsed_seconds` is the largest of `rank_benchmark_elapsed_seconds`", Needs: needsMerged, Reference: "merged file", file: checkMergedTiming},
	{Name: "merged_engine", Compares: "merged `engine.parallel.data_parallel_rank` is null", Needs: needsMerged, Reference: "merged file", file: checkMergedEngine},
}

// RulesTable is Rules as the Markdown table of the READMEs.
func RulesTable() string {
	var text strings.Builder
	text.WriteString("| rule | what must hold | checked with | reference |\n|---|---|---|---|\n")
	for i := range Rules {
		rule := &Rules[i]
		fmt.Fprintf(&text, "| `%s` | %s | %s | %s |\n", rule.Name, rule.Compares, rule.Needs, rule.Reference)
	}
	text.WriteString("\n| reference | |\n|---|---|\n")
	for _, reference := range References {
		fmt.Fprintf(&text, "| %s | %s |\n", reference.Key, reference.Text)
	}
	return text.String()
}
