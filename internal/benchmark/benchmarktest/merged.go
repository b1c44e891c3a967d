// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmarktest

import (
	"fmt"
	"strconv"
)

// Merge makes the merged file anew out of the rank files.
func (r *Run) Merge() {
	reference := r.Ranks[0]
	merged := Clone(reference)
	size := len(r.Ranks)
	ranks, files := List{}, List{}
	elapsed, byRank := 0.0, NewObject()
	warmups := NewObject()
	for rank, file := range r.Ranks {
		ranks = append(ranks, rank)
		files = append(files, Folder+Name(rank))
		seconds := file.At("timing.benchmark_elapsed_seconds").(float64)
		byRank.Set(strconv.Itoa(rank), seconds)
		if seconds > elapsed {
			elapsed = seconds
			merged.Set("timing", Clone(file.Object("timing")))
		}
		if !r.Options.NoEvidence {
			warmups.Set(strconv.Itoa(rank), Clone(file.Object("warmup_evidence")))
		}
	}
	merged.Set("artifact_type", "merged")
	merged.Set("dp", NewObject("ranks", ranks, "source_ranks", Clone(ranks), "managed_size", size, "global_size", size))
	merged.Set("rank_files", files)
	merged.Set("merged_output_path", Folder+MergedName)
	results := List{}
	for _, item := range merged.List("iteration_groups") {
		group := item.(*Object)
		for rank := range size {
			point := Clone(group.Object("point"))
			point.Set("dp_rank", rank)
			results = append(results, NewObject(
				"point", point, "fpms", Clone(group.List(fmt.Sprintf("rank_results.%d.fpms", rank))),
				"kv_seed_regime", seedRegime(point),
			))
		}
	}
	merged.Set("results", results)
	merged.Set("timing.benchmark_elapsed_seconds", elapsed)
	merged.Set("timing.rank_benchmark_elapsed_seconds", byRank)
	for _, key := range []string{"expected_points", "completed_points", "skipped_points"} {
		merged.Set("coverage."+key, reference.At("coverage."+key).(int)*size)
	}
	if !r.Options.NoEvidence {
		merged.Delete("warmup_evidence")
		merged.Set("rank_warmup_evidence", warmups)
	}
	if !r.Options.NoEngine {
		merged.Set("engine.parallel.data_parallel_rank", nil)
		merged.Set("worker_probe_path", Folder+SidecarName)
	}
	r.Merged = merged
}
