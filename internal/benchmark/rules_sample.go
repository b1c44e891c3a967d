// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"fmt"
	"iter"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"
)

const sampleKey = "benchmark_sample"

// samples are the raw FPMs with their benchmark_sample, when the run declared
// that they have one.
func (c *Checker) samples(m *measured) iter.Seq2[int, sample] {
	return func(yield func(int, sample) bool) {
		if !c.contract || !hasMeasurement(c, m) {
			return
		}
		for i, raw := range m.measurement.Get("raw_fpms").Items() {
			if !yield(i, sample{raw: raw, sample: raw.Get(sampleKey)}) {
				return
			}
		}
	}
}

type sample struct{ raw, sample document.Value }

func checkSampleUndeclared(c *Checker, m *measured, r *report) {
	if c.contract {
		return
	}
	for i, raw := range m.measurement.Get("raw_fpms").Items() {
		r.raw = i
		r.is(!raw.Get(sampleKey).Exists(), sampleKey, "none without "+executionKey, raw.Get(sampleKey))
	}
}

func checkSampleRetained(c *Checker, m *measured, r *report) {
	if c.contract && hasMeasurement(c, m) {
		r.is(!m.fpm.Get(sampleKey).Exists(), "fpms."+sampleKey, "none", m.fpm.Get(sampleKey))
	}
}

func checkSampleIndex(c *Checker, m *measured, r *report) {
	for i, s := range c.samples(m) {
		r.raw = i
		r.number(sampleKey+".sample_index", int64(i), s.sample.Get("sample_index"))
	}
}

// checkForwardIndex compares within one rank: the indices of two ranks mean
// nothing to each other.
func checkForwardIndex(c *Checker, m *measured, r *report) {
	for i, s := range c.samples(m) {
		r.raw = i
		least := c.forwards[m.rank] // the index after the last one, 0 at first
		value := s.sample.Get("forward_index")
		if !r.holds(atLeast(value, least)) {
			r.violated(sampleKey+".forward_index", fmt.Sprintf("%d or more", least), value.Short())
		}
		if index, ok := value.Int(); ok {
			c.forwards[m.rank] = index + 1
		}
	}
}

func checkSampleTiming(c *Checker, m *measured, r *report) {
	for i, s := range c.samples(m) {
		r.raw = i
		timing := s.sample.Get("timing")
		r.is(oneOf(timing.Get("basis"), "schedule_to_output", "inter_output"), sampleKey+".timing.basis",
			`"schedule_to_output" or "inter_output"`, timing.Get("basis"))
		end, hasEnd := timing.Get("end_monotonic").Float()
		r.is(hasEnd, sampleKey+".timing.end_monotonic", "seconds", timing.Get("end_monotonic"))
		wall, hasWall := s.raw.Get("wall_time").Float()
		r.is(hasWall && wall >= 0, "wall_time", "seconds, not negative", s.raw.Get("wall_time"))
		if !timing.Get("start_monotonic").Given() || !hasEnd || !hasWall {
			continue // an unknown start is nothing to compare with
		}
		start, hasStart := timing.Get("start_monotonic").Float()
		if !r.holds(hasStart && start <= end) {
			r.violated(sampleKey+".timing.start_monotonic", formatSeconds(end)+" at most, the end", timing.Get("start_monotonic").Short())
		} else if !r.holds(isClose(end-start, wall, relTolerance, relTolerance)) {
			r.violated("wall_time", formatSeconds(end-start)+", end − start", s.raw.Get("wall_time").Short())
		}
	}
}

// What the runtime can say of a dispatch.
const (
	graphObserved    = "observed"
	graphUnavailable = "unavailable"
)

func checkSampleCudagraph(c *Checker, m *measured, r *report) {
	for i, s := range c.samples(m) {
		r.raw = i
		const field = sampleKey + ".cudagraph."
		graph := s.sample.Get("cudagraph")
		status := graph.Get("status")
		mode, unpadded, padded := graph.Get("runtime_mode"), graph.Get("num_unpadded_tokens"), graph.Get("num_padded_tokens")
		paddings := graph.Get("num_paddings")
		switch {
		case oneOf(status, graphUnavailable):
			const want = "null, as it is unavailable"
			r.is(!mode.Given(), field+"runtime_mode", want, mode)
			r.is(!unpadded.Given(), field+"num_unpadded_tokens", want, unpadded)
			r.is(!padded.Given(), field+"num_padded_tokens", want, padded)
			r.is(!paddings.Given(), field+"num_paddings", want, paddings)
		case !r.holds(oneOf(status, graphObserved)):
			r.violated(field+"status", fmt.Sprintf("%q or %q", graphObserved, graphUnavailable), status.Short())
		default:
			r.is(isText(mode), field+"runtime_mode", "a mode", mode)
			r.is(atLeast(unpadded, 0), field+"num_unpadded_tokens", "a number of tokens", unpadded)
			least, _ := unpadded.Int()
			all, _ := padded.Int()
			if !r.holds(atLeast(padded, least)) {
				r.violated(field+"num_padded_tokens", fmt.Sprintf("%d tokens or more", least), padded.Short())
			} else {
				r.number(field+"num_paddings", all-least, paddings)
			}
		}
	}
}
