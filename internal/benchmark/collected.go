// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"slices"
	"time"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"
)

// collected is what a Checker keeps of the files for the Run.
type collected struct {
	status      string
	completedAt time.Time
	elapsed     *float64
	// ofRanks adds up the coverage of the rank files; ofMerged is the first
	// merged file's.
	ofRanks, ofMerged *Coverage
	// points are the ranks' own; owner is the file that they are taken from.
	points  []Point
	owner   map[int]string
	regimes map[resultKey]string

	engine       Engine
	mergedEngine bool
	uncaptured   map[int]bool // the ranks of engine.CaptureErrors
	warmups      []Warmup
	warm         map[int]bool // the ranks of warmups
}

func newCollected() *collected {
	return &collected{
		owner: make(map[int]string), regimes: make(map[resultKey]string),
		uncaptured: make(map[int]bool), warm: make(map[int]bool),
		engine: Engine{Rank: NoRank, RankProbes: make(map[int]*Probe)},
	}
}

func (c *collected) add(a *Artifact) {
	c.addStatus(a)
	c.addTiming(a)
	c.addCoverage(a)
	c.addPoints(a)
	c.addEngine(a)
	c.addWarmups(a)
}

// byBadness are the statuses, the worst last; one that is unknown is worst.
var byBadness = []string{StatusComplete, StatusPartial, StatusFailed}

func (c *collected) addStatus(a *Artifact) {
	status := a.status()
	if !slices.Contains(byBadness, status) {
		status = StatusFailed
	}
	if c.status == "" || slices.Index(byBadness, status) > slices.Index(byBadness, c.status) {
		c.status = status
	}
}

func (c *collected) addTiming(a *Artifact) {
	timing := a.Root.Get("timing")
	if at, ok := parseTime(timing.Get("completed_at")); ok && at.After(c.completedAt) {
		c.completedAt = at
	}
	if seconds, ok := timing.Get("benchmark_elapsed_seconds").Float(); ok && seconds >= 0 {
		if c.elapsed == nil || seconds > *c.elapsed {
			c.elapsed = &seconds
		}
	}
}

func coverageOf(a *Artifact) *Coverage {
	coverage := a.Root.Get("coverage")
	expected, hasExpected := coverage.Get("expected_points").Int()
	completed, hasCompleted := coverage.Get("completed_points").Int()
	skipped, _ := coverage.Get("skipped_points").Int()
	if !hasExpected || !hasCompleted || min(expected, completed, skipped) < 0 || max(expected, completed, skipped) > maxPoints {
		return nil
	}
	return &Coverage{Expected: expected, Completed: completed, Skipped: skipped}
}

func (c *collected) addCoverage(a *Artifact) {
	coverage := coverageOf(a)
	switch {
	case coverage == nil:
	case a.Kind == Merged && c.ofMerged == nil:
		c.ofMerged = coverage
	case a.Kind == Merged:
	case c.ofRanks == nil:
		c.ofRanks = coverage
	default:
		c.ofRanks.Expected += coverage.Expected
		c.ofRanks.Completed += coverage.Completed
		c.ofRanks.Skipped += coverage.Skipped
	}
}

// coverage of a run that is not merged: what the ranks say.
func (c *collected) coverage() *Coverage {
	if c.ofRanks != nil {
		return c.ofRanks
	}
	return c.ofMerged
}

func (c *collected) addPoints(a *Artifact) {
	for m := range resultsOf(a) {
		if _, owned := c.owner[m.rank]; !owned {
			c.owner[m.rank] = a.File
		}
		if c.owner[m.rank] != a.File {
			continue
		}
		if m.regime != "" {
			c.regimes[resultKey{m.rank, m.id}] = m.regime
		}
		c.points = append(c.points, newPoint(m))
	}
}

func (c *collected) addWarmups(a *Artifact) {
	for rank, evidence := range ledgersOf(a) {
		if c.warm[rank] || rank == NoRank {
			continue
		}
		warmup := Warmup{Rank: rank, Evidence: evidence.Detach()}
		if a.Kind == Rank {
			warmup.KVWarm = a.Root.Get("kvwarm").Detach()
		}
		if warmup.Evidence.Exists() || warmup.KVWarm.Exists() {
			c.warmups = append(c.warmups, warmup)
			c.warm[rank] = true
		}
	}
}

// timeLayouts are the ways in which Python writes a time. One without a zone is
// UTC.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999"}

// parseTime reads a time of an artifact.
func parseTime(value document.Value) (at time.Time, ok bool) {
	text, _ := value.Text()
	for _, layout := range timeLayouts {
		if at, err := time.Parse(layout, text); err == nil {
			return at, at.Year() >= 1970 && at.Year() <= 2200 // pdata holds 64 bits of nanoseconds
		}
	}
	return time.Time{}, false
}
