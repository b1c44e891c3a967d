// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"fmt"
	"iter"
	"math"
	"strconv"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"
)

const (
	warmupKey     = "warmup_evidence"
	rankWarmupKey = "rank_warmup_evidence"
)

// What a ledger can be.
const (
	ledgerRecorded    = "recorded"
	ledgerUnavailable = "unavailable"
	// rankNotLoaded is the reason of the merger for a rank on another node.
	rankNotLoaded = "rank_artifact_not_loaded"
)

// ledgersOf are the warm-up ledgers of a file, by rank.
func ledgersOf(a *Artifact) iter.Seq2[int, document.Value] {
	return func(yield func(int, document.Value) bool) {
		if a.Kind == Rank {
			yield(a.Rank, a.Root.Get(warmupKey))
			return
		}
		for key, ledger := range a.Root.Get(rankWarmupKey).Members() {
			rank, err := strconv.Atoi(key)
			if err != nil || rank < 0 || rank > math.MaxInt32 {
				rank = NoRank
			}
			if !yield(rank, ledger) {
				return
			}
		}
	}
}

// ledger is a rank's warm-up as the rules about points see it: for the first n
// records, whether one runs still and the last forward index that one ended at.
type ledger struct {
	recorded bool
	running  []bool
	ended    []int64
}

func newLedger(evidence document.Value) *ledger {
	l := &ledger{recorded: oneOf(evidence.Get("status"), ledgerRecorded), running: []bool{false}, ended: []int64{0}}
	for i, record := range evidence.Get("records").Items() {
		end, _ := record.Get("forward_index_end").Int()
		l.running = append(l.running, l.running[i] || oneOf(record.Get("status"), "running"))
		l.ended = append(l.ended, max(l.ended[i], end))
	}
	return l
}

func (l *ledger) records() int { return len(l.running) - 1 }

// addLedgers keeps what the rules about points need. A rank's own file comes
// before a merged one.
func (c *Checker) addLedgers(a *Artifact) {
	for rank, evidence := range ledgersOf(a) {
		if c.ledgers[rank] != nil || !evidence.Given() || oneOf(evidence.Get("reason"), rankNotLoaded) {
			continue
		}
		c.ledgers[rank] = newLedger(evidence)
	}
}

func checkWarmupUndeclared(c *Checker, a *Artifact, r *report) {
	if c.contract {
		return
	}
	for _, key := range []string{warmupKey, rankWarmupKey} {
		r.is(!a.Root.Get(key).Exists(), key, "none without "+executionKey, a.Root.Get(key))
	}
}

func checkWarmupLedger(c *Checker, a *Artifact, r *report) {
	if !c.contract {
		return
	}
	if a.Kind == Merged {
		r.is(a.Root.Get(rankWarmupKey).Kind() == document.Object, rankWarmupKey, "an object", a.Root.Get(rankWarmupKey))
	}
	for rank, evidence := range ledgersOf(a) {
		r.ranks = []int{rank}
		status, records := evidence.Get("status"), evidence.Get("records")
		r.is(oneOf(status, ledgerRecorded, ledgerUnavailable), warmupKey+".status", `"recorded" or "unavailable"`, status)
		r.is(records.Kind() == document.Array, warmupKey+".records", "a list", records)
		if oneOf(status, ledgerUnavailable) {
			r.is(!records.Index(0).Exists(), warmupKey+".records", "an empty list, as it is unavailable", records)
		}
	}
}

// eachRecord calls check for each warm-up of a file.
func (c *Checker) eachRecord(a *Artifact, r *report, check func(field string, record document.Value)) {
	if !c.contract {
		return
	}
	for rank, evidence := range ledgersOf(a) {
		r.ranks = []int{rank}
		for i, record := range evidence.Get("records").Items() {
			check(fmt.Sprintf("%s.records.%d.", warmupKey, i), record)
		}
	}
}

func checkWarmupRecord(c *Checker, a *Artifact, r *report) {
	c.eachRecord(a, r, func(field string, record document.Value) {
		status, validation := record.Get("status"), record.Path("validation", "status")
		r.is(oneOf(status, "running", "completed", "failed"), field+"status", `"running", "completed" or "failed"`, status)
		r.is(oneOf(validation, "not_performed", "passed", "failed"), field+"validation.status", `"not_performed", "passed" or "failed"`, validation)
		if oneOf(validation, "passed") {
			r.is(oneOf(status, "completed"), field+"status", `"completed", as validation passed`, status)
		}
		if oneOf(validation, "failed") {
			r.is(oneOf(status, "failed"), field+"status", `"failed", as validation failed`, status)
		}
	})
}

func checkWarmupRange(c *Checker, a *Artifact, r *report) {
	c.eachRecord(a, r, func(field string, record document.Value) {
		start, end, count := record.Get("forward_index_start"), record.Get("forward_index_end"), record.Get("observed_forward_count")
		r.is(!start.Given() || atLeast(start, 0), field+"forward_index_start", "an index or null", start)
		if oneOf(record.Get("status"), "completed") || end.Given() {
			r.is(atLeast(end, 0), field+"forward_index_end", "an index", end)
		}
		r.is(!count.Given() || atLeast(count, 0), field+"observed_forward_count", "a number or null", count)
		first, hasStart := start.Int()
		last, hasEnd := end.Int()
		if !hasStart || !hasEnd {
			return
		}
		r.is(last >= first, field+"forward_index_end", fmt.Sprintf("%d or more, the start", first), end)
		if count.Given() {
			r.number(field+"observed_forward_count", last-first, count)
		}
	})
}

func checkWarmupReference(c *Checker, m *measured, r *report) {
	if !c.contract || !hasMeasurement(c, m) {
		return
	}
	before := m.measurement.Path("preparation", "warmup_records_before")
	const field = measurementKey + ".preparation.warmup_records_before"
	l := c.ledgers[m.rank]
	switch {
	case l == nil:
		r.is(!before.Given() || atLeast(before, 0), field, "a number of warm-ups or null", before)
	case l.recorded:
		count, _ := before.Int()
		r.is(atLeast(before, 0) && count <= int64(l.records()), field, fmt.Sprintf("at most %d, the warm-ups recorded", l.records()), before)
	default:
		r.is(!before.Given(), field, "null, as the warm-ups are unavailable", before)
	}
}

func checkWarmupOverlap(c *Checker, m *measured, r *report) {
	l := c.ledgers[m.rank]
	if !c.contract || !hasMeasurement(c, m) || l == nil || !l.recorded {
		return
	}
	before, _ := m.measurement.Path("preparation", "warmup_records_before").Int()
	value := m.measurement.Get("raw_fpms").Index(0).Path(sampleKey, "forward_index")
	first, ok := value.Int()
	if !ok || before < 0 || before > int64(l.records()) {
		return // other rules say so
	}
	r.raw = 0
	const field = sampleKey + ".forward_index"
	switch {
	case l.running[before]:
		r.holds(false)
		r.violated(field, fmt.Sprintf("the first %d warm-ups ended", before), "one that is running")
	case !r.holds(l.ended[before] <= first):
		r.violated(field, fmt.Sprintf("%d or more, the end of the warm-ups before", l.ended[before]), value.Short())
	}
}
