// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"iter"
	"math"
	"strconv"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"
)

// Engine is what a run says of its engine: what the engine was at start, and
// what its workers said after the run, if they did.
type Engine struct {
	// Block is the merged file's engine block, else that of the first rank whose
	// capture succeeded. Missing when no file has one.
	Block document.Value
	// Rank is whose block it is; NoRank when it is the merged file's.
	Rank int
	// CaptureErrors are the ranks without a usable block, while another has one.
	CaptureErrors []CaptureError
	// Probe is what the replies say of all ranks together; nil when there is no
	// post-run evidence.
	Probe *Probe
	// RankProbes are what the replies say of one rank each.
	RankProbes map[int]*Probe
}

// CaptureError is why a rank has no engine block that can be compared.
type CaptureError struct {
	Rank int
	Text string
}

// missingEngine is the text of the merger for a rank without a block.
const missingEngine = "missing engine block"

// Identity are the scalar fields of the engine's blocks, as "block.field",
// without those that are known only after the run or are a rank's own.
func (e *Engine) Identity() iter.Seq2[string, document.Value] {
	return func(yield func(string, document.Value) bool) {
		for block, fields := range e.Block.Members() {
			for field, value := range fields.Members() {
				name := block + "." + field
				scalar := value.Kind() == document.Bool || value.Kind() == document.Number || value.Kind() == document.String
				if scalar && !afterRun["engine."+name] && !yield(name, value) {
					return
				}
			}
		}
	}
}

// Probe is one result of the worker probe.
//
// Invariant: the resolved fields are set only when a reply in scope was kept as
// representative and labeled so; a rank that was not observed has none.
type Probe struct {
	// Resolution is the outcome as recorded: worker_probe, worker_probe_partial,
	// worker_probe_mixed, worker_probe_unobserved, "probe_failed: …" or
	// "probe_skipped: …".
	Resolution string
	// Scope is resolved_scope, empty when nothing was resolved.
	Scope string
	// Resolved is the representative's reply.
	Resolved document.Value
	// Attention has the summaries backend_resolved and
	// mla_prefill_backend_resolved; Missing when nothing was resolved.
	Attention document.Value
	// Worker is the block worker_probe: every reply, coverage and disagreements.
	Worker document.Value
}

const representativeWorker = "representative_worker"

// newProbe reads a probe result: an entry of a sidecar, or an engine block that
// it was written into. rank is the rank that it is about, NoRank for all.
func newProbe(result document.Value, rank int) *Probe {
	result = result.Detach()
	p := &Probe{Worker: result.Get("worker_probe")}
	p.Resolution, _ = result.Get("resolution").Text()
	resolved := result.Get("resolved")
	if !oneOf(result.Get("resolved_scope"), representativeWorker) || resolved.Kind() != document.Object ||
		rank != NoRank && !isInt(resolved.Get("dp_rank"), int64(rank)) {
		return p
	}
	p.Scope, p.Resolved, p.Attention = representativeWorker, resolved, result.Get("attention")
	return p
}

// Complete reports whether every worker in scope answered, and nothing
// disagreed.
func (p *Probe) Complete() bool {
	complete, _ := p.Worker.Path("coverage", "complete").Bool()
	return complete && p.Resolution == "worker_probe"
}

// addSidecar keeps the results of a sidecar; they replace older ones that were
// written into the artifacts.
func (c *collected) addSidecar(a *Artifact) {
	c.engine.Probe = newProbe(a.Root.Get("merged"), NoRank)
	for key, result := range a.Root.Get("ranks").Members() {
		if rank, err := strconv.Atoi(key); err == nil && rank >= 0 && rank <= math.MaxInt32 {
			c.engine.RankProbes[rank] = newProbe(result, rank)
		}
	}
}

// addEngine keeps what a file says of the engine.
func (c *collected) addEngine(a *Artifact) {
	engine := a.Root.Get("engine")
	exists := engine.Kind() == document.Object
	if exists && a.ProbeState() == ProbeInside {
		if a.Kind == Merged {
			c.engine.Probe = newProbe(engine, NoRank)
		} else {
			c.engine.RankProbes[a.Rank] = newProbe(engine, a.Rank)
		}
	}
	if a.Kind == Merged {
		if exists && !c.mergedEngine {
			c.engine.Block, c.engine.Rank, c.mergedEngine = engine.Detach(), NoRank, true
		}
		for key, text := range engine.Get("capture_errors").Members() {
			if rank, err := strconv.Atoi(key); err == nil {
				failure, _ := text.Text()
				c.addCaptureError(rank, failure)
			}
		}
		return
	}
	if exists && (!c.engine.Block.Exists() || degraded(c.engine.Block) && !degraded(engine)) {
		c.engine.Block, c.engine.Rank = engine.Detach(), a.Rank
	}
	if degraded(engine) {
		failure := missingEngine
		if exists {
			failure = engine.Get("capture_error").Short()
			if text, ok := engine.Get("capture_error").Text(); ok {
				failure = text
			}
		}
		c.addCaptureError(a.Rank, failure)
	}
}

func (c *collected) addCaptureError(rank int, text string) {
	if c.uncaptured[rank] {
		return
	}
	c.uncaptured[rank] = true
	c.engine.CaptureErrors = append(c.engine.CaptureErrors, CaptureError{Rank: rank, Text: cut(text)})
}
