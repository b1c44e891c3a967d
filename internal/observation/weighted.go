// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observation

import (
	"slices"

	"github.com/lightstep/go-expohisto/structure"
)

// weighted returns the common part of the delta point of one value that was observed weight times, weight above 0.
// The weight multiplies the count, never the value. A value × weight that is not finite gives a Rejection.
func weighted(value float64, weight uint64) (Distribution, *Rejection) {
	if value == 0 {
		value = 0 // also of -0.0
	}
	d := Distribution{Count: weight, Min: value, Max: value, HasMin: true, HasMax: true}
	if !finite(value) {
		return d, reject(NotFinite, "value", value, "a finite number")
	}
	if value >= 0 {
		d.Sum, d.HasSum = value*float64(weight), true
	}
	if !finite(d.Sum) {
		return d, reject(NotFinite, "value × weight", d.Sum, "a finite number")
	}
	return d, nil
}

// WeightedHistogram returns the delta point of one value that was observed weight times, in explicit buckets. Bounds
// are kept in the point. Start and Time are the caller's to set.
func WeightedHistogram(value float64, weight uint64, bounds []float64) (HistogramPoint, *Rejection) {
	d, r := weighted(value, weight)
	if r != nil {
		return HistogramPoint{}, r
	}
	p := HistogramPoint{Distribution: d, Bounds: bounds, Buckets: make([]uint64, len(bounds)+1)}
	i, _ := slices.BinarySearch(bounds, value)
	p.Buckets[i] = weight
	return p, nil
}

// WeightedExponential returns the delta point of one value that was observed weight times, in the one exponential
// bucket of MaxScale. Start and Time are the caller's to set.
func WeightedExponential(value float64, weight uint64) (ExponentialPoint, *Rejection) {
	d, r := weighted(value, weight)
	if r != nil {
		return ExponentialPoint{}, r
	}
	var h structure.Float64
	h.Init(structure.NewConfig())
	h.UpdateByIncr(value, weight)
	return ExponentialPoint{
		Distribution: d, Scale: MaxScale, ZeroCount: h.ZeroCount(),
		Positive: bucketsOf(h.Positive()), Negative: bucketsOf(h.Negative()),
	}, nil
}

func bucketsOf(from *structure.Buckets) Buckets {
	b := Buckets{Offset: from.Offset(), Counts: make([]uint64, from.Len())}
	for i := range b.Counts {
		b.Counts[i] = from.At(uint32(i))
	}
	return b
}
