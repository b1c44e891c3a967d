// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"fmt"
	"strconv"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"
)

func checkStatus(_ *Checker, a *Artifact, r *report) {
	status := a.status()
	if !r.holds(status == StatusComplete || status == StatusPartial) {
		actual := strconv.Quote(status)
		if failure, ok := a.Root.Get("error").Text(); ok && status == StatusFailed {
			actual += fmt.Sprintf(" with error %q", failure)
		}
		r.violated("status", `"complete" or "partial"`, actual)
	}
}

func checkStatusEqual(c *Checker, a *Artifact, r *report) {
	if a == c.reference {
		return
	}
	if want, got := c.reference.status(), a.status(); !r.holds(got == want) {
		r.violated("status", strconv.Quote(want), strconv.Quote(got))
	}
}

func checkStatusComplete(_ *Checker, a *Artifact, r *report) {
	if a.status() != StatusComplete {
		return
	}
	root, coverage := a.Root, a.Root.Get("coverage")
	isTrue(r, root, "valid")
	if root.Get("usable").Exists() {
		isTrue(r, root, "usable")
	}
	isAbsent(r, root, "stop_reason")
	isAbsent(r, root, "error")
	noPhaseMissing(r, root)
	if coverage.Exists() {
		r.same("coverage.completed_points", coverage.Get("expected_points"), coverage.Get("completed_points"))
	}
	nonePointSkipped(r, coverage)
}

func checkStatusPartial(_ *Checker, a *Artifact, r *report) {
	if a.status() != StatusPartial {
		return
	}
	root, coverage := a.Root, a.Root.Get("coverage")
	valid, given := root.Get("valid").Bool()
	r.is(given && !valid, "valid", "false", root.Get("valid"))
	isTrue(r, root, "usable")
	r.is(oneOf(root.Get("stop_reason"), "timeout"), "stop_reason", `"timeout"`, root.Get("stop_reason"))
	isAbsent(r, root, "error")
	noPhaseMissing(r, root)
	if expected, ok := coverage.Get("expected_points").Int(); ok {
		completed, _ := coverage.Get("completed_points").Int()
		r.is(completed < expected, "coverage.completed_points", fmt.Sprintf("less than expected_points, %d", expected), coverage.Get("completed_points"))
	}
	nonePointSkipped(r, coverage)
}

func isTrue(r *report, root document.Value, key string) {
	value, _ := root.Get(key).Bool()
	r.is(value, key, "true", root.Get(key))
}

func isAbsent(r *report, root document.Value, key string) {
	r.is(!root.Get(key).Given(), key, "null", root.Get(key))
}

func noPhaseMissing(r *report, root document.Value) {
	phases := root.Get("missing_phases")
	r.is(!phases.Index(0).Exists(), "missing_phases", "none", phases)
}

func nonePointSkipped(r *report, coverage document.Value) {
	if skipped := coverage.Get("skipped_points"); skipped.Exists() {
		r.number("coverage.skipped_points", 0, skipped)
	}
}

func checkStopReasonEqual(c *Checker, a *Artifact, r *report) {
	if a == c.reference {
		return
	}
	want, got := c.reference.Root.Get("stop_reason"), a.Root.Get("stop_reason")
	if want.Given() || got.Given() { // null is as good as absent
		r.same("stop_reason", want, got)
	} else {
		r.holds(true)
	}
}

func checkCoverage(_ *Checker, a *Artifact, r *report) {
	if a.Kind != Rank {
		return
	}
	coverage := a.Root.Get("coverage")
	var counts [3]int64
	for i, key := range [...]string{"expected_points", "completed_points", "skipped_points"} {
		value := coverage.Get(key)
		counts[i], _ = value.Int()
		if !r.holds(atLeast(value, 0)) {
			r.violated("coverage."+key, "a number of points", value.Short())
			return
		}
	}
	expected, completed, skippedPoints := counts[0], counts[1], counts[2]
	if !r.holds(completed <= expected && skippedPoints <= expected-completed) {
		r.violated("coverage.completed_points", fmt.Sprintf("at most %d with %d skipped", expected, skippedPoints), strconv.FormatInt(completed, 10))
	}
	for _, list := range []struct {
		key      string
		count    int64
		optional bool
	}{{"results", completed, false}, {"iteration_groups", completed, a.SchemaVersion == 1}, {"skipped_points", skippedPoints, true}} {
		value := a.Root.Get(list.key)
		if !value.Exists() && (list.optional && list.count == 0 || skipped(a, list.key)) {
			continue
		}
		if got := value.Len(); !r.holds(value.Kind() == document.Array && int64(got) == list.count) {
			r.violated(list.key, fmt.Sprintf("a list of %d, as coverage says", list.count), lengthOf(value))
		}
	}
}

func lengthOf(value document.Value) string {
	if value.Kind() != document.Array {
		return value.Short()
	}
	return fmt.Sprintf("a list of %d", value.Len())
}

func checkCoverageEqual(c *Checker, a *Artifact, r *report) {
	if a != c.reference && a.Kind == Rank && c.reference.Kind == Rank {
		r.same("coverage", c.reference.Root.Get("coverage"), a.Root.Get("coverage"))
	}
}
