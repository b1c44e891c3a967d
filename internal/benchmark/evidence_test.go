// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/benchmarktest"
)

type object = benchmarktest.Object

// raws are the raw FPMs of rank 0 at a point, everywhere.
func raws(run *benchmarktest.Run, id int, edit func(index int, raw *object)) {
	run.EachFPM(0, id, func(fpm *object) {
		for i, raw := range fpm.List("benchmark_measurement.raw_fpms") {
			edit(i, raw.(*object))
		}
	})
}

// A start that is null skips what needs it.
func TestUnknownStartIsNoContradiction(t *testing.T) {
	run := benchmarktest.New(benchmarktest.Options{})
	raws(run, 5, func(_ int, raw *object) {
		raw.Set("benchmark_sample.timing.start_monotonic", nil)
		raw.Set("benchmark_sample.timing.end_monotonic", 12345.0)
	})
	got := check(t, run)
	assert.True(t, got.Valid, texts(got))
}

// Clocks and forward indices of different ranks are not compared: here rank 1
// runs on a clock and on indices of its own.
func TestRanksHaveClocksOfTheirOwn(t *testing.T) {
	run := benchmarktest.New(benchmarktest.Options{})
	for id := range run.Options.Points {
		run.EachFPM(1, id+1, func(fpm *object) {
			for _, item := range fpm.List("benchmark_measurement.raw_fpms") {
				raw := item.(*object)
				raw.Set("benchmark_sample.forward_index", raw.At("benchmark_sample.forward_index").(int)+1000)
				start := 5000 - 100*float64(id) // backwards
				raw.Set("benchmark_sample.timing.start_monotonic", start)
				raw.Set("benchmark_sample.timing.end_monotonic", start+raw.At("wall_time").(float64))
			}
		})
	}
	got := check(t, run)
	assert.True(t, got.Valid, texts(got))
}

func unavailable(raw *object) {
	raw.Set("benchmark_sample.cudagraph", benchmarktest.NewObject("status", "unavailable",
		"runtime_mode", nil, "num_unpadded_tokens", nil, "num_padded_tokens", nil, "num_paddings", nil))
}

// A dispatch that was not observed is none, neither mode NONE nor padding 0.
func TestUnavailableDispatchIsNoDispatch(t *testing.T) {
	run := benchmarktest.New(benchmarktest.Options{})
	raws(run, 4, func(_ int, raw *object) { unavailable(raw) })
	got := check(t, run)
	assert.True(t, got.Valid, texts(got))
	p := got.Points[6]
	assert.Nil(t, p.Observed)
	assert.EqualValues(t, 2, *p.ExpectedPadding, "what was expected stays what it is")
	assert.NotNil(t, got.Points[7].Observed, "the other rank's is its own")
}

// Of several samples the dispatch is said when all were observed and alike.
func TestDispatchOfSeveralSamples(t *testing.T) {
	for name, test := range map[string]struct {
		edit     func(int, *object)
		observed bool
	}{
		"alike":                        {func(int, *object) {}, true},
		"admission alone is different": {func(i int, raw *object) { mode(i == 0, raw, "NONE") }, true},
		"admission alone unavailable": {func(i int, raw *object) {
			if i == 0 {
				unavailable(raw)
			}
		}, true},
		"one is different": {func(i int, raw *object) { mode(i == 2, raw, "NONE") }, false},
		"one is unavailable": {func(i int, raw *object) {
			if i == 3 {
				unavailable(raw)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			run := benchmarktest.New(benchmarktest.Options{})
			raws(run, 5, test.edit)
			got := check(t, run)
			assert.True(t, got.Valid, texts(got))
			assert.Equal(t, test.observed, got.Points[8].Observed != nil)
		})
	}
}

func mode(when bool, raw *object, mode string) {
	if when {
		raw.Set("benchmark_sample.cudagraph.runtime_mode", mode)
	}
}

// Evidence that is the rank's own may differ from rank to rank.
func TestRanksMayDifferInEvidence(t *testing.T) {
	run := benchmarktest.New(benchmarktest.Options{})
	run.EachFPM(1, 2, func(fpm *object) {
		fpm.Set("benchmark_measurement.prompts", benchmarktest.NewObject("status", "unavailable", "sha256", nil, "requests", benchmarktest.List{}))
	})
	got := check(t, run)
	assert.True(t, got.Valid, texts(got))
	assert.NotEmpty(t, got.Points[2].PromptHash)
	assert.Empty(t, got.Points[3].PromptHash)
}

// Steps that were not timed have no duration; a point with several FPMs has none
// either.
func TestNoDuration(t *testing.T) {
	run := benchmarktest.New(benchmarktest.Options{Legacy: true, Ranks: 1})
	run.EachFPM(0, 1, func(fpm *object) { fpm.Set("wall_time", 0.0) })
	run.EachResult(0, 2, func(holder *object) { holder.Set("fpms", append(holder.List("fpms"), holder.List("fpms")[0])) })
	got := check(t, run)
	assert.Nil(t, got.Points[0].WallTime)
	assert.Nil(t, got.Points[1].WallTime)
	_, ok := got.Points[0].TokensPerSecond()
	assert.False(t, ok)
	assert.NotNil(t, got.Points[2].WallTime)
}

// A duration that is next to nothing gives no infinite rate.
func TestNoInfiniteRate(t *testing.T) {
	run := benchmarktest.New(benchmarktest.Options{Legacy: true, Ranks: 1})
	run.EachFPM(0, 1, func(fpm *object) { fpm.Set("wall_time", 5e-324) })
	p := check(t, run).Points[0]
	assert.NotNil(t, p.WallTime)
	_, ok := p.TokensPerSecond()
	assert.False(t, ok)
}
