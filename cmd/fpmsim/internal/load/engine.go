// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package load

import "math/rand/v2"

// request is one request on its way through the engine.
type request struct {
	prompt, output int
	// computed counts prompt tokens with KV cache entries, cached ones included.
	computed int
	// generated counts output tokens.
	generated int
}

func (r *request) prefilling() bool { return r.computed < r.prompt }

// context is the number of tokens the request has in the KV cache.
func (r *request) context() int { return r.computed + r.generated }

// Engine is the state of one rank. It is not safe for concurrent use.
//
// Invariants (TestEngineInvariants): no pass exceeds the token budget, running
// requests never exceed MaxRequests, their KV cache entries never exceed
// KVTokens, and every request that arrived is done when the engine is idle.
type Engine struct {
	profile Profile
	traffic traffic
	rng     *rand.Rand

	waiting   []request // not admitted yet, oldest first
	running   []request // in order of admission
	preempted []request // lost their KV cache to others, oldest first

	arrived, done int
}

// NewEngine starts an idle engine. Ranks with the same seed get different
// traffic, each always the same.
func NewEngine(p Profile, seed uint64, rank int) *Engine {
	rng := rand.New(rand.NewPCG(seed, uint64(rank)))
	return &Engine{profile: p, rng: rng, traffic: newTraffic(p, rng)}
}

// Step runs one forward pass, or says how long there is nothing to run.
func (e *Engine) Step() Step {
	for range e.traffic.arrivals(len(e.waiting)+len(e.running)+len(e.preempted) == 0) {
		e.waiting = append(e.waiting, e.traffic.request())
		e.arrived++
	}
	if len(e.waiting)+len(e.running)+len(e.preempted) == 0 {
		return Step{Idle: e.traffic.lull()}
	}
	return Step{Pass: e.pass()}
}

func (e *Engine) pass() Pass {
	e.preempt()
	e.resume()

	var p Pass
	budget := e.decode(&p.Scheduled, e.profile.TokenBudget)
	e.prefill(&p.Scheduled, budget)
	p.WallTime = e.wallTime(p.Scheduled)
	p.Queued = e.queued()
	e.leave()
	return p
}

// kvTokens is what the running requests have reserved, and what they need more
// for the tokens of this pass.
func (e *Engine) kvTokens() int {
	sum := 0
	for i := range e.running {
		sum += e.running[i].prompt + e.running[i].generated + 1
	}
	return sum
}

// preempt takes the newest requests out until the next tokens of the others
// fit the KV cache.
func (e *Engine) preempt() {
	used := e.kvTokens()
	for used > e.profile.KVTokens && len(e.running) > 1 {
		last := len(e.running) - 1
		r := e.running[last]
		e.running = e.running[:last]
		used -= r.prompt + r.generated + 1
		if r.prefilling() {
			r.computed = 0
			e.waiting = append([]request{r}, e.waiting...)
		} else {
			e.preempted = append(e.preempted, r)
		}
	}
}

// resume puts preempted requests back while they fit with some room to grow.
func (e *Engine) resume() {
	used := e.kvTokens()
	for len(e.preempted) > 0 && len(e.running) < e.profile.MaxRequests {
		r := e.preempted[0]
		need := r.prompt + r.generated + 1
		if used+need > e.profile.KVTokens*15/16 && len(e.running) > 0 {
			return
		}
		used += need
		e.running = append(e.running, r)
		e.preempted = e.preempted[1:]
	}
}

// decode gives each request whose prompt is computed one token of the budget,
// and returns the rest.
func (e *Engine) decode(s *Requests, budget int) int {
	var kv variance
	for i := range e.running {
		r := &e.running[i]
		if r.prefilling() || budget == 0 {
			continue
		}
		s.NumDecodeRequests++
		s.SumDecodeKVTokens += r.context()
		kv.add(r.context())
		r.generated++
		budget--
	}
	s.VarDecodeKVTokens = kv.value()
	return budget
}

// prefill spends the budget on the oldest unfinished prompts, then admits
// waiting requests. A prompt that is finished yields its first token.
func (e *Engine) prefill(s *Requests, budget int) {
	var lengths variance
	chunk := func(r *request) {
		n := min(budget, r.prompt-r.computed)
		s.NumPrefillRequests++
		s.SumPrefillTokens += n
		s.SumPrefillKVTokens += r.computed
		lengths.add(r.prompt)
		budget -= n
		r.computed += n
		if !r.prefilling() {
			r.generated++
		}
	}
	for i := range e.running {
		if r := &e.running[i]; r.prefilling() && budget > 0 {
			chunk(r)
		}
	}
	used := e.kvTokens()
	for budget > 0 && len(e.waiting) > 0 && len(e.preempted) == 0 && len(e.running) < e.profile.MaxRequests {
		r := e.waiting[0]
		if used+r.prompt+1 > e.profile.KVTokens && len(e.running) > 0 {
			break
		}
		used += r.prompt + 1
		e.waiting = e.waiting[1:]
		e.running = append(e.running, r)
		chunk(&e.running[len(e.running)-1])
	}
	s.VarPrefillLength = lengths.value()
}

func (e *Engine) wallTime(scheduled Requests) float64 {
	noise := 1 + wallTimeNoise*(2*e.rng.Float64()-1)
	ticks := float64(int64(cost(scheduled) * noise * wallTimeGranularity))
	return ticks / wallTimeGranularity
}

func (e *Engine) queued() Requests {
	var (
		q           Requests
		lengths, kv variance
	)
	for i := range e.waiting {
		q.SumPrefillTokens += e.waiting[i].prompt
		lengths.add(e.waiting[i].prompt)
	}
	for i := range e.preempted {
		q.SumDecodeKVTokens += e.preempted[i].context()
		kv.add(e.preempted[i].context())
	}
	q.NumPrefillRequests, q.VarPrefillLength = len(e.waiting), lengths.value()
	q.NumDecodeRequests, q.VarDecodeKVTokens = len(e.preempted), kv.value()
	return q
}

// leave drops the requests that have all their output.
func (e *Engine) leave() {
	kept := e.running[:0]
	for _, r := range e.running {
		if r.generated >= r.output {
			e.done++
			continue
		}
		kept = append(kept, r)
	}
	e.running = kept
}
