// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"fmt"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"
)

func checkTimingValues(_ *Checker, a *Artifact, r *report) {
	if skipped(a, "timing") {
		return
	}
	timing := a.Root.Get("timing")
	for _, key := range []string{"started_at", "completed_at"} {
		// Whether it is a time that can be read is no rule of the merger.
		r.is(isText(timing.Get(key)), "timing."+key, "a time", timing.Get(key))
	}
	for _, key := range []string{"benchmark_elapsed_seconds", "measured_iteration_seconds"} {
		seconds, ok := timing.Get(key).Float()
		r.is(ok && seconds >= 0, "timing."+key, "seconds, not negative", timing.Get(key))
	}
}

// durations are the two of timing; ok when both are numbers.
func durations(a *Artifact) (elapsed, measured float64, ok bool) {
	timing := a.Root.Get("timing")
	elapsed, hasElapsed := timing.Get("benchmark_elapsed_seconds").Float()
	measured, hasMeasured := timing.Get("measured_iteration_seconds").Float()
	return elapsed, measured, hasElapsed && hasMeasured
}

func checkTimingOrder(_ *Checker, a *Artifact, r *report) {
	if elapsed, measured, ok := durations(a); ok && !r.holds(measured <= elapsed+absTolerance) {
		r.violated("timing.measured_iteration_seconds", fmt.Sprintf("at most %s, the time elapsed", formatSeconds(elapsed)), formatSeconds(measured))
	}
}

func checkTimingSum(c *Checker, a *Artifact, r *report) {
	_, measured, ok := durations(a)
	if !ok || !c.reference.hasGroups() {
		return
	}
	if !r.holds(isClose(measured, c.measured, relTolerance, absTolerance)) {
		r.violated("timing.measured_iteration_seconds", formatSeconds(c.measured)+", the sum of the groups", formatSeconds(measured))
	}
}

// sumOfGroups adds up the wall times of the groups.
func sumOfGroups(a *Artifact) float64 {
	sum := 0.0
	for _, group := range a.groups().Items() {
		seconds, _ := group.Get("wall_time").Float()
		sum += seconds
	}
	return sum
}

func checkMergedTiming(_ *Checker, a *Artifact, r *report) {
	if a.Kind != Merged {
		return
	}
	timing := a.Root.Get("timing")
	byRank := timing.Get("rank_benchmark_elapsed_seconds")
	largest, count := 0.0, 0
	for _, value := range byRank.Members() {
		if seconds, ok := value.Float(); ok {
			largest = max(largest, seconds)
		}
		count++
	}
	if !r.holds(byRank.Kind() == document.Object && count > 0) {
		r.violated("timing.rank_benchmark_elapsed_seconds", "seconds for each rank", byRank.Short())
		return
	}
	elapsed, ok := timing.Get("benchmark_elapsed_seconds").Float()
	r.is(ok && elapsed == largest, "timing.benchmark_elapsed_seconds", formatSeconds(largest)+", the largest of the ranks", timing.Get("benchmark_elapsed_seconds"))
}
