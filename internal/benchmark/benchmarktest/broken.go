// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmarktest

// Variant is an edit that breaks one rule and, where nothing else is possible,
// others too.
type Variant struct {
	// Rule is the name of the rule, Name says what was done.
	Rule, Name string
	// Also are the rules that cannot be spared.
	Also []string
	// Options of the run that is edited.
	Options Options
	Edit    func(*Run)
}

// Broken are the variants, at least one for each rule.
func Broken() []Variant {
	var all []Variant
	for _, variants := range [][]Variant{
		brokenRun(), brokenStatus(), brokenProtocol(), brokenTiming(), brokenGroups(), brokenFPMs(),
		brokenMeasurements(), brokenSamples(), brokenWarmups(), brokenMerged(),
	} {
		all = append(all, variants...)
	}
	return all
}

// second edits the file of rank 1 only.
func second(edit func(*Object)) func(*Run) { return func(r *Run) { edit(r.Ranks[1]) } }

// set sets a path in the file of rank 1 only.
func set(path string, value any) func(*Run) {
	return second(func(file *Object) { file.Set(path, value) })
}

// setEach sets a path in every file.
func setEach(path string, value any) func(*Run) {
	return func(r *Run) { r.Each(func(file *Object) { file.Set(path, value) }) }
}

// setGroup sets a path in the group of a benchmark id, in every file.
func setGroup(id int, path string, value any) func(*Run) {
	return func(r *Run) { r.EachGroup(id, func(group *Object) { group.Set(path, value) }) }
}

// setFPM sets a path in the FPM of rank 1 at a benchmark id, wherever it is.
func setFPM(id int, path string, value any) func(*Run) {
	return func(r *Run) { r.EachFPM(1, id, func(fpm *Object) { fpm.Set(path, value) }) }
}

// setMerged sets a path in the merged file.
func setMerged(path string, value any) func(*Run) {
	return func(r *Run) { r.Merged.Set(path, value) }
}

// setWarmup sets a path in rank 1's warm-up, in its file and in the merged one.
func setWarmup(path string, value any) func(*Run) {
	return func(r *Run) {
		r.Ranks[1].Set("warmup_evidence."+path, value)
		r.Merged.Set("rank_warmup_evidence.1."+path, value)
	}
}

func brokenRun() []Variant {
	return []Variant{
		{Rule: "run_id", Name: "another in one file", Edit: set("run_id", "another")},
		{Rule: "run_id", Name: "a number", Edit: set("run_id", 7)},
		{Rule: "run_id", Name: "empty", Edit: set("run_id", "")},
		{Rule: "grid_digest", Name: "another in one file", Edit: set("grid_digest", "another")},
		{Rule: "dp_size", Name: "another in the merged file", Edit: func(r *Run) {
			r.Merged.Set("dp.global_size", 4)
			r.Merged.Set("dp.ranks", List{0, 1, 2, 3})
			for _, key := range []string{"expected_points", "completed_points"} {
				r.Merged.Set("coverage."+key, r.Merged.At("coverage."+key).(int)*2)
			}
		}},
		{Rule: "dp_rank", Name: "that of another file", Options: Options{Ranks: 1}, Edit: func(r *Run) {
			r.Ranks = append(r.Ranks, Clone(r.Ranks[0]))
		}},
		{Rule: "dp_rank", Name: "a text", Options: Options{Ranks: 1}, Edit: func(r *Run) {
			extra := Clone(r.Ranks[0])
			extra.Set("dp.rank", "0")
			r.Ranks = append(r.Ranks, extra)
		}},
		{Rule: "ranks_present", Name: "one is not there", Edit: func(r *Run) { r.Ranks[1], r.Merged, r.Sidecar = nil, nil, nil }},
	}
}

func brokenStatus() []Variant {
	return []Variant{
		{Rule: "status", Name: "failed", Edit: setEach("status", "failed")},
		{Rule: "status_equal", Name: "one failed", Also: []string{"status"}, Edit: set("status", "failed")},
		{Rule: "status_complete", Name: "not valid", Edit: setEach("valid", false)},
		{Rule: "status_complete", Name: "with an error", Edit: setEach("error", "benchmark aborted")},
		{Rule: "status_complete", Name: "a phase is missing", Edit: setEach("missing_phases", List{"decode"})},
		{Rule: "status_partial", Name: "not usable", Options: Options{Partial: true}, Edit: setEach("usable", false)},
		{Rule: "status_partial", Name: "without timeout", Options: Options{Partial: true}, Edit: setEach("stop_reason", nil)},
		{Rule: "stop_reason_equal", Name: "another in one file", Also: []string{"status_partial"}, Options: Options{Partial: true}, Edit: set("stop_reason", "signal")},
		{Rule: "coverage", Name: "more skipped than listed", Edit: setEach("skipped_points", List{NewObject("point", NewObject(), "reason", "seed_cache_validation_failed")})},
		{Rule: "coverage_equal", Name: "one expected more", Options: Options{Partial: true}, Edit: set("coverage.expected_points", 9)},
	}
}

func brokenProtocol() []Variant {
	return []Variant{
		{Rule: "protocol_version", Name: "2", Edit: setEach("measurement_protocol.schema_version", 2)},
		{Rule: "protocol_equal", Name: "another seed in one file", Edit: set("measurement_protocol.content_seed", "1")},
		{Rule: "protocol_equal", Name: "none in one file", Edit: second(func(file *Object) { file.Delete("measurement_protocol") })},
		{Rule: "execution_contract", Name: "version 2", Edit: setEach("measurement_protocol.execution_evidence.schema_version", 2)},
		{Rule: "execution_contract", Name: "another field", Edit: setEach("measurement_protocol.execution_evidence.sample_field", "sample")},
		{Rule: "engine_identity", Name: "another data type in one file", Edit: set("engine.model.dtype", "float16")},
		{Rule: "engine_identity", Name: "a key more in one file", Edit: set("engine.model.revision", nil)},
	}
}

func brokenTiming() []Variant {
	return []Variant{
		{Rule: "timing_values", Name: "negative", Edit: func(r *Run) {
			r.Ranks[1].Set("timing.benchmark_elapsed_seconds", -1.0)
			r.Ranks[1].Set("timing.started_at", nil)
			r.Ranks[1].Delete("timing.measured_iteration_seconds")
		}},
		{Rule: "timing_order", Name: "measured longer than it took", Edit: set("timing.benchmark_elapsed_seconds", 0.01)},
		{Rule: "timing_sum", Name: "not the sum of the groups", Edit: setEach("timing.measured_iteration_seconds", 1.0)},
	}
}

func brokenGroups() []Variant {
	return []Variant{
		{Rule: "groups_present", Name: "an empty list", Edit: func(r *Run) {
			r.Each(func(file *Object) {
				for key, value := range map[string]any{"iteration_groups": List{}, "results": List{}, "coverage.expected_points": 0, "coverage.completed_points": 0} {
					file.Set(key, value)
				}
			})
		}},
		{Rule: "groups_equal", Name: "another state in one file", Edit: set("iteration_groups.2.complete", false)},
		{Rule: "groups_equal", Name: "one group less in one file", Options: Options{Partial: true}, Edit: second(func(file *Object) {
			file.Set("iteration_groups", file.List("iteration_groups")[:3])
			file.Set("results", file.List("results")[:4])
			file.Set("coverage.completed_points", 4)
			file.Set("iteration_groups", append(file.List("iteration_groups"), NewObject("benchmark_id", 4)))
		})},
		{Rule: "benchmark_ids", Name: "from 2 on", Edit: func(r *Run) { renumber(r, func(id int) int { return id + 1 }) }},
		{Rule: "benchmark_ids", Name: "a gap", Edit: func(r *Run) {
			renumber(r, func(id int) int { return id + max(0, id-4)*3 })
		}},
		{Rule: "group_point", Name: "the point has another id", Edit: setGroupID(3, 4711)},
		{Rule: "group_complete", Name: "not complete", Edit: setGroup(2, "complete", false)},
		{Rule: "group_complete", Name: "other ranks expected", Edit: setGroup(2, "expected_dp_ranks", List{0, 1, 2})},
		{Rule: "group_ranks", Name: "a rank more", Edit: func(r *Run) {
			r.EachGroup(2, func(group *Object) {
				extra := Clone(group.Object("rank_results.1"))
				extra.Set("dp_rank", 2)
				extra.Set("fpms.0.dp_rank", 2)
				extra.Set("fpms.0.benchmark_measurement.dp_rank", 2)
				for _, raw := range extra.List("fpms.0.benchmark_measurement.raw_fpms") {
					raw.(*Object).Set("dp_rank", 2)
				}
				group.Set("rank_results", append(group.List("rank_results"), extra))
			})
			results := r.Merged.List("results")
			extra := Clone(r.Merged.Object("iteration_groups.1.rank_results.2"))
			point := Clone(r.Merged.Object("iteration_groups.1.point"))
			point.Set("dp_rank", 2)
			added := append(Clone(results[:4]), NewObject("point", point, "fpms", extra.At("fpms")))
			r.Merged.Set("results", append(added, results[4:]...))
		}},
		{Rule: "group_wall_time", Name: "the fastest rank's", Edit: func(r *Run) {
			r.EachGroup(1, func(group *Object) { group.Set("wall_time", group.At("rank_results.0.fpms.0.wall_time")) })
			sum := 0.0
			for _, group := range r.Ranks[0].List("iteration_groups") {
				sum += group.(*Object).At("wall_time").(float64)
			}
			setEach("timing.measured_iteration_seconds", sum)(r)
		}},
	}
}

// renumber gives all points other ids, wherever they are.
func renumber(r *Run, other func(int) int) {
	rename := func(o *Object, path string) { o.Set(path, other(o.At(path).(int))) }
	fpms := func(holder *Object) {
		for _, item := range holder.List("fpms") {
			fpm := item.(*Object)
			rename(fpm, "counter_id")
			for _, raw := range fpm.List("benchmark_measurement.raw_fpms") {
				rename(raw.(*Object), "counter_id")
			}
		}
	}
	r.Each(func(file *Object) {
		for _, item := range file.List("results") {
			rename(item.(*Object), "point.benchmark_id")
			fpms(item.(*Object))
		}
		for _, item := range file.List("iteration_groups") {
			group := item.(*Object)
			rename(group, "benchmark_id")
			rename(group, "point.benchmark_id")
			for _, result := range group.List("rank_results") {
				fpms(result.(*Object))
			}
		}
	})
}

// setGroupID gives the point of a group another id, and leaves the results out
// of it: they would have no group.
func setGroupID(id, other int) func(*Run) {
	return func(r *Run) {
		setGroup(id, "point.benchmark_id", other)(r)
		for _, result := range r.Merged.List("results") {
			if point := result.(*Object).Object("point"); point.At("benchmark_id") == id {
				point.Set("benchmark_id", other)
			}
		}
		r.Ranks = nil
		r.Sidecar = nil
	}
}

func brokenFPMs() []Variant {
	return []Variant{
		{Rule: "one_fpm", Name: "two", Edit: func(r *Run) {
			r.EachResult(1, 2, func(holder *Object) {
				holder.Set("fpms", append(holder.List("fpms"), Clone(holder.Object("fpms.0"))))
			})
		}},
		{Rule: "one_fpm", Name: "none", Edit: func(r *Run) {
			r.EachResult(0, 2, func(holder *Object) { holder.Set("fpms", List{}) })
		}},
		{Rule: "fpm_counter_id", Name: "a sequence number", Edit: setFPM(2, "counter_id", 4711)},
		{Rule: "fpm_dp_rank", Name: "another rank", Edit: setFPM(2, "dp_rank", 0)},
		{Rule: "fpm_wall_time", Name: "a text", Edit: func(r *Run) {
			r.EachFPM(0, 2, func(fpm *Object) {
				fpm.Set("wall_time", "0.0375")
				fpm.Delete("benchmark_measurement.estimate")
			})
			r.Each(func(file *Object) { file.Delete("measurement_protocol") })
			dropMeasurements(r)
		}},
		{Rule: "prefill_kv_tokens", Name: "the prefix cache took part", Edit: func(r *Run) {
			r.EachFPM(0, 1, func(fpm *Object) { fpm.Set("scheduled_requests.sum_prefill_kv_tokens", 64) })
			r.EachFPM(1, 1, func(fpm *Object) { fpm.Set("scheduled_requests.sum_prefill_kv_tokens", 64) })
		}},
		{Rule: "result_ids", Name: "one less in one file", Edit: func(r *Run) {
			r.Ranks[1].Set("results", append(Clone(r.Ranks[1].List("results")[:4]), Clone(r.Ranks[1].At("results.3"))))
		}},
		{Rule: "result_point", Name: "another batch size", Edit: set("results.3.point.batch_size", 7)},
		{Rule: "result_fpm", Name: "another raw duration", Edit: set("results.3.fpms.0.benchmark_measurement.raw_fpms.0.wall_time", 0.02)},
	}
}

// dropMeasurements makes the run a legacy one.
func dropMeasurements(r *Run) {
	drop := func(holder *Object) {
		for _, fpm := range holder.List("fpms") {
			fpm.(*Object).Delete("benchmark_measurement")
		}
	}
	r.Each(func(file *Object) {
		file.Delete("warmup_evidence")
		file.Delete("rank_warmup_evidence")
		for _, result := range file.List("results") {
			drop(result.(*Object))
		}
		for _, group := range file.List("iteration_groups") {
			for _, result := range group.(*Object).List("rank_results") {
				drop(result.(*Object))
			}
		}
	})
}

func brokenMeasurements() []Variant {
	const m = "benchmark_measurement."
	noEvidence := Options{NoEvidence: true}
	return []Variant{
		{Rule: "measurement", Name: "none", Edit: func(r *Run) {
			r.EachFPM(1, 2, func(fpm *Object) { fpm.Delete("benchmark_measurement") })
		}},
		{Rule: "measurement", Name: "another rank's", Edit: setFPM(2, m+"dp_rank", 0)},
		{Rule: "measurement_undeclared", Name: "without a protocol", Options: noEvidence, Edit: func(r *Run) {
			r.Each(func(file *Object) { file.Delete("measurement_protocol") })
		}},
		{Rule: "point_key", Name: "another for one rank", Edit: setFPM(2, m+"point_key", "another")},
		{Rule: "point_key", Name: "empty", Edit: setFPM(2, m+"point_key", "")},
		{Rule: "measurement_grid", Name: "another grid", Edit: setFPM(2, m+"preparation.grid_digest", "another")},
		{Rule: "sample_count", Name: "more than expected", Edit: setFPM(4, m+"expected_internal_samples", 1)},
		{Rule: "sample_count", Name: "none expected", Options: noEvidence, Edit: setFPM(4, m+"expected_internal_samples", nil)},
		{Rule: "sample_identity", Name: "another point's", Edit: setFPM(4, m+"raw_fpms.0.counter_id", 5)},
		{Rule: "sample_identity", Name: "another worker's", Edit: setFPM(4, m+"raw_fpms.1.worker_id", "another")},
		{Rule: "estimate_indices", Name: "one that is not there", Edit: setFPM(5, m+"estimate.raw_sample_indices", List{1, 2, 99})},
		{Rule: "estimate_indices", Name: "one twice", Edit: setFPM(5, m+"estimate.raw_sample_indices", List{1, 1})},
		{Rule: "estimate_indices", Name: "not the last step", Options: noEvidence, Edit: func(r *Run) {
			setFPM(5, m+"estimate.method", "last_step")(r)
			setFPM(5, m+"estimate.raw_sample_indices", List{1})(r)
		}},
		{
			Rule: "estimate_indices", Name: "the admission step", Also: []string{"estimate_value"}, Options: noEvidence,
			Edit: setFPM(5, m+"estimate.raw_sample_indices", List{0, 1, 2, 3}),
		},
		{Rule: "estimate_indices", Name: "another method", Edit: setFPM(5, m+"estimate.method", "mean")},
		{Rule: "estimate_value", Name: "the lower median", Edit: func(r *Run) {
			// Four samples without admission: the upper median is the third.
			r.EachFPM(0, 5, func(fpm *Object) {
				fpm.Set("wall_time", fpm.At(m+"raw_fpms.2.wall_time"))
			})
		}},
	}
}

func brokenSamples() []Variant {
	const raw = "benchmark_measurement.raw_fpms.1."
	const sample = raw + "benchmark_sample."
	return []Variant{
		{Rule: "sample_undeclared", Name: "without a contract", Edit: func(r *Run) {
			r.Each(func(file *Object) {
				file.Delete("measurement_protocol.execution_evidence")
				file.Delete("warmup_evidence")
				file.Delete("rank_warmup_evidence")
			})
		}},
		{Rule: "sample_retained", Name: "in the FPM kept", Edit: setFPM(4, "benchmark_sample", NewObject("sample_index", 0))},
		{Rule: "sample_index", Name: "from 1 on", Edit: setFPM(4, sample+"sample_index", 2)},
		{Rule: "forward_index", Name: "back to 0", Edit: setFPM(4, sample+"forward_index", 0)},
		{Rule: "forward_index", Name: "a text", Edit: setFPM(5, "benchmark_measurement.raw_fpms.3.benchmark_sample.forward_index", "9")},
		{Rule: "sample_timing", Name: "another end", Edit: setFPM(4, sample+"timing.end_monotonic", 9000.0)},
		{Rule: "sample_timing", Name: "ends before it starts", Edit: setFPM(4, sample+"timing.end_monotonic", 1.0)},
		{Rule: "sample_timing", Name: "another basis", Edit: setFPM(4, sample+"timing.basis", "cuda_events")},
		{Rule: "sample_cudagraph", Name: "less padded than unpadded", Edit: setFPM(4, sample+"cudagraph.num_padded_tokens", 1)},
		{Rule: "sample_cudagraph", Name: "another difference", Edit: setFPM(4, sample+"cudagraph.num_paddings", 0)},
		{Rule: "sample_cudagraph", Name: "unavailable with values", Edit: setFPM(4, sample+"cudagraph.status", "unavailable")},
	}
}

func brokenWarmups() []Variant {
	return []Variant{
		{Rule: "warmup_undeclared", Name: "without a contract", Options: Options{NoEvidence: true}, Edit: func(r *Run) {
			r.Ranks[1].Set("warmup_evidence", makeWarmup(1))
		}},
		{Rule: "warmup_ledger", Name: "none", Edit: func(r *Run) {
			r.Ranks[1].Delete("warmup_evidence")
			r.Merged.Delete("rank_warmup_evidence.1")
		}},
		{Rule: "warmup_ledger", Name: "unavailable with records", Edit: func(r *Run) {
			setWarmup("status", "unavailable")(r)
			for id := range r.Options.Points {
				setFPM(id+1, "benchmark_measurement.preparation.warmup_records_before", nil)(r)
			}
		}},
		{Rule: "warmup_record", Name: "an unknown status", Edit: setWarmup("records.0.status", "done")},
		{Rule: "warmup_record", Name: "failed and passed", Edit: setWarmup("records.1.status", "failed")},
		{Rule: "warmup_range", Name: "another count", Edit: setWarmup("records.0.observed_forward_count", 99)},
		{Rule: "warmup_range", Name: "ends before it starts", Edit: func(r *Run) {
			setWarmup("records.1.forward_index_end", 2)(r)
			setWarmup("records.1.observed_forward_count", nil)(r)
		}},
		{Rule: "warmup_range", Name: "completed without an end", Edit: setWarmup("records.1.forward_index_end", nil)},
		{Rule: "warmup_reference", Name: "more than recorded", Edit: setFPM(1, "benchmark_measurement.preparation.warmup_records_before", 3)},
		{Rule: "warmup_reference", Name: "none although recorded", Edit: setFPM(1, "benchmark_measurement.preparation.warmup_records_before", nil)},
		{Rule: "warmup_reference", Name: "some although unavailable", Edit: func(r *Run) {
			setWarmup("status", "unavailable")(r)
			setWarmup("records", List{})(r)
		}},
		{Rule: "warmup_overlap", Name: "ends after the first point began", Edit: func(r *Run) {
			setWarmup("records.1.forward_index_end", 6)(r)
			setWarmup("records.1.observed_forward_count", 3)(r)
		}},
		{Rule: "warmup_overlap", Name: "runs still", Edit: func(r *Run) {
			setWarmup("records.1.status", "running")(r)
			setWarmup("records.1.forward_index_end", nil)(r)
			setWarmup("records.1.validation.status", "not_performed")(r)
		}},
	}
}

func brokenMerged() []Variant {
	return []Variant{
		{Rule: "merged_dp", Name: "manages more ranks than it names", Edit: setMerged("dp.managed_size", 3)},
		{Rule: "merged_dp", Name: "a file less", Edit: setMerged("rank_files", List{Folder + Name(0)})},
		{Rule: "merged_coverage", Name: "that of one rank", Edit: setMerged("coverage", NewObject("expected_points", 5, "completed_points", 5, "skipped_points", 0))},
		{Rule: "merged_results", Name: "a result less", Edit: func(r *Run) {
			results := r.Merged.List("results")
			r.Merged.Set("results", results[:len(results)-1])
		}},
		{Rule: "merged_results", Name: "without its rank", Edit: func(r *Run) { r.Merged.Delete("results.3.point.dp_rank") }},
		{Rule: "merged_results", Name: "a made-up duration", Edit: setMerged("results.3.fpms.0.wall_time", 0.5)},
		{Rule: "merged_timing", Name: "the fastest rank's", Edit: setMerged("timing.benchmark_elapsed_seconds", 10.5)},
		{Rule: "merged_engine", Name: "one rank's block", Edit: setMerged("engine.parallel.data_parallel_rank", 1)},
	}
}
