// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"fmt"
	"iter"
	"strconv"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"
)

// group is one iteration group: one point, measured by all ranks at once.
type group struct {
	value document.Value
	id    int64
}

// measured is what one rank measured at one point.
type measured struct {
	id   int64
	rank int
	// older: the file is of schema version 1, so that what is absent was not
	// known yet, and id may be the position.
	older bool
	// point and fpms are those of the group, or of the rank's own result.
	point, fpms document.Value
	// fpm is the first of fpms, measurement its benchmark_measurement.
	fpm, measurement document.Value
	// regime is kv_seed_regime; only results of a rank have it.
	regime string
}

func newMeasured(id int64, rank int, point, fpms document.Value) *measured {
	fpm := fpms.Index(0)
	return &measured{id: id, rank: rank, point: point, fpms: fpms, fpm: fpm, measurement: fpm.Get(measurementKey)}
}

// ranks are the results of the ranks in a group.
func (g *group) ranks() iter.Seq[*measured] {
	return func(yield func(*measured) bool) {
		for _, result := range g.value.Get("rank_results").Items() {
			if !yield(newMeasured(g.id, rankOf(result.Get("dp_rank")), g.value.Get("point"), result.Get("fpms"))) {
				return
			}
		}
	}
}

// groupsOf are the iteration groups of a file.
func groupsOf(a *Artifact) iter.Seq[*group] {
	return func(yield func(*group) bool) {
		for _, value := range a.groups().Items() {
			id, _ := value.Get("benchmark_id").Int()
			if !yield(&group{value: value, id: id}) {
				return
			}
		}
	}
}

// resultsOf are the results of a file: a rank's own, or all ranks' of a merged
// file.
func resultsOf(a *Artifact) iter.Seq[*measured] {
	return func(yield func(*measured) bool) {
		for i, result := range a.Root.Get("results").Items() {
			point := result.Get("point")
			rank := a.Rank
			if a.Kind == Merged {
				rank = rankOf(point.Get("dp_rank"))
			}
			id, named := point.Get("benchmark_id").Int()
			if !named && a.SchemaVersion == 1 {
				id = int64(i) + 1
			}
			m := newMeasured(id, rank, point, result.Get("fpms"))
			m.older = a.SchemaVersion == 1
			m.regime, _ = result.Get("kv_seed_regime").Text()
			if !yield(m) {
				return
			}
		}
	}
}

func checkGroupsPresent(_ *Checker, a *Artifact, r *report) {
	if !skipped(a, "iteration_groups") {
		r.is(a.hasGroups(), "iteration_groups", "a list that is not empty", a.groups())
	}
}

func checkGroupsEqual(c *Checker, a *Artifact, r *report) {
	if a == c.reference || skipped(a, "iteration_groups") || document.Equal(c.reference.groups(), a.groups()) {
		if a != c.reference {
			r.holds(true)
		}
		return
	}
	r.holds(false)
	want, got := c.reference.groups(), a.groups()
	if count := want.Len(); count != got.Len() || count == 0 {
		r.violated("iteration_groups", lengthOf(want), lengthOf(got))
		return
	}
	next, stop := iter.Pull2(got.Items())
	defer stop()
	for i, group := range want.Items() {
		_, other, _ := next()
		if document.Equal(group, other) {
			continue
		}
		r.id, _ = group.Get("benchmark_id").Int()
		field := fmt.Sprintf("iteration_groups.%d", i)
		differences := Differences(field, group, other, nil)
		r.violated(differences[0].Field, differences[0].A, differences[0].B)
		return
	}
}

func checkBenchmarkIDs(c *Checker, r *report) {
	if !c.reference.hasGroups() {
		return
	}
	r.file = c.reference.File
	count := c.reference.groups().Len()
	seen := make(map[int64]bool, count)
	for group := range groupsOf(c.reference) {
		value := group.value.Get("benchmark_id")
		r.id = group.id
		switch {
		case !r.holds(atLeast(value, 1)):
			r.violated("iteration_groups.benchmark_id", "a number from 1 on", value.Short())
		case seen[group.id]:
			r.violated("iteration_groups.benchmark_id", "each id once", fmt.Sprintf("%d again", group.id))
		}
		seen[group.id] = true
	}
	for id := int64(1); id <= int64(count); id++ {
		if !seen[id] {
			r.id = id
			r.violated("iteration_groups.benchmark_id", fmt.Sprintf("1 … %d", count), fmt.Sprintf("no %d", id))
			return
		}
	}
}

func checkGroupPoint(_ *Checker, g *group, r *report) {
	r.same("iteration_groups.point.benchmark_id", g.value.Get("benchmark_id"), g.value.Path("point", "benchmark_id"))
}

func checkGroupComplete(c *Checker, g *group, r *report) {
	complete, _ := g.value.Get("complete").Bool()
	r.is(complete, "iteration_groups.complete", "true", g.value.Get("complete"))
	ranks := g.value.Get("expected_dp_ranks")
	r.is(isRange(ranks, c.reference.Size), "iteration_groups.expected_dp_ranks", rangeText(c.reference.Size), ranks)
}

func rangeText(size int) string { return fmt.Sprintf("the ranks 0 … %d", size-1) }

func checkGroupRanks(c *Checker, g *group, r *report) {
	results := g.value.Get("rank_results")
	count := 0
	for i, result := range results.Items() {
		if !r.holds(isInt(result.Get("dp_rank"), int64(i))) {
			r.violated(fmt.Sprintf("iteration_groups.rank_results.%d.dp_rank", i), strconv.Itoa(i), result.Get("dp_rank").Short())
			return
		}
		count++
	}
	if !r.holds(count == c.reference.Size) {
		r.violated("iteration_groups.rank_results", rangeText(c.reference.Size), lengthOf(results))
	}
}

func checkGroupWallTime(_ *Checker, g *group, r *report) {
	largest := 0.0
	for m := range g.ranks() {
		seconds, _ := m.fpm.Get("wall_time").Float()
		largest = max(largest, seconds)
	}
	seconds, ok := g.value.Get("wall_time").Float()
	r.is(ok && seconds == largest, "iteration_groups.wall_time", formatSeconds(largest)+", the largest of the ranks", g.value.Get("wall_time"))
}

func checkPointKey(c *Checker, g *group, r *report) {
	if !c.declared {
		return
	}
	var first document.Value
	for m := range g.ranks() {
		key := m.measurement.Get("point_key")
		if !m.measurement.Exists() {
			continue // the rule measurement says so
		}
		r.ranks = []int{m.rank}
		if !r.holds(isText(key)) {
			r.violated(measurementKey+".point_key", "a text that is not empty", key.Short())
			continue
		}
		if !first.Exists() {
			first = key
		}
		r.same(measurementKey+".point_key", first, key)
	}
}
