// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Profile describes an engine and the traffic it gets.
//
// Invariant (TestEveryRequestFitsTheKVCache): the longest prompt and output
// together fit KVTokens, so that a request that runs alone always ends.
type Profile struct {
	// TokenBudget bounds the tokens of one pass, prefill and decode together.
	TokenBudget int
	// MaxRequests bounds the requests that run at the same time.
	MaxRequests int
	// KVTokens is the size of the KV cache, in tokens.
	KVTokens int

	// Burst is the number of requests that arrive until the traffic stops, and
	// Lull the idle time after the last of them is done.
	Burst Range
	Lull  Range // milliseconds
	// Arrivals is the mean number of requests that arrive during a pass. It
	// swings slowly around this mean. Zero: a burst arrives all at once.
	Arrivals float64
	// Prompt and Output are lengths in tokens.
	Prompt, Output Length
	// CachedShare of the requests find a part of their prompt in the cache.
	CachedShare float64
}

// Range is an inclusive range of integers.
type Range struct{ Min, Max int }

// Length is a log-normal distribution cut to a range.
type Length struct {
	Median float64
	Sigma  float64
	Range
}

var profiles = map[string]Profile{
	// Conversations: requests come and go all the time, many with a cached prefix.
	"chat": {
		TokenBudget: 2048, MaxRequests: 64, KVTokens: 131072,
		Burst: Range{200, 500}, Lull: Range{2000, 4500},
		Arrivals: 0.4,
		Prompt:   Length{Median: 500, Sigma: 0.9, Range: Range{16, 8192}},
		Output:   Length{Median: 140, Sigma: 0.6, Range: Range{8, 600}},

		CachedShare: 0.4,
	},
	// Offline work: a job puts hundreds of requests into the queue at once.
	"batch": {
		TokenBudget: 2048, MaxRequests: 256, KVTokens: 196608,
		Burst: Range{300, 600}, Lull: Range{4000, 8000},
		Arrivals: 0,
		Prompt:   Length{Median: 900, Sigma: 0.5, Range: Range{64, 4096}},
		Output:   Length{Median: 120, Sigma: 0.4, Range: Range{16, 400}},
	},
	// Hardly any traffic: a request or two, then seconds of heartbeats.
	"idle": {
		TokenBudget: 2048, MaxRequests: 64, KVTokens: 131072,
		Burst: Range{1, 2}, Lull: Range{2000, 6000},
		Arrivals: 0,
		Prompt:   Length{Median: 300, Sigma: 0.7, Range: Range{16, 4096}},
		Output:   Length{Median: 20, Sigma: 0.5, Range: Range{4, 100}},
	},
}

// ProfileNames are the names that ProfileByName takes, sorted.
func ProfileNames() []string { return slices.Sorted(maps.Keys(profiles)) }

// ProfileByName finds a profile; the error names all there are.
func ProfileByName(name string) (Profile, error) {
	p, ok := profiles[name]
	if !ok {
		return Profile{}, fmt.Errorf("unknown profile %q: must be one of %s", name, strings.Join(ProfileNames(), ", "))
	}
	return p, nil
}

// milliseconds reads a drawn number as a duration.
func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }
