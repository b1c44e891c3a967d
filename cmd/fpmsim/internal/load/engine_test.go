// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const manySteps = 20000

// allProfiles are the profiles by name.
func allProfiles(t *testing.T) map[string]Profile {
	t.Helper()
	all := map[string]Profile{}
	for _, name := range ProfileNames() {
		p, err := ProfileByName(name)
		require.NoError(t, err)
		all[name] = p
	}
	return all
}

func TestEngineInvariants(t *testing.T) {
	for name, p := range allProfiles(t) {
		t.Run(name, func(t *testing.T) {
			e := NewEngine(p, 7, 0)
			for range manySteps {
				step := e.Step()
				s := step.Pass.Scheduled
				require.LessOrEqual(t, s.SumPrefillTokens+s.NumDecodeRequests, p.TokenBudget)
				require.LessOrEqual(t, s.NumPrefillRequests+s.NumDecodeRequests, p.MaxRequests)
				held := 0
				for _, r := range e.running {
					held += r.context()
				}
				require.LessOrEqual(t, held, p.KVTokens)
				if step.Idle > 0 {
					require.Equal(t, Pass{}, step.Pass)
					require.Equal(t, e.arrived, e.done)
				} else {
					require.Positive(t, s.SumPrefillTokens+s.NumDecodeRequests, "a pass without work")
				}
			}
		})
	}
}

func TestEveryRequestFitsTheKVCache(t *testing.T) {
	for name, p := range allProfiles(t) {
		t.Run(name, func(t *testing.T) {
			assert.Less(t, p.Prompt.Max+p.Output.Max+1, p.KVTokens)
		})
	}
}

func TestWallTimeStaysBelievable(t *testing.T) {
	for name, p := range allProfiles(t) {
		t.Run(name, func(t *testing.T) {
			e := NewEngine(p, 3, 1)
			shortest, longest := 1.0, 0.0
			for range manySteps {
				if step := e.Step(); step.Idle == 0 {
					shortest, longest = min(shortest, step.Pass.WallTime), max(longest, step.Pass.WallTime)
				}
			}
			assert.GreaterOrEqual(t, shortest, 0.005)
			assert.LessOrEqual(t, longest, 0.060)
			assert.Greater(t, longest, 2*shortest, "wall_time does not depend on the work")
		})
	}
}

// A profile must show what it is there for: each row names something that has
// to be seen within a run.
func TestProfilesShowTheirLoad(t *testing.T) {
	type seen struct{ chunked, cached, queued, preempted, idle, fullBatch bool }
	want := map[string]seen{
		"chat":  {chunked: true, cached: true, queued: true, idle: true, fullBatch: true},
		"batch": {chunked: true, cached: true, queued: true, preempted: true, idle: true},
		// A prompt over the token budget makes the second request wait now and then.
		"idle": {chunked: true, cached: true, queued: true, idle: true},
	}
	require.Len(t, want, len(ProfileNames()))
	for name, p := range allProfiles(t) {
		t.Run(name, func(t *testing.T) {
			e := NewEngine(p, 1, 0)
			var got seen
			for range manySteps {
				step := e.Step()
				s, q := step.Pass.Scheduled, step.Pass.Queued
				got.idle = got.idle || step.Idle > 0
				got.chunked = got.chunked || s.SumPrefillTokens+s.NumDecodeRequests == p.TokenBudget
				got.cached = got.cached || s.SumPrefillKVTokens > 0
				got.queued = got.queued || q.NumPrefillRequests > 0
				got.preempted = got.preempted || q.NumDecodeRequests > 0
				got.fullBatch = got.fullBatch || s.NumDecodeRequests == p.MaxRequests
			}
			assert.Equal(t, want[name], got)
		})
	}
}

func TestSameSeedSameSteps(t *testing.T) {
	for name, p := range allProfiles(t) {
		t.Run(name, func(t *testing.T) {
			a, b := NewEngine(p, 42, 3), NewEngine(p, 42, 3)
			otherRank, otherSeed := NewEngine(p, 42, 4), NewEngine(p, 43, 3)
			rankDiffers, seedDiffers := false, false
			for range 2000 {
				step := a.Step()
				require.Equal(t, step, b.Step())
				rankDiffers = rankDiffers || step != otherRank.Step()
				seedDiffers = seedDiffers || step != otherSeed.Step()
			}
			assert.True(t, rankDiffers)
			assert.True(t, seedDiffers)
		})
	}
}

func TestRecordOfAPass(t *testing.T) {
	small := Profile{
		TokenBudget: 100, MaxRequests: 2, KVTokens: 1000,
		Burst: Range{3, 3}, Lull: Range{1, 1},
		Prompt: Length{Median: 80, Range: Range{80, 80}},
		Output: Length{Median: 3, Range: Range{3, 3}},
	}
	queued := func(n int) Requests {
		return Requests{NumPrefillRequests: n, SumPrefillTokens: 80 * n}
	}
	want := []struct {
		what              string
		scheduled, queued Requests
	}{
		{
			"two prompts of 80 share a budget of 100",
			Requests{NumPrefillRequests: 2, SumPrefillTokens: 100},
			queued(1),
		},
		{
			"the first decodes while the second reads its first chunk",
			Requests{
				NumPrefillRequests: 1, SumPrefillTokens: 60, SumPrefillKVTokens: 20,
				NumDecodeRequests: 1, SumDecodeKVTokens: 81,
			},
			queued(1),
		},
		{
			"both decode; the third waits for a place",
			Requests{NumDecodeRequests: 2, SumDecodeKVTokens: 163, VarDecodeKVTokens: 0.25},
			queued(1),
		},
		{
			"the third enters as the first has left",
			Requests{
				NumPrefillRequests: 1, SumPrefillTokens: 80,
				NumDecodeRequests: 1, SumDecodeKVTokens: 82,
			},
			queued(0),
		},
		{"one left", Requests{NumDecodeRequests: 1, SumDecodeKVTokens: 81}, queued(0)},
		{"its last token", Requests{NumDecodeRequests: 1, SumDecodeKVTokens: 82}, queued(0)},
	}
	e := NewEngine(small, 1, 0)
	for _, w := range want {
		step := e.Step()
		require.Zero(t, step.Idle, w.what)
		require.Equal(t, w.scheduled, step.Pass.Scheduled, w.what)
		require.Equal(t, w.queued, step.Pass.Queued, w.what)
	}
	require.Equal(t, Step{Idle: milliseconds(1)}, e.Step())
}

func TestProfileByName(t *testing.T) {
	_, err := ProfileByName("train")
	assert.EqualError(t, err, `unknown profile "train": must be one of batch, chat, idle`)
}

func BenchmarkStep(b *testing.B) {
	p, err := ProfileByName("chat")
	require.NoError(b, err)
	e := NewEngine(p, 1, 0)
	for b.Loop() {
		e.Step()
	}
}
