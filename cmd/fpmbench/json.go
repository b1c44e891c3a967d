// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"
)

// What --json prints. Durations are in seconds; what a file does not say is
// null.

type jsonRun struct {
	RunID         *string           `json:"run_id"`
	GridDigest    *string           `json:"grid_digest"`
	SchemaVersion int64             `json:"schema_version"`
	Status        string            `json:"status"`
	StopReason    *string           `json:"stop_reason"`
	Valid         bool              `json:"valid"`
	ArtifactValid *bool             `json:"artifact_valid"`
	DPSize        int               `json:"dp_size"`
	Coverage      *jsonCoverage     `json:"coverage"`
	Elapsed       *float64          `json:"elapsed_seconds"`
	CompletedAt   *time.Time        `json:"completed_at"`
	Files         []jsonFile        `json:"files"`
	Engine        json.RawMessage   `json:"engine"`
	CaptureErrors map[string]string `json:"capture_errors"`
	WorkerProbe   *jsonProbe        `json:"worker_probe"`
	Points        []jsonPoint       `json:"points"`
	Groups        []jsonGroup       `json:"groups"`
}

type jsonCoverage struct {
	Expected  int64 `json:"expected"`
	Completed int64 `json:"completed"`
	Skipped   int64 `json:"skipped"`
}

type jsonFile struct {
	File string `json:"file"`
	Kind string `json:"kind"`
	Rank *int   `json:"dp_rank"`
}

type jsonProbe struct {
	Resolution    string          `json:"resolution"`
	ResolvedScope *string         `json:"resolved_scope"`
	Complete      bool            `json:"complete"`
	Attention     json.RawMessage `json:"attention"`
	Resolved      json.RawMessage `json:"resolved"`
}

type jsonPoint struct {
	ID                  int64         `json:"benchmark_id"`
	Rank                *int          `json:"dp_rank"`
	Type                *string       `json:"point_type"`
	BatchSize           *int64        `json:"batch_size"`
	PrefillTokens       *int64        `json:"total_prefill_tokens"`
	KVReadTokens        *int64        `json:"total_kv_read_tokens"`
	ExpectedMode        *string       `json:"expected_cudagraph_mode"`
	ExpectedCaptureSize *int64        `json:"expected_capture_size"`
	ExpectedPadding     *int64        `json:"padding_tokens"`
	OffByBatch          bool          `json:"giant_fake_off_by_batch"`
	SeedRegime          *string       `json:"kv_seed_regime"`
	PointKey            *string       `json:"point_key"`
	WallTime            *float64      `json:"wall_time"`
	TokensPerSecond     *float64      `json:"tokens_per_second"`
	Samples             *jsonSamples  `json:"samples"`
	Observed            *jsonDispatch `json:"observed"`
}

type jsonSamples struct {
	Count int     `json:"count"`
	Min   float64 `json:"min"`
	Max   float64 `json:"max"`
}

type jsonDispatch struct {
	Mode     string `json:"runtime_mode"`
	Padded   int64  `json:"num_padded_tokens"`
	Paddings int64  `json:"num_paddings"`
}

type jsonGroup struct {
	ID       int64   `json:"benchmark_id"`
	WallTime float64 `json:"wall_time"`
}

func text(value string) *string {
	if value == "" {
		return nil
	}
	return &value
}

func rankOrNull(rank int) *int {
	if rank == benchmark.NoRank {
		return nil
	}
	return &rank
}

// raw is a value of a file as it stands, null when there is none.
func raw(value document.Value) json.RawMessage { return json.RawMessage(value.JSON()) }

func shownRun(run *benchmark.Run) *jsonRun {
	shown := &jsonRun{
		RunID: text(run.ID), GridDigest: text(run.GridDigest), SchemaVersion: run.SchemaVersion,
		Status: run.Status, StopReason: text(run.StopReason), Valid: run.Valid, ArtifactValid: run.ArtifactValid,
		DPSize: run.Size, Elapsed: run.Elapsed, Engine: raw(run.Engine.Block),
		Points: []jsonPoint{}, Groups: []jsonGroup{}, CaptureErrors: map[string]string{},
	}
	if run.Coverage != nil {
		shown.Coverage = &jsonCoverage{run.Coverage.Expected, run.Coverage.Completed, run.Coverage.Skipped}
	}
	if !run.CompletedAt.IsZero() {
		at := run.CompletedAt.UTC()
		shown.CompletedAt = &at
	}
	for _, file := range run.Files {
		shown.Files = append(shown.Files, jsonFile{file.Name, file.Kind.String(), rankOrNull(file.Rank)})
	}
	for _, failure := range run.Engine.CaptureErrors {
		shown.CaptureErrors[strconv.Itoa(failure.Rank)] = failure.Text
	}
	if probe := run.Engine.Probe; probe != nil {
		shown.WorkerProbe = &jsonProbe{probe.Resolution, text(probe.Scope), probe.Complete(), raw(probe.Attention), raw(probe.Resolved)}
	}
	for i := range run.Points {
		shown.Points = append(shown.Points, shownPoint(&run.Points[i]))
	}
	for _, group := range run.Groups {
		shown.Groups = append(shown.Groups, jsonGroup{group.ID, group.WallTime})
	}
	return shown
}

func shownPoint(p *benchmark.Point) jsonPoint {
	shown := jsonPoint{
		ID: p.ID, Rank: rankOrNull(p.Rank), Type: text(p.Type),
		BatchSize: p.BatchSize, PrefillTokens: p.PrefillTokens, KVReadTokens: p.KVReadTokens,
		ExpectedMode: text(p.ExpectedCUDAGraphMode), ExpectedCaptureSize: p.ExpectedCaptureSize, ExpectedPadding: p.ExpectedPadding,
		OffByBatch: p.OffByBatch, SeedRegime: text(p.SeedRegime), PointKey: text(p.Key), WallTime: p.WallTime,
	}
	if rate, ok := p.TokensPerSecond(); ok {
		shown.TokensPerSecond = &rate
	}
	if p.Samples != nil {
		shown.Samples = &jsonSamples{p.Samples.Count, p.Samples.Min, p.Samples.Max}
	}
	if p.Observed != nil {
		shown.Observed = &jsonDispatch{p.Observed.Mode, p.Observed.Padded, p.Observed.Paddings}
	}
	return shown
}

type jsonCheck struct {
	RunID      *string         `json:"run_id"`
	Valid      bool            `json:"valid"`
	Rules      []jsonRule      `json:"rules"`
	Violations []jsonViolation `json:"violations"`
}

type jsonRule struct {
	Rule      string `json:"rule"`
	Verdict   string `json:"verdict"`
	Count     int    `json:"violations"`
	Compares  string `json:"compares"`
	Reference string `json:"reference"`
}

type jsonViolation struct {
	Rule        string  `json:"rule"`
	File        *string `json:"file"`
	Ranks       []int   `json:"dp_ranks"`
	BenchmarkID *int64  `json:"benchmark_id"`
	Field       string  `json:"field"`
	Expected    string  `json:"expected"`
	Actual      string  `json:"actual"`
}

func checkedRun(run *benchmark.Run) *jsonCheck {
	checked := &jsonCheck{RunID: text(run.ID), Valid: run.Valid, Violations: []jsonViolation{}}
	for _, outcome := range run.Outcomes {
		rule := outcome.Rule
		checked.Rules = append(checked.Rules, jsonRule{rule.Name, outcome.Verdict.String(), outcome.Count, rule.Compares, rule.Reference})
	}
	for i := range run.Violations {
		v := &run.Violations[i]
		shown := jsonViolation{Rule: v.Rule.Name, File: text(v.File), Ranks: v.Ranks, Field: v.Field, Expected: v.Expected, Actual: v.Actual}
		if shown.Ranks == nil {
			shown.Ranks = []int{}
		}
		if v.BenchmarkID != 0 {
			shown.BenchmarkID = &v.BenchmarkID
		}
		checked.Violations = append(checked.Violations, shown)
	}
	return checked
}

type jsonComparison struct {
	A       *string          `json:"a_run_id"`
	B       *string          `json:"b_run_id"`
	Refused []jsonDifference `json:"refused"`
	Allowed []jsonDifference `json:"allowed"`
	Notes   []string         `json:"notes"`
	Pairs   []jsonPair       `json:"points"`
}

type jsonDifference struct {
	Field string `json:"field"`
	A     string `json:"a"`
	B     string `json:"b"`
}

type jsonPair struct {
	Type          *string  `json:"point_type"`
	BatchSize     *int64   `json:"batch_size"`
	PrefillTokens *int64   `json:"total_prefill_tokens"`
	KVReadTokens  *int64   `json:"total_kv_read_tokens"`
	PointKey      *string  `json:"point_key"`
	Rank          *int     `json:"dp_rank"` // null for the slowest of all
	A             *float64 `json:"a_wall_time"`
	B             *float64 `json:"b_wall_time"`
	Ratio         *float64 `json:"ratio"`
	Prompts       *string  `json:"prompts"`
	OffByBatch    bool     `json:"giant_fake_off_by_batch"`
}

func comparedRuns(c *comparison, a, b *benchmark.Run) *jsonComparison {
	shown := &jsonComparison{
		A: text(a.ID), B: text(b.ID), Notes: append([]string{}, c.notes...),
		Refused: jsonDifferences(c.refused), Allowed: jsonDifferences(c.allowed), Pairs: []jsonPair{},
	}
	for i := range c.pairs {
		p := &c.pairs[i]
		point := p.point()
		row := jsonPair{
			Type: text(point.Type), BatchSize: point.BatchSize, PrefillTokens: point.PrefillTokens, KVReadTokens: point.KVReadTokens,
			PointKey: text(point.Key), A: p.aSeconds, B: p.bSeconds, OffByBatch: p.offByBatch(),
		}
		if !p.all {
			row.Rank, row.Prompts = rankOrNull(point.Rank), text(p.prompts)
		}
		if ratio, ok := p.ratio(); ok {
			row.Ratio = &ratio
		}
		shown.Pairs = append(shown.Pairs, row)
	}
	return shown
}

func jsonDifferences(differences []benchmark.Difference) []jsonDifference {
	shown := []jsonDifference{}
	for _, d := range differences {
		shown = append(shown, jsonDifference{d.Field, d.A, d.B})
	}
	return shown
}
