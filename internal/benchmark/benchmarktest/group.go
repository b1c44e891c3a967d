// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmarktest

import (
	"fmt"
	"slices"
)

// makeGroups measures all points on all ranks.
func makeGroups(o Options) List {
	points := o.Points
	if o.Partial {
		points = points[:len(points)-1]
	}
	forwards := make([]int, o.Ranks)
	for rank := range forwards {
		forwards[rank] = warmupForwards
	}
	groups := List{}
	for i, point := range points {
		ranks, results := List{}, List{}
		slowest := 0.0
		for rank := range o.Ranks {
			fpm := makeFPM(o, point, i+1, rank, &forwards[rank])
			slowest = max(slowest, fpm.At("wall_time").(float64))
			ranks = append(ranks, rank)
			results = append(results, NewObject("dp_rank", rank, "fpms", List{fpm}))
		}
		groups = append(groups, NewObject(
			"benchmark_id", i+1, "point", makePoint(point, i+1),
			"expected_dp_ranks", ranks, "complete", true, "wall_time", slowest, "rank_results", results,
		))
	}
	return groups
}

func makePoint(p Point, id int) *Object {
	reasons := List{}
	for _, reason := range p.Reasons {
		reasons = append(reasons, reason)
	}
	point := NewObject(
		"point_type", p.Type, "benchmark_id", id,
		"total_prefill_tokens", p.Prefill, "total_kv_read_tokens", p.KV, "batch_size", p.Batch,
		"expected_cudagraph_mode", p.Mode, "expected_capture_size", nil, "padding_tokens", nil,
		"sample_reasons", reasons, "partition", nil, "rows", nil,
	)
	if p.Mode != "NONE" {
		point.Set("expected_capture_size", p.Capture)
		point.Set("padding_tokens", p.Padding)
	}
	return point
}

// PointKey is the coordinate identity of a point.
func PointKey(p Point) string {
	return Hash(fmt.Sprintf(`{"batch_size":%d,"partition":null,"point_type":"%s","rows":null,"total_kv_read_tokens":%d,"total_prefill_tokens":%d}`,
		p.Batch, p.Type, p.KV, p.Prefill))
}

// makeFPM is what a rank keeps of a point.
func makeFPM(o Options, p Point, id, rank int, forwards *int) *Object {
	// Each rank is a little slower than the one before.
	wall := p.Seconds * o.Factor * (1 + 0.01*float64(rank))
	fpm := baseFPM(o, p, id, rank, wall)
	if o.Legacy {
		return fpm
	}
	// Admission is slow and not measured; the others lie around the value.
	walls := []float64{wall}
	if p.Samples > 1 {
		walls = []float64{wall * 8, wall}
	}
	for i := 2; i < p.Samples; i++ {
		walls = append(walls, wall*(1+0.1*float64(i%2*2-1)*float64(i/2)))
	}
	method, indices := "single_step", List{0}
	switch {
	case p.Samples > 2:
		method, indices = "adjacent_upper_median", List{}
		for i := 1; i < p.Samples; i++ {
			indices = append(indices, i)
		}
		measured := slices.Sorted(slices.Values(walls[1:]))
		wall = measured[len(measured)/2]
		fpm.Set("wall_time", wall)
		fpm.Set("kvwarm_giant_median_of", p.Samples-1)
	case p.Samples == 2:
		method, indices = "last_step", List{1}
	}
	raws := List{}
	for i, seconds := range walls {
		raw := baseFPM(o, p, id, rank, seconds)
		if !o.NoEvidence {
			raw.Set("benchmark_sample", makeSample(p, i, rank, *forwards, seconds))
		}
		*forwards++
		raws = append(raws, raw)
	}
	preparation := NewObject("grid_digest", GridDigest, "completed_points_before", id-1, "kv_seed_regime", seedRegime(makePoint(p, id)))
	if !o.NoEvidence {
		preparation.Set("warmup_records_before", 2)
	}
	fpm.Set("benchmark_measurement", NewObject(
		"schema_version", 1, "point_key", PointKey(p), "dp_rank", rank,
		"prompts", makePrompts(p, rank),
		"preparation", preparation,
		"expected_internal_samples", len(walls),
		"raw_fpms", raws,
		"estimate", NewObject("method", method, "raw_sample_indices", indices),
	))
	return fpm
}

func baseFPM(o Options, p Point, id, rank int, seconds float64) *Object {
	scheduled := NewObject("num_prefill_requests", 0, "sum_prefill_tokens", 0, "var_prefill_length", 0.0, "sum_prefill_kv_tokens", 0,
		"num_decode_requests", p.Batch, "sum_decode_kv_tokens", p.KV, "var_decode_kv_tokens", 0.0)
	if p.Type == "prefill" {
		scheduled = NewObject("num_prefill_requests", p.Batch, "sum_prefill_tokens", p.Prefill, "var_prefill_length", 0.0, "sum_prefill_kv_tokens", p.KV,
			"num_decode_requests", 0, "sum_decode_kv_tokens", 0, "var_decode_kv_tokens", 0.0)
	}
	return NewObject(
		"version", 1, "worker_id", o.WorkerID, "dp_rank", rank, "counter_id", id, "wall_time", seconds,
		"scheduled_requests", scheduled,
		"queued_requests", NewObject("num_prefill_requests", 0, "sum_prefill_tokens", 0, "var_prefill_length", 0.0,
			"num_decode_requests", 0, "sum_decode_kv_tokens", 0, "var_decode_kv_tokens", 0.0),
	)
}

func makeSample(p Point, index, rank, forward int, seconds float64) *Object {
	basis := "schedule_to_output"
	if index > 0 {
		basis = "inter_output"
	}
	start := 1000*float64(rank+1) + float64(forward)
	tokens := p.Prefill
	if p.Type == "decode" {
		tokens = p.Batch
	}
	graph := NewObject("status", "observed", "runtime_mode", p.Mode,
		"num_unpadded_tokens", tokens, "num_padded_tokens", tokens+p.Padding, "num_paddings", p.Padding)
	return NewObject(
		"sample_index", index, "forward_index", forward,
		"timing", NewObject("basis", basis, "start_monotonic", start, "end_monotonic", start+seconds),
		"cudagraph", graph,
	)
}

// makePrompts differ from rank to rank, as those of an engine do.
func makePrompts(p Point, rank int) *Object {
	requests := List{}
	for slot := range p.Batch {
		requests = append(requests, NewObject("slot", slot, "num_tokens", max(p.Prefill, p.KV)/p.Batch, "sha256", Hash(fmt.Sprint(PointKey(p), rank, slot))))
	}
	return NewObject("status", "recorded", "sha256", Hash(fmt.Sprint(PointKey(p), rank)), "requests", requests)
}
