// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"
)

// Run is one run of the self-benchmark, checked and, when all rules hold, merged.
//
// Invariant: a violated run has the ranks' own results and no merged ones:
// Groups is empty, and Points come from the file that each rank wrote.
type Run struct {
	// ID is run_id, GridDigest grid_digest; empty when the files have none.
	ID, GridDigest string
	// SchemaVersion of the first file.
	SchemaVersion int64
	// Status is the worst of the files: failed, partial, complete.
	Status, StopReason string
	// ArtifactValid is valid of the first file; nil when it does not say.
	ArtifactValid *bool
	// Size is the number of ranks that the run had, 0 when unknown.
	Size int
	// Files in the order in which they were added.
	Files []File

	// Valid: no rule is violated. That is another thing than ArtifactValid: a
	// partial run can be valid in this sense.
	Valid bool
	// Outcomes are those of Rules, in their order.
	Outcomes []Outcome
	// Violations are the first 16 of each rule, in the order of Rules.
	Violations []Violation

	// Points by id, then rank.
	Points []Point
	// Groups are the durations of the slowest ranks, by id.
	Groups []GroupTime
	// Coverage is in points × ranks; nil when unknown.
	Coverage *Coverage
	// Elapsed is the time that the slowest rank took, in seconds; nil when
	// unknown.
	Elapsed *float64
	// CompletedAt is when the last rank was done; zero when unknown.
	CompletedAt time.Time
	// WorkerID is that of all FPMs; empty when they have none or several.
	WorkerID string

	Engine   Engine
	Warmups  []Warmup
	Protocol document.Value

	merged    bool
	reference string
	owner     map[int]string
	regimes   map[resultKey]string
}

// GroupTime is the duration of one point over all ranks, in seconds.
type GroupTime struct {
	ID       int64
	WallTime float64
}

// Coverage counts points, each once for each rank.
type Coverage struct{ Expected, Completed, Skipped int64 }

// Warmup is how one rank was prepared.
type Warmup struct {
	Rank int
	// Evidence is warmup_evidence, Missing when the file has none.
	Evidence document.Value
	// KVWarm is kvwarm, which has the stages of decode warm-up.
	KVWarm document.Value
}

// Result is what a file says of one rank at one point, whole.
type Result struct {
	ID          int64
	Rank        int
	Point, FPMs document.Value
	SeedRegime  string
}

type resultKey struct {
	rank int
	id   int64
}

func newRun(c *Checker) *Run {
	a, collected := c.reference, c.collected
	r := &Run{
		ID: a.RunID, SchemaVersion: a.SchemaVersion, Size: a.Size, Files: c.files,
		Status: collected.status, Outcomes: c.outcomes, Violations: c.violations, Valid: len(c.violations) == 0,
		Elapsed: collected.elapsed, CompletedAt: collected.completedAt,
		Engine: collected.engine, Warmups: collected.warmups, Protocol: protocolOf(a).Detach(),
		reference: a.File, owner: collected.owner, regimes: collected.regimes,
	}
	r.GridDigest, _ = a.Root.Get("grid_digest").Text()
	r.StopReason, _ = a.Root.Get("stop_reason").Text()
	if valid, ok := a.Root.Get("valid").Bool(); ok {
		r.ArtifactValid = &valid
	}
	if !r.Engine.Block.Exists() {
		r.Engine.CaptureErrors = nil // a run without any block is an older one
	}
	slices.SortStableFunc(r.Violations, func(a, b Violation) int {
		return cmp.Compare(ruleIndex(a.Rule), ruleIndex(b.Rule))
	})
	r.merged = r.Valid && a.hasGroups()
	if r.merged {
		r.merge(c)
	} else {
		r.Points = collected.points
		r.Coverage = collected.coverage()
	}
	slices.SortStableFunc(r.Points, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Rank, b.Rank))
	})
	slices.SortFunc(r.Warmups, func(a, b Warmup) int { return cmp.Compare(a.Rank, b.Rank) })
	r.WorkerID = commonWorker(r.Points)
	return r
}

func ruleIndex(rule *Rule) int {
	return slices.IndexFunc(Rules, func(other Rule) bool { return other.Name == rule.Name })
}

// merge takes the points of all ranks from the groups, as the merger does.
func (r *Run) merge(c *Checker) {
	for result := range r.Results(c.reference) {
		m := newMeasured(result.ID, result.Rank, result.Point, result.FPMs)
		m.regime = result.SeedRegime
		r.Points = append(r.Points, newPoint(m))
	}
	for group := range groupsOf(c.reference) {
		if seconds := secondsOf(group.value.Get("wall_time")); seconds != nil {
			r.Groups = append(r.Groups, GroupTime{ID: group.id, WallTime: *seconds})
		}
	}
	slices.SortFunc(r.Groups, func(a, b GroupTime) int { return cmp.Compare(a.ID, b.ID) })
	coverage := coverageOf(c.reference)
	if coverage != nil && c.reference.Kind == Rank {
		size := int64(c.reference.Size)
		if coverage.Expected > maxPoints/size {
			return
		}
		coverage.Expected *= size
		coverage.Completed *= size
		coverage.Skipped *= size
	}
	r.Coverage = coverage
}

// Results are the results that a file contributes to the run: of a merged run
// those of the groups of its first file, else each rank's own.
func (r *Run) Results(a *Artifact) iter.Seq[Result] {
	return func(yield func(Result) bool) {
		give := func(m *measured) bool {
			return yield(Result{
				ID: m.id, Rank: m.rank, Point: m.point, FPMs: m.fpms,
				SeedRegime: r.regimes[resultKey{m.rank, m.id}],
			})
		}
		if r.merged {
			if a.File != r.reference {
				return
			}
			for group := range groupsOf(a) {
				for m := range group.ranks() {
					if !give(m) {
						return
					}
				}
			}
			return
		}
		for m := range resultsOf(a) {
			if r.owner[m.rank] == a.File && !give(m) {
				return
			}
		}
	}
}

// Contributes reports whether Results of the file of that name may have some.
func (r *Run) Contributes(file string) bool {
	if r.merged {
		return file == r.reference
	}
	for _, name := range r.owner {
		if name == file {
			return true
		}
	}
	return false
}

// commonWorker is the worker id that all points have.
func commonWorker(points []Point) string {
	for i := range points {
		if points[i].WorkerID != points[0].WorkerID {
			return ""
		}
	}
	if len(points) == 0 {
		return ""
	}
	return points[0].WorkerID
}
