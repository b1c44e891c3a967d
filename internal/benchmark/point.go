// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"math"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"
)

// The types of points.
const (
	PrefillPoint = "prefill"
	DecodePoint  = "decode"
)

// OffByBatch is the sample reason of a decode point whose prompts were built for
// batch_size more KV-read tokens than were read.
const OffByBatch = "giant_fake_off_by_batch"

// Point is what one rank measured at one point of the grid. What the file does
// not say is nil, or empty for a text.
type Point struct {
	ID   int64
	Rank int
	// Type is PrefillPoint or DecodePoint.
	Type                                   string
	BatchSize, PrefillTokens, KVReadTokens *int64
	// Partition and Rows are further coordinates, as JSON.
	Partition, Rows string
	// Expected is what the grid expected of the dispatch.
	ExpectedCUDAGraphMode                string
	ExpectedCaptureSize, ExpectedPadding *int64
	// OffByBatch: see there.
	OffByBatch bool
	// SeedRegime is kv_seed_regime.
	SeedRegime string
	// WorkerID of the FPM; it may be empty.
	WorkerID string
	// Key is point_key, PromptHash the hash of all prompts; both empty without a
	// measurement.
	Key, PromptHash string
	// WallTime is the duration of the step in seconds, by the scheduler's clock.
	// Nil when the rank has no FPM or several, or the step was not timed.
	WallTime *float64
	// Samples are the raw FPMs that WallTime was made of; nil when unknown.
	Samples *Samples
	// Observed is how those were dispatched, when it was observed for all of
	// them and was the same. Otherwise nil, which says nothing.
	Observed *Dispatch
}

// Samples are the raw FPMs of an estimate.
type Samples struct {
	Count int
	// Min and Max of their wall times, in seconds.
	Min, Max float64
}

// Dispatch is one observed dispatch of a step.
type Dispatch struct {
	// Mode is NONE, PIECEWISE or FULL.
	Mode string
	// Tokens with padding, and how many of them were padding.
	Padded, Paddings int64
}

// TokensPerSecond is the prefill tokens, or for decode the batch size, over the
// duration.
func (p *Point) TokensPerSecond() (float64, bool) {
	tokens := p.PrefillTokens
	if p.Type == DecodePoint {
		tokens = p.BatchSize
	}
	if tokens == nil || p.WallTime == nil {
		return 0, false
	}
	rate := float64(*tokens) / *p.WallTime
	return rate, !math.IsInf(rate, 0) // the file may say any duration
}

func newPoint(m *measured) Point {
	p := Point{
		ID: m.id, Rank: m.rank, SeedRegime: m.regime,
		BatchSize:           intOf(m.point.Get("batch_size")),
		PrefillTokens:       intOf(m.point.Get("total_prefill_tokens")),
		KVReadTokens:        intOf(m.point.Get("total_kv_read_tokens")),
		Partition:           givenJSON(m.point.Get("partition")),
		Rows:                givenJSON(m.point.Get("rows")),
		ExpectedCaptureSize: intOf(m.point.Get("expected_capture_size")),
		ExpectedPadding:     intOf(m.point.Get("padding_tokens")),
	}
	p.Type, _ = m.point.Get("point_type").Text()
	p.ExpectedCUDAGraphMode, _ = m.point.Get("expected_cudagraph_mode").Text()
	for _, reason := range m.point.Get("sample_reasons").Items() {
		p.OffByBatch = p.OffByBatch || oneOf(reason, OffByBatch)
	}
	p.WorkerID, _ = m.fpm.Get("worker_id").Text()
	p.Key, _ = m.measurement.Get("point_key").Text()
	if prompts := m.measurement.Get("prompts"); oneOf(prompts.Get("status"), "recorded") {
		p.PromptHash, _ = prompts.Get("sha256").Text()
	}
	if m.fpms.Len() == 1 {
		p.WallTime = secondsOf(m.fpm.Get("wall_time"))
	}
	p.addSamples(m.measurement)
	return p
}

func (p *Point) addSamples(measurement document.Value) {
	raws, ok := selected(measurement)
	if !ok {
		return
	}
	p.Observed = commonDispatch(raws)
	samples := Samples{Count: len(raws)}
	for i, raw := range raws {
		seconds := secondsOf(raw.Get("wall_time"))
		if seconds == nil {
			return
		}
		if i == 0 {
			samples.Min, samples.Max = *seconds, *seconds
		}
		samples.Min, samples.Max = min(samples.Min, *seconds), max(samples.Max, *seconds)
	}
	p.Samples = &samples
}

// commonDispatch is the dispatch that all raw FPMs had, nil when one is not
// observed or another.
func commonDispatch(raws []document.Value) *Dispatch {
	var common *Dispatch
	for _, raw := range raws {
		graph := raw.Path(sampleKey, "cudagraph")
		mode, hasMode := graph.Get("runtime_mode").Text()
		padded, hasPadded := graph.Get("num_padded_tokens").Int()
		paddings, hasPaddings := graph.Get("num_paddings").Int()
		if !oneOf(graph.Get("status"), graphObserved) || !hasMode || !hasPadded || !hasPaddings {
			return nil
		}
		dispatch := Dispatch{Mode: mode, Padded: padded, Paddings: paddings}
		if common == nil {
			common = &dispatch
		}
		if *common != dispatch {
			return nil
		}
	}
	return common
}

func intOf(value document.Value) *int64 {
	if number, ok := value.Int(); ok {
		return &number
	}
	return nil
}

// secondsOf is a duration; nil when there is none, or 0 as of a step that was
// not timed.
func secondsOf(value document.Value) *float64 {
	if seconds, ok := value.Float(); ok && seconds > 0 {
		return &seconds
	}
	return nil
}

func givenJSON(value document.Value) string {
	if !value.Given() {
		return ""
	}
	return string(value.AppendCompact(nil))
}
