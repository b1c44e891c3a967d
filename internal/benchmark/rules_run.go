// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"fmt"
	"strconv"
)

// skipped reports whether a key is absent from a file of schema version 1,
// which did not have it yet: no evidence is no contradiction.
func skipped(a *Artifact, key string) bool {
	return a.SchemaVersion == 1 && !a.Root.Get(key).Exists()
}

// checkText demands a text under key, the same in all files.
func checkText(c *Checker, a *Artifact, r *report, key string) {
	value := a.Root.Get(key)
	if skipped(a, key) {
		return
	}
	if !r.holds(isText(value)) {
		r.violated(key, "a text that is not empty", value.Short())
		return
	}
	if first := c.reference.Root.Get(key); isText(first) {
		r.same(key, first, value)
	}
}

func checkRunID(c *Checker, a *Artifact, r *report)      { checkText(c, a, r, "run_id") }
func checkGridDigest(c *Checker, a *Artifact, r *report) { checkText(c, a, r, "grid_digest") }

func checkDPSize(c *Checker, a *Artifact, r *report) {
	if skipped(a, "dp") {
		return
	}
	field := "dp.size"
	value := a.Root.Path("dp", "size")
	if a.Kind == Merged {
		field, value = "dp.global_size", a.Root.Path("dp", "global_size")
	}
	switch {
	case a.Size == 0:
		r.is(false, field, "a number of ranks, 1 or more", value)
	case c.reference.Size > 0:
		if !r.holds(a.Size == c.reference.Size) {
			r.violated(field, strconv.Itoa(c.reference.Size), strconv.Itoa(a.Size))
		}
	default:
		r.holds(true)
	}
}

func checkDPRank(c *Checker, a *Artifact, r *report) {
	if a.Kind != Rank || skipped(a, "dp") {
		return
	}
	value := a.Root.Path("dp", "rank")
	if !r.holds(a.Rank != NoRank && (a.Size == 0 || a.Rank < a.Size)) {
		r.violated("dp.rank", fmt.Sprintf("a rank below %d", max(a.Size, 1)), value.Short())
		return
	}
	for _, other := range c.files[:len(c.files)-1] {
		if !r.holds(other.Kind != Rank || other.Rank != a.Rank) {
			r.violated("dp.rank", "a rank that no other file has", fmt.Sprintf("%d, as in %s", a.Rank, other.Name))
			return
		}
	}
}

func checkRanksPresent(c *Checker, r *report) {
	size, merged := c.reference.Size, false
	have := make(map[int]bool, len(c.files))
	for _, file := range c.files {
		merged = merged || file.Kind == Merged
		if file.Rank < size {
			have[file.Rank] = true
		}
	}
	delete(have, NoRank)
	if merged {
		return
	}
	missing := make([]int, 0, maxViolations)
	for rank := 0; rank < size && len(missing) < maxViolations; rank++ {
		if !have[rank] {
			missing = append(missing, rank)
		}
	}
	r.ranks = missing
	if !r.holds(len(have) == size) {
		r.violated("dp.size", fmt.Sprintf("files of %d ranks", size), fmt.Sprintf("%d, without rank %s%s", len(have), joinRanks(missing), more(size-len(have)-len(missing))))
	}
}

func more(count int) string {
	if count <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", count)
}
