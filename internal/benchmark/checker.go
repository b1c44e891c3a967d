// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"strconv"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"
)

// Checker takes the files of one run, one after the other, and ends in a Run.
// It is for one goroutine.
//
// Invariant: of every artifact but the first only copies of small parts are
// kept, so that a caller can let it go before it reads the next.
type Checker struct {
	outcomes   []Outcome
	violations []Violation

	// reference is the first file; the others are compared with it.
	reference *Artifact
	files     []File
	// groups are the reference's iteration groups by id, measured the sum of
	// their wall times.
	groups   map[int64]document.Value
	measured float64
	// declared, contract: the reference has a protocol, and it promises samples.
	declared, contract bool
	// engine is the first block whose capture succeeded.
	engine document.Value
	// ledgers are the warm-ups by rank; forwards the next index that a rank may
	// use.
	ledgers  map[int]*ledger
	forwards map[int]int64

	collected *collected
}

// File is one artifact of a run.
type File struct {
	Name string
	Kind Kind
	// Rank of a Rank file, else NoRank.
	Rank int
}

// NewChecker begins a run.
func NewChecker() *Checker {
	c := &Checker{
		outcomes: make([]Outcome, len(Rules)),
		groups:   make(map[int64]document.Value),
		ledgers:  make(map[int]*ledger),
		forwards: make(map[int]int64),

		collected: newCollected(),
	}
	for i := range Rules {
		c.outcomes[i].Rule = &Rules[i]
	}
	return c
}

// Add takes the next file: first the Rank files, by rank, then Merged ones.
// Without a Rank file the first Merged file is the reference.
func (c *Checker) Add(a *Artifact) {
	file := File{Name: a.File, Kind: a.Kind, Rank: NoRank}
	if a.Kind == Rank {
		file.Rank = a.Rank
	}
	c.files = append(c.files, file)
	if c.reference == nil {
		c.begin(a)
	}
	c.addLedgers(a)
	ranks := []int{a.Rank}
	if a.Kind == Merged || a.Rank == NoRank {
		ranks = nil
	}
	for i := range Rules {
		if check := Rules[i].file; check != nil {
			check(c, a, &report{checker: c, rule: i, file: a.File, ranks: ranks, raw: noRaw})
		}
	}
	if !a.hasGroups() {
		for m := range resultsOf(a) {
			c.checkMeasured(a, m)
		}
	}
	c.collected.add(a)
}

func (c *Checker) begin(a *Artifact) {
	c.reference = a
	c.measured = sumOfGroups(a)
	c.declared, c.contract = protocolOf(a).Exists(), contractOf(a).Exists()
	for group := range groupsOf(a) {
		if _, twice := c.groups[group.id]; !twice {
			c.groups[group.id] = group.value
		}
	}
}

// AddSidecar takes the workers' replies, which never change whether a run is
// valid. A sidecar of another run is refused with a *ReadError.
func (c *Checker) AddSidecar(a *Artifact) error {
	if c.reference != nil && a.RunID != c.reference.RunID {
		return &ReadError{
			Reason: ReasonSidecarRun, Field: "run_id",
			Got: strconv.Quote(a.RunID), Want: strconv.Quote(c.reference.RunID),
		}
	}
	c.files = append(c.files, File{Name: a.File, Kind: Sidecar, Rank: NoRank})
	c.collected.addSidecar(a)
	return nil
}

// checkMeasured applies the rules about what one rank measured at one point.
func (c *Checker) checkMeasured(a *Artifact, m *measured) {
	ranks := []int{m.rank}
	for i := range Rules {
		if check := Rules[i].fpm; check != nil {
			check(c, m, &report{checker: c, rule: i, file: a.File, ranks: ranks, id: m.id, raw: noRaw})
		}
	}
}

// checkGroups applies the rules about iteration groups. The groups of all files
// are the same, or groups_equal is violated.
func (c *Checker) checkGroups() {
	a := c.reference
	for g := range groupsOf(a) {
		for i := range Rules {
			if check := Rules[i].group; check != nil {
				check(c, g, &report{checker: c, rule: i, file: a.File, id: g.id, raw: noRaw})
			}
		}
		for m := range g.ranks() {
			c.checkMeasured(a, m)
		}
	}
}

// Finish ends the run. There must have been an Add.
func (c *Checker) Finish() *Run {
	c.checkGroups()
	for i := range Rules {
		if check := Rules[i].run; check != nil {
			check(c, &report{checker: c, rule: i, raw: noRaw})
		}
	}
	return newRun(c)
}
