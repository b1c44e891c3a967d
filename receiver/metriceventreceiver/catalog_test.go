// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"flag"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var updateTable = flag.Bool("update-table", false, "rewrite the catalogue in README.md")

// The catalogue in the README is the one of the code.
func TestCatalogueTable(t *testing.T) {
	const begin, end = "<!-- catalogue, generated: begin -->\n", "<!-- catalogue, generated: end -->"
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	want := before + begin + "\n" + catalogTable() + "\n" + end + after
	if *updateTable {
		require.NoError(t, os.WriteFile("README.md", []byte(want), 0o600))
		return
	}
	assert.Equal(t, want, string(text), "go test -run TestCatalogueTable -update-table")
	for line := range strings.Lines(catalogTable()) {
		assert.Equal(t, 6, strings.Count(line, "|"), "a cell breaks the table: %s", line)
	}
}

// What the engine's own page has: names, kinds, units and bounds.
func TestCatalogueOfTokenSpeed(t *testing.T) {
	want := map[string]struct {
		operation operation
		unit      string
		bounds    int
		first     float64
		last      float64
	}{
		"tokenspeed:num_requests_running":                  {operationSet, "{request}", 0, 0, 0},
		"tokenspeed:num_requests_waiting":                  {operationSet, "{request}", 0, 0, 0},
		"tokenspeed:kv_cache_usage_perc":                   {operationSet, "", 0, 0, 0},
		"tokenspeed:iteration_tokens_total":                {operationObserve, "{token}", 15, 0, 8192},
		"tokenspeed:spec_decode_num_accepted_tokens_total": {operationInc, "{token}", 0, 0, 0},
		"tokenspeed:spec_decode_num_draft_tokens_total":    {operationInc, "{token}", 0, 0, 0},
		"tokenspeed:spec_decode_num_drafts_total":          {operationInc, "{draft}", 0, 0, 0},
		"tokenspeed:num_nan_aborted_requests_total":        {operationInc, "{request}", 0, 0, 0},
		"tokenspeed:jit_serving_compiles_total":            {operationInc, "{compile}", 0, 0, 0},
		"tokenspeed:jit_serving_compile_seconds_total":     {operationInc, "s", 0, 0, 0},
		"tokenspeed:prompt_tokens_total":                   {operationInc, "{token}", 0, 0, 0},
		"tokenspeed:generation_tokens_total":               {operationInc, "{token}", 0, 0, 0},
		"tokenspeed:prefix_cache_hits_total":               {operationInc, "{token}", 0, 0, 0},
		"tokenspeed:num_requests_total":                    {operationInc, "{request}", 0, 0, 0},
		"tokenspeed:request_success_total":                 {operationInc, "{request}", 0, 0, 0},
		"tokenspeed:time_to_first_token_seconds":           {operationObserve, "s", 17, 0.1, 160},
		"tokenspeed:request_time_per_output_token_seconds": {operationObserve, "s", 20, 0.002, 2},
		"tokenspeed:inter_token_latency_seconds":           {operationObserve, "s", 22, 0.002, 2},
		"tokenspeed:e2e_request_latency_seconds":           {operationObserve, "s", 20, 0.1, 1000},
		"tokenspeed:func_latency_seconds":                  {operationObserve, "s", 18, 0.05, 49.26306},
	}
	require.Len(t, tokenSpeed, len(want))
	for _, entry := range tokenSpeed {
		want, ok := want[entry.metric]
		require.True(t, ok, entry.metric)
		assert.Equal(t, want.operation, entry.operation, entry.metric)
		assert.Equal(t, want.unit, entry.unit, entry.metric)
		assert.NotEmpty(t, entry.description, entry.metric)
		require.Len(t, entry.bounds, want.bounds, entry.metric)
		for i, bound := range entry.bounds {
			assert.True(t, i == 0 || bound > entry.bounds[i-1], "%s: bound %d", entry.metric, i)
		}
		if want.bounds > 0 {
			assert.InDelta(t, want.first, entry.bounds[0], 1e-5, entry.metric)
			assert.InDelta(t, want.last, entry.bounds[want.bounds-1], 1e-5, entry.metric)
		}
	}
}

func TestDescribe(t *testing.T) {
	c := newCatalog([]CatalogConfig{
		{Metric: "tokenspeed:inter_token_latency_seconds", Bounds: []float64{1, 2}},
		{Metric: "myengine:*_seconds", Unit: "s", Bounds: []float64{0.1, 1, 10}},
		{Metric: "myengine:*", Unit: "{thing}", Description: "A thing."},
		{Metric: "tokenspeed:num_requests_*", Description: "Requests, told otherwise."},
	})
	builtIn := newCatalog(nil)
	tests := map[string]struct {
		metric string
		want   description
	}{
		"unknown":                          {"other", description{}},
		"built in":                         {"tokenspeed:kv_cache_usage_perc", builtIn.describe("tokenspeed:kv_cache_usage_perc")},
		"the first match wins":             {"myengine:step_seconds", description{"s", "", []float64{0.1, 1, 10}}},
		"another match":                    {"myengine:steps", description{"{thing}", "A thing.", nil}},
		"what is left out is the built-in": {itl, description{"s", builtIn.describe(itl).text, []float64{1, 2}}},
		"also by a glob":                   {"tokenspeed:num_requests_total", description{"{request}", "Requests, told otherwise.", nil}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.want, c.describe(test.metric)) })
	}
	assert.Len(t, builtIn.describe(itl).bounds, 22)
}

func TestMatches(t *testing.T) {
	tests := []struct {
		glob, name string
		want       bool
	}{
		{"a", "a", true},
		{"a", "b", false},
		{"a", "aa", false},
		{"a", "", false},
		{"", "", true},
		{"*", "", true},
		{"*", "anything", true},
		{"a*", "a", true},
		{"a*", "ba", false},
		{"*a", "ba", true},
		{"*a", "ab", false},
		{"a*a", "a", false},
		{"a*a", "aa", true},
		{"myengine:*_seconds", "myengine:step_seconds", true},
		{"myengine:*_seconds", "myengine:step_seconds_total", false},
		{"myengine:*_seconds", "myengine:_seconds", true},
		{"myengine:*_seconds", "other:step_seconds", false},
		{"*b*", "abc", true},
		{"*b*", "ac", false},
		{"a*b*c", "axbxc", true},
		{"a*b*c", "abbbc", true},
		{"a*b*c", "acb", false},
		{"a**c", "ac", true},
		{"*aab", "aaaab", true},
		{"*ab*ab", "ab", false},
		{"*ab*ab", "abab", true},
		{"a?c", "abc", true},
		{"a?c", "ac", false},
		{"?", "", false},
		{"?*", "x", true},
		{"*?b", "ab", true},
		{"*?b", "b", false},
		{"[a]", "[a]", true},
		{"[a]", "a", false},
	}
	for _, test := range tests {
		assert.Equal(t, test.want, matches(test.glob, test.name), "%q %q", test.glob, test.name)
	}
}

// On globs of * and ? and names without a slash, package path is of the same
// mind.
func FuzzMatches(f *testing.F) {
	f.Add("myengine:*_seconds", "myengine:step_seconds")
	f.Add("*a?*b", "xxaybb")
	f.Fuzz(func(t *testing.T, glob, name string) {
		if strings.ContainsAny(glob, `[\/`) || strings.Contains(name, "/") || !ascii(glob) || !ascii(name) {
			t.Skip()
		}
		want, err := path.Match(glob, name)
		require.NoError(t, err)
		assert.Equal(t, want, matches(glob, name))
	})
}

func ascii(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r > 127 }) < 0
}
