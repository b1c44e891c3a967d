// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"
)

func checkMergedDP(_ *Checker, a *Artifact, r *report) {
	if a.Kind != Merged {
		return
	}
	dp := a.Root.Get("dp")
	r.is(isRange(dp.Get("ranks"), a.Size), "dp.ranks", rangeText(a.Size), dp.Get("ranks"))
	sources := dp.Get("source_ranks")
	last := int64(NoRank)
	for _, source := range sources.Items() {
		rank, ok := source.Int()
		if !r.holds(ok && rank > last && rank < int64(a.Size)) {
			r.violated("dp.source_ranks", "ranks that ascend", sources.Short())
			return
		}
		last = rank
	}
	managed := int64(sources.Len())
	r.is(managed > 0, "dp.source_ranks", "a list that is not empty", sources)
	r.number("dp.managed_size", managed, dp.Get("managed_size"))
	if files := a.Root.Get("rank_files"); !r.holds(int64(files.Len()) == managed) {
		r.violated("rank_files", fmt.Sprintf("a list of %d, as dp.source_ranks", managed), lengthOf(files))
	}
}

func checkMergedCoverage(c *Checker, a *Artifact, r *report) {
	if a.Kind != Merged {
		return
	}
	size := int64(a.Size)
	merged := a.Root.Get("coverage")
	for _, key := range [...]string{"expected_points", "completed_points", "skipped_points"} {
		value := merged.Get(key)
		count, ok := value.Int()
		switch ofRank, known := c.reference.Root.Path("coverage", key).Int(); {
		case c.reference.Kind == Rank && known:
			if ofRank > 0 && size > maxPoints/ofRank {
				r.violated("coverage."+key, fmt.Sprintf("at most %d", maxPoints), value.Short())
				continue
			}
			r.number("coverage."+key, ofRank*size, value)
		case key == "completed_points" && a.hasGroups():
			r.number("coverage."+key, int64(a.groups().Len())*size, value)
		default:
			r.is(ok && size > 0 && count >= 0 && count%size == 0, "coverage."+key, fmt.Sprintf("a multiple of %d", size), value)
		}
	}
}

// maxPoints bounds the points of a run, so that products do not overflow.
const maxPoints = int64(1) << 40

func checkMergedResults(_ *Checker, a *Artifact, r *report) {
	if a.Kind != Merged || !a.hasGroups() {
		return
	}
	next, stop := iter.Pull(resultsOf(a))
	defer stop()
	// The merger sorts the results, not the groups.
	groups := slices.SortedStableFunc(groupsOf(a), func(a, b *group) int { return cmp.Compare(a.id, b.id) })
	for _, group := range groups {
		for want := range group.ranks() {
			r.id, r.ranks = group.id, []int{want.rank}
			got, more := next()
			if !r.holds(more) {
				r.violated("results", "a result for each rank of each group", lengthOf(a.Root.Get("results")))
				return
			}
			if !r.holds(got.rank == want.rank) {
				r.violated("results.point.dp_rank", strconv.Itoa(want.rank), got.point.Get("dp_rank").Short())
				return
			}
			differences := Differences("results.point", want.point, got.point, func(field string) bool { return field == "results.point.dp_rank" })
			if !r.holds(len(differences) == 0) {
				r.violated(differences[0].Field, differences[0].A, differences[0].B)
				return
			}
			if !r.holds(document.Equal(want.fpms, got.fpms)) {
				r.violated("results.fpms", want.fpms.Short(), got.fpms.Short())
				return
			}
		}
	}
	if extra, more := next(); !r.holds(!more) {
		r.id, r.ranks = extra.id, []int{extra.rank}
		r.violated("results", "a result for each rank of each group", lengthOf(a.Root.Get("results")))
	}
}

func checkMergedEngine(_ *Checker, a *Artifact, r *report) {
	if parallel := a.Root.Path("engine", "parallel"); a.Kind == Merged && parallel.Kind() == document.Object {
		rank := parallel.Get("data_parallel_rank")
		r.is(!rank.Given(), "engine.parallel.data_parallel_rank", "null", rank)
	}
}
