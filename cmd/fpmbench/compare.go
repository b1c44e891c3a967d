// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
)

// comparison is two runs side by side.
type comparison struct {
	// refused are the fields for which the runs are not compared, allowed those
	// that differ and may.
	refused, allowed []benchmark.Difference
	// notes say what the comparison does not establish.
	notes []string
	pairs []pair
}

// pair is one point and rank in both runs.
type pair struct {
	// a, b are nil on the side that does not have it.
	a, b *benchmark.Point
	// all: a and b stand for the slowest of all ranks, with their durations here.
	all                bool
	aSeconds, bSeconds *float64
	prompts            string
}

// How prompt hashes compare.
const (
	promptsSame        = "same"
	promptsDiffer      = "differ"
	promptsUnavailable = "unavailable"
)

// oneSided reports whether only one run has a duration here.
func (p *pair) oneSided() bool { return (p.aSeconds == nil) != (p.bSeconds == nil) }

// ratio is the duration in b over that in a.
func (p *pair) ratio() (float64, bool) {
	if p.aSeconds == nil || p.bSeconds == nil {
		return 0, false
	}
	ratio := *p.bSeconds / *p.aSeconds
	return ratio, !math.IsInf(ratio, 0)
}

// offByBatch reports whether the prompts of a side were built for another
// coordinate than the one recorded.
func (p *pair) offByBatch() bool {
	return p.a != nil && p.a.OffByBatch || p.b != nil && p.b.OffByBatch
}

// point is the side that is there.
func (p *pair) point() *benchmark.Point {
	if p.a != nil {
		return p.a
	}
	return p.b
}

// compareRuns pairs the points of two runs, unless their protocol or engine
// differ in a field that is not allowed to.
func compareRuns(a, b *benchmark.Run, allow []string) *comparison {
	var c comparison
	differences := benchmark.Differences("measurement_protocol", a.Protocol, b.Protocol, nil)
	if a.Engine.Block.Exists() && b.Engine.Block.Exists() {
		differences = append(differences, benchmark.EngineDifferences(a.Engine.Block, b.Engine.Block)...)
	}
	for _, difference := range differences {
		if slices.ContainsFunc(allow, func(field string) bool {
			return difference.Field == field || strings.HasPrefix(difference.Field, field+".")
		}) {
			c.allowed = append(c.allowed, difference)
		} else {
			c.refused = append(c.refused, difference)
		}
	}
	c.notes = notesOn(a, b)
	if len(c.refused) == 0 {
		c.pairs = pairs(a, b)
	}
	return &c
}

func notesOn(a, b *benchmark.Run) []string {
	var notes []string
	for _, side := range []struct {
		name string
		run  *benchmark.Run
	}{{"A", a}, {"B", b}} {
		if !side.run.Valid {
			notes = append(notes, side.name+": rules are violated; see fpmbench check")
		}
		if side.run.Status != benchmark.StatusComplete {
			notes = append(notes, fmt.Sprintf("%s: status %s%s", side.name, side.run.Status, reason(side.run.StopReason)))
		}
		if !side.run.Engine.Block.Exists() {
			notes = append(notes, side.name+": no engine block; whether the engines are the same is unknown")
		}
		for _, failure := range side.run.Engine.CaptureErrors {
			notes = append(notes, fmt.Sprintf("%s: engine of rank %d unknown: %s", side.name, failure.Rank, failure.Text))
		}
	}
	if !a.Protocol.Exists() && !b.Protocol.Exists() {
		notes = append(notes, "no measurement_protocol in either run; whether they measured the same is unknown")
	}
	return notes
}

// pairs matches points by point_key where all points of both runs have one, else
// by coordinates; the order and the size of the grids do not matter.
func pairs(a, b *benchmark.Run) []pair {
	key := coordinates
	if allHaveKeys(a) && allHaveKeys(b) {
		key = func(p *benchmark.Point) string { return p.Key }
	}
	again := repeated(a, key)
	for name := range repeated(b, key) {
		again[name] = true
	}
	ofA, ofB := index(a, key, again), index(b, key, again)
	var all []pair
	for i := range a.Points {
		p := &a.Points[i]
		all = append(all, newPair(p, ofB.byName[ofA.names[i]]))
	}
	for i := range b.Points {
		if ofA.byName[ofB.names[i]] == nil {
			all = append(all, newPair(nil, &b.Points[i]))
		}
	}
	return withGroups(all, a, b)
}

func newPair(a, b *benchmark.Point) pair {
	p := pair{a: a, b: b, prompts: promptsUnavailable}
	if a != nil {
		p.aSeconds = a.WallTime
	}
	if b != nil {
		p.bSeconds = b.WallTime
	}
	if a != nil && b != nil && a.PromptHash != "" && b.PromptHash != "" {
		p.prompts = promptsDiffer
		if a.PromptHash == b.PromptHash {
			p.prompts = promptsSame
		}
	}
	return p
}

func allHaveKeys(run *benchmark.Run) bool {
	return !slices.ContainsFunc(run.Points, func(p benchmark.Point) bool { return p.Key == "" })
}

func coordinates(p *benchmark.Point) string {
	return strings.Join([]string{p.Type, whole(p.BatchSize), whole(p.PrefillTokens), whole(p.KVReadTokens), p.Partition, p.Rows}, "|")
}

// names are the points of a run by what they are matched by.
type names struct {
	names  []string // one a point
	byName map[string]*benchmark.Point
}

func keyAndRank(p *benchmark.Point, key func(*benchmark.Point) string) string {
	return fmt.Sprintf("%s|%d", key(p), p.Rank)
}

// repeated are the keys and ranks that a run has more than once.
func repeated(run *benchmark.Run, key func(*benchmark.Point) string) map[string]bool {
	count, again := make(map[string]int), make(map[string]bool)
	for i := range run.Points {
		name := keyAndRank(&run.Points[i], key)
		if count[name]++; count[name] > 1 {
			again[name] = true
		}
	}
	return again
}

// index names the points of a run by key and rank. A grid may have a point
// again, seeded in another way or just again: then the n-th of a regime is the
// n-th of the other run.
func index(run *benchmark.Run, key func(*benchmark.Point) string, again map[string]bool) names {
	n := names{byName: make(map[string]*benchmark.Point, len(run.Points))}
	count := make(map[string]int)
	for i := range run.Points {
		p := &run.Points[i]
		name := keyAndRank(p, key)
		if again[name] {
			name += "|" + p.SeedRegime
			count[name]++
			name = fmt.Sprintf("%s|%d", name, count[name])
		}
		n.names = append(n.names, name)
		n.byName[name] = p
	}
	return n
}

// withGroups adds a pair for the slowest of all ranks after those of each point
// that both runs have merged.
func withGroups(ranks []pair, a, b *benchmark.Run) []pair {
	if a.Size < 2 || b.Size < 2 {
		return ranks
	}
	ofA, ofB := groupTimes(a), groupTimes(b)
	var all []pair
	for i, p := range ranks {
		all = append(all, p)
		if p.a == nil || p.b == nil || i+1 < len(ranks) && ranks[i+1].a != nil && ranks[i+1].a.ID == p.a.ID {
			continue
		}
		if x, y := ofA[p.a.ID], ofB[p.b.ID]; x != nil && y != nil {
			all = append(all, pair{a: p.a, b: p.b, all: true, aSeconds: x, bSeconds: y})
		}
	}
	return all
}

func groupTimes(run *benchmark.Run) map[int64]*float64 {
	times := make(map[int64]*float64, len(run.Groups))
	for i := range run.Groups {
		times[run.Groups[i].ID] = &run.Groups[i].WallTime
	}
	return times
}

// fails reports whether a point is on one side only, or a ratio is over the
// limit, if there is one.
func (c *comparison) fails(failOver float64) bool {
	return slices.ContainsFunc(c.pairs, func(p pair) bool {
		ratio, both := p.ratio()
		return p.oneSided() || failOver > 0 && both && ratio > failOver
	})
}
