// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"fmt"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"
)

func checkOneFPM(_ *Checker, m *measured, r *report) {
	if !r.holds(m.fpms.Kind() == document.Array && m.fpms.Len() == 1) {
		r.violated("fpms", "a list of 1", lengthOf(m.fpms))
	}
}

func checkFPMCounterID(_ *Checker, m *measured, r *report) {
	if m.fpm.Exists() && (!m.older || m.point.Get("benchmark_id").Exists()) {
		r.number("fpms.counter_id", m.id, m.fpm.Get("counter_id"))
	}
}

func checkFPMDPRank(_ *Checker, m *measured, r *report) {
	if rank := m.fpm.Get("dp_rank"); m.fpm.Exists() && (!m.older || rank.Exists()) {
		r.number("fpms.dp_rank", int64(m.rank), rank)
	}
}

func checkFPMWallTime(_ *Checker, m *measured, r *report) {
	if m.fpm.Exists() {
		seconds, ok := m.fpm.Get("wall_time").Float()
		r.is(ok && seconds >= 0, "fpms.wall_time", "seconds, not negative", m.fpm.Get("wall_time"))
	}
}

// checkPrefillKVTokens finds points that the prefix cache took part in unasked.
// Points of schema version 1 have no totals.
func checkPrefillKVTokens(_ *Checker, m *measured, r *report) {
	scheduled := m.fpm.Path("scheduled_requests", "sum_prefill_kv_tokens")
	want := m.point.Get("total_kv_read_tokens")
	if oneOf(m.point.Get("point_type"), PrefillPoint) && scheduled.Exists() && want.Exists() {
		r.same("fpms.scheduled_requests.sum_prefill_kv_tokens", want, scheduled)
	}
}

// checkResultIDs compares the ids of a rank's results with those of the groups.
func checkResultIDs(c *Checker, a *Artifact, r *report) {
	if a.Kind != Rank || !c.reference.hasGroups() {
		return
	}
	seen := make(map[int64]bool, len(c.groups))
	for m := range resultsOf(a) {
		r.id = m.id
		switch _, known := c.groups[m.id]; {
		case !r.holds(known):
			r.violated("results.point.benchmark_id", "an id of the groups", m.point.Get("benchmark_id").Short())
		case seen[m.id]:
			r.violated("results.point.benchmark_id", "each id once", fmt.Sprintf("%d again", m.id))
		}
		seen[m.id] = true
	}
	for group := range groupsOf(c.reference) {
		if r.id = group.id; !r.holds(seen[group.id]) {
			r.violated("results.point.benchmark_id", "the ids of the groups", fmt.Sprintf("no %d", group.id))
		}
	}
}

// eachWithGroup calls check for each of a rank's results and the group of the
// same id, where there is one.
func (c *Checker) eachWithGroup(a *Artifact, r *report, check func(m *measured, group document.Value)) {
	if a.Kind != Rank {
		return
	}
	seen := make(map[int64]bool, len(c.groups))
	for m := range resultsOf(a) {
		if group, known := c.groups[m.id]; known && !seen[m.id] {
			r.id = m.id
			check(m, group)
		}
		seen[m.id] = true
	}
}

func checkResultPoint(c *Checker, a *Artifact, r *report) {
	c.eachWithGroup(a, r, func(m *measured, group document.Value) {
		if want := group.Get("point"); !r.holds(document.Equal(want, m.point)) {
			first := Differences("results.point", want, m.point, nil)[0]
			r.violated(first.Field, first.A, first.B)
		}
	})
}

func checkResultFPM(c *Checker, a *Artifact, r *report) {
	if a.Rank == NoRank {
		return // the rule dp_rank says so
	}
	c.eachWithGroup(a, r, func(m *measured, group document.Value) {
		want := group.Get("rank_results").Index(a.Rank).Get("fpms")
		if r.holds(document.Equal(want, m.fpms)) {
			return
		}
		if want.Len() != m.fpms.Len() || want.Len() == 0 {
			r.violated("results.fpms", lengthOf(want), lengthOf(m.fpms))
			return
		}
		first := Differences("results.fpms", want.Index(0), m.fpm, nil)
		if len(first) == 0 {
			first = []Difference{{Field: "results.fpms", A: want.Short(), B: m.fpms.Short()}}
		}
		r.violated(first[0].Field, first[0].A, first[0].B)
	})
}
