// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmarktest

// Version1 is a file of schema version 1: one rank, no run id, no groups, and
// points by the length of one request.
func Version1() *Object {
	fpm := func(seconds float64) *Object {
		return NewObject("worker_id", "", "dp_rank", 0, "wall_time", seconds,
			"scheduled_requests", NewObject("num_prefill_requests", 1, "sum_prefill_tokens", 24, "sum_prefill_kv_tokens", 16))
	}
	return NewObject(
		"schema_version", 1,
		"valid", true,
		"coverage", NewObject("expected_points", 2, "completed_points", 2, "skipped_points", 0),
		"config", NewObject("mode", "agg"),
		"results", List{
			NewObject("point", NewObject("point_type", "prefill", "isl", 40, "kv_read_tokens", 16, "context_length", 0, "batch_size", 1), "fpms", List{fpm(0.0125)}),
			NewObject("point", NewObject("point_type", "decode", "isl", 0, "kv_read_tokens", 0, "context_length", 16, "batch_size", 3), "fpms", List{fpm(0.005)}),
		},
		"skipped_points", List{},
		"missing_phases", List{},
	)
}
