// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"math"
	"math/rand/v2"
	"time"
)

// swingPasses is the period, in passes, in which the arrivals of a burst swing
// around their mean.
const swingPasses = 400

// traffic decides when requests arrive and how long they are.
type traffic struct {
	profile Profile
	rng     *rand.Rand
	// share makes one rank busier than another, as a router does.
	share float64
	// left is the number of requests of this burst still to arrive.
	left  int
	phase float64
}

func newTraffic(p Profile, rng *rand.Rand) traffic {
	t := traffic{profile: p, rng: rng, share: 0.7 + 0.6*rng.Float64(), phase: rng.Float64()}
	t.left = t.within(p.Burst)
	return t
}

// arrivals is the number of requests that arrive before the next pass. An
// engine with nothing to do gets one at once while the burst lasts.
func (t *traffic) arrivals(empty bool) int {
	if t.left == 0 {
		return 0
	}
	n := t.left
	if t.profile.Arrivals > 0 {
		t.phase += 1.0 / swingPasses
		swing := 1 + 0.8*math.Sin(2*math.Pi*t.phase)
		n = min(t.left, t.poisson(t.profile.Arrivals*t.share*swing))
		if n == 0 && empty {
			n = 1
		}
	}
	t.left -= n
	return n
}

// lull is the idle time after a burst; the next burst is then due.
func (t *traffic) lull() time.Duration {
	t.left = t.within(t.profile.Burst)
	return milliseconds(t.within(t.profile.Lull))
}

func (t *traffic) request() request {
	r := request{prompt: t.length(t.profile.Prompt), output: t.length(t.profile.Output)}
	if t.rng.Float64() < t.profile.CachedShare {
		// The cache holds whole blocks of 16 tokens, never the whole prompt.
		cached := int(float64(r.prompt) * (0.3 + 0.6*t.rng.Float64()))
		r.computed = cached / 16 * 16
	}
	return r
}

func (t *traffic) length(l Length) int {
	n := int(l.Median * math.Exp(l.Sigma*t.rng.NormFloat64()))
	return max(l.Min, min(l.Max, n))
}

func (t *traffic) within(r Range) int { return r.Min + t.rng.IntN(r.Max-r.Min+1) }

// poisson draws a Poisson variate by multiplying uniforms; fine for small means.
func (t *traffic) poisson(mean float64) int {
	limit, p, n := math.Exp(-mean), t.rng.Float64(), 0
	for p > limit {
		p *= t.rng.Float64()
		n++
	}
	return n
}
