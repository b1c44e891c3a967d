// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import "math"

// Units. Ratios carry none: "1" would become the suffix _ratio in Prometheus.
const (
	unitRequest = "{request}"
	unitToken   = "{token}"
	unitDraft   = "{draft}"
	unitCompile = "{compile}"
	unitSecond  = "s"
)

// catalogEntry describes a metric. Events of it with another operation are
// rejected.
type catalogEntry struct {
	metric      string
	operation   operation
	unit        string
	bounds      []float64 // inclusive upper bounds, strictly increasing; of observe
	description string
}

// tokenSpeed are the metrics of TokenSpeed, with the units and bounds that its
// own /metrics page has
// (https://github.com/lightseekorg/tokenspeed/blob/main/python/tokenspeed/runtime/metrics/collector.py).
var tokenSpeed = []catalogEntry{
	// Of each scheduler process.
	{
		"tokenspeed:num_requests_running", operationSet, unitRequest, nil,
		"Requests in the running batch.",
	},
	{
		"tokenspeed:num_requests_waiting", operationSet, unitRequest, nil,
		"Requests that wait to be scheduled.",
	},
	{
		"tokenspeed:kv_cache_usage_perc", operationSet, "", nil,
		"Share of the KV cache in use: a ratio from 0 to 1, despite the name.",
	},
	{
		"tokenspeed:iteration_tokens_total", operationObserve, unitToken,
		[]float64{0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192},
		"Tokens of a forward step. Steps without tokens are not observed. A histogram, despite the name.",
	},
	{
		"tokenspeed:spec_decode_num_accepted_tokens_total", operationInc, unitToken, nil,
		"Draft tokens that speculative decoding accepted.",
	},
	{
		"tokenspeed:spec_decode_num_draft_tokens_total", operationInc, unitToken, nil,
		"Draft tokens that speculative decoding proposed.",
	},
	{
		"tokenspeed:spec_decode_num_drafts_total", operationInc, unitDraft, nil,
		"Drafts of speculative decoding.",
	},
	{
		"tokenspeed:num_nan_aborted_requests_total", operationInc, unitRequest, nil,
		"Requests aborted because the model gave NaN.",
	},
	{
		"tokenspeed:jit_serving_compiles_total", operationInc, unitCompile, nil,
		"Kernels compiled while serving.",
	},
	{
		"tokenspeed:jit_serving_compile_seconds_total", operationInc, unitSecond, nil,
		"Time spent on compiling kernels while serving.",
	},
	// Of the frontend process.
	{
		"tokenspeed:prompt_tokens_total", operationInc, unitToken, nil,
		"Prompt tokens of finished requests.",
	},
	{
		"tokenspeed:generation_tokens_total", operationInc, unitToken, nil,
		"Generated tokens of finished requests.",
	},
	{
		"tokenspeed:prefix_cache_hits_total", operationInc, unitToken, nil,
		"Prompt tokens of finished requests that were found in the prefix cache.",
	},
	{
		"tokenspeed:num_requests_total", operationInc, unitRequest, nil,
		"Finished requests.",
	},
	{
		"tokenspeed:request_success_total", operationInc, unitRequest, nil,
		"Requests that finished without an error.",
	},
	{
		"tokenspeed:time_to_first_token_seconds", operationObserve, unitSecond,
		[]float64{.1, .3, .5, .7, .9, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 120, 160},
		"Time from the arrival of a request to its first token.",
	},
	{
		"tokenspeed:request_time_per_output_token_seconds", operationObserve, unitSecond,
		[]float64{.002, .005, .01, .02, .03, .04, .05, .06, .07, .08, .09, .1, .15, .2, .3, .4, .6, .8, 1, 2},
		"Mean time for each output token of a request, one observation a request.",
	},
	{
		"tokenspeed:inter_token_latency_seconds", operationObserve, unitSecond,
		[]float64{.002, .004, .006, .008, .01, .015, .02, .025, .03, .035, .04, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2},
		"Time between tokens, once for each token. The engine observes most tokens two or three times: the count is no number of tokens.",
	},
	{
		"tokenspeed:e2e_request_latency_seconds", operationObserve, unitSecond,
		[]float64{.1, .2, .4, .8, 1, 2, 5, 10, 20, 40, 60, 80, 100, 150, 200, 250, 300, 350, 500, 1000},
		"Time from the arrival of a request to its end.",
	},
	{
		"tokenspeed:func_latency_seconds", operationObserve, unitSecond,
		geometric(0.05, 1.5, 18),
		"Time that a function of the engine took; its label name says which.",
	},
}

// geometric are n bounds from first on, each factor times the one before.
func geometric(first, factor float64, n int) []float64 {
	bounds := make([]float64, n)
	for i := range bounds {
		bounds[i] = first * math.Pow(factor, float64(i))
	}
	return bounds
}
