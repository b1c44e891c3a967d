// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"fmt"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"
)

const (
	measurementKey = "benchmark_measurement"
	samplesField   = measurementKey + ".raw_fpms"
)

func checkMeasurement(c *Checker, m *measured, r *report) {
	if !c.declared || !m.fpm.Exists() {
		return
	}
	if !r.holds(m.measurement.Kind() == document.Object) {
		r.violated(measurementKey, "an object", m.measurement.Short())
		return
	}
	r.number(measurementKey+".schema_version", 1, m.measurement.Get("schema_version"))
	r.number(measurementKey+".dp_rank", int64(m.rank), m.measurement.Get("dp_rank"))
}

func checkMeasurementUndeclared(c *Checker, m *measured, r *report) {
	if !c.declared && m.fpm.Exists() {
		r.is(!m.measurement.Exists(), measurementKey, "none without "+protocolKey, m.measurement)
	}
}

// hasMeasurement reports whether there is a measurement to look into.
func hasMeasurement(c *Checker, m *measured) bool {
	return c.declared && m.measurement.Kind() == document.Object
}

func checkMeasurementGrid(c *Checker, m *measured, r *report) {
	if hasMeasurement(c, m) {
		r.same(measurementKey+".preparation.grid_digest", c.reference.Root.Get("grid_digest"), m.measurement.Path("preparation", "grid_digest"))
	}
}

func checkSampleCount(c *Checker, m *measured, r *report) {
	if !hasMeasurement(c, m) {
		return
	}
	raw, expected := m.measurement.Get("raw_fpms"), m.measurement.Get("expected_internal_samples")
	most, ok := expected.Int()
	if !r.holds(ok) {
		r.violated(measurementKey+".expected_internal_samples", "a number", expected.Short())
		return
	}
	if count := int64(raw.Len()); !r.holds(raw.Kind() == document.Array && count >= 1 && count <= most) {
		r.violated(samplesField, fmt.Sprintf("a list of 1 … %d", most), lengthOf(raw))
	}
}

func checkSampleIdentity(c *Checker, m *measured, r *report) {
	if !hasMeasurement(c, m) {
		return
	}
	for i, raw := range m.measurement.Get("raw_fpms").Items() {
		r.raw = i
		r.number("counter_id", m.id, raw.Get("counter_id"))
		r.number("dp_rank", int64(m.rank), raw.Get("dp_rank"))
		r.same("worker_id", m.fpm.Get("worker_id"), raw.Get("worker_id"))
	}
}

// The reductions of raw FPMs to the one kept.
const (
	singleStep          = "single_step"
	lastStep            = "last_step"
	adjacentUpperMedian = "adjacent_upper_median"
)

// selection gives the indices of the raw FPMs that an FPM is made of; ok when
// they ascend and are all there.
func selection(measurement document.Value, count int) (indices []int, ok bool) {
	list := measurement.Path("estimate", "raw_sample_indices")
	last := int64(-1)
	for _, item := range list.Items() {
		index, isNumber := item.Int()
		if !isNumber || index <= last || index >= int64(count) {
			return nil, false
		}
		last = index
		indices = append(indices, int(index))
	}
	return indices, len(indices) > 0
}

func checkEstimateIndices(c *Checker, m *measured, r *report) {
	if !hasMeasurement(c, m) {
		return
	}
	const field = measurementKey + ".estimate"
	count := m.measurement.Get("raw_fpms").Len()
	indices, ok := selection(m.measurement, count)
	value := m.measurement.Path("estimate", "raw_sample_indices")
	if !r.holds(ok) {
		r.violated(field+".raw_sample_indices", fmt.Sprintf("indices below %d that ascend", count), value.Short())
		return
	}
	method, _ := m.measurement.Path("estimate", "method").Text()
	switch method {
	case singleStep:
		ok = count == 1
	case lastStep:
		ok = len(indices) == 1 && indices[0] == count-1
	case adjacentUpperMedian:
		ok = indices[0] == 1 && len(indices) == count-1
	default:
		r.violated(field+".method", fmt.Sprintf("%q, %q or %q", singleStep, lastStep, adjacentUpperMedian), m.measurement.Path("estimate", "method").Short())
		return
	}
	if !ok {
		r.violated(field+".raw_sample_indices", fmt.Sprintf("those of %s among %d raw FPMs", method, count), value.Short())
	}
}

// checkEstimateValue finds points whose duration is not that of their samples.
func checkEstimateValue(c *Checker, m *measured, r *report) {
	if !hasMeasurement(c, m) {
		return
	}
	seconds, ok := selectedSeconds(m.measurement)
	if !ok {
		return // the rule estimate_indices says so
	}
	want := upperMedian(seconds)
	got, ok := m.fpm.Get("wall_time").Float()
	r.is(ok && isClose(got, want, relTolerance, absTolerance), "fpms.wall_time", formatSeconds(want)+", the upper median of the raw FPMs", m.fpm.Get("wall_time"))
}

// selected are the raw FPMs that an FPM is made of; ok is false when the
// estimate does not name them right.
func selected(measurement document.Value) (raws []document.Value, ok bool) {
	all := measurement.Get("raw_fpms")
	indices, ok := selection(measurement, all.Len())
	if !ok {
		return nil, false
	}
	for i, raw := range all.Items() {
		if len(indices) > 0 && indices[0] == i {
			raws = append(raws, raw)
			indices = indices[1:]
		}
	}
	return raws, true
}

// selectedSeconds are the wall times of selected; ok when all have one.
func selectedSeconds(measurement document.Value) (seconds []float64, ok bool) {
	raws, ok := selected(measurement)
	for _, raw := range raws {
		value, isNumber := raw.Get("wall_time").Float()
		ok = ok && isNumber
		seconds = append(seconds, value)
	}
	return seconds, ok
}
