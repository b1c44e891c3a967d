// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"math"
	"sort"

	"github.com/lightstep/go-expohisto/mapping"
	"github.com/lightstep/go-expohisto/mapping/exponent"
	"github.com/lightstep/go-expohisto/mapping/logarithm"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// HistogramForm is how durations are put into buckets: by explicit bounds, or
// exponentially. It never changes and may be shared.
type HistogramForm struct {
	bounds []float64
	// zeros are the bucket counts that a point starts with.
	zeros []uint64
	// index maps values to exponential buckets; nil with explicit bounds.
	index mapping.Mapping
	// size is how many buckets a point has at most.
	size int64
}

// ExplicitForm uses explicit upper bounds in seconds, inclusive, strictly
// increasing. The slice is kept.
func ExplicitForm(bounds []float64) *HistogramForm {
	return &HistogramForm{bounds: bounds, zeros: make([]uint64, len(bounds)+1), size: int64(len(bounds)) + 1}
}

// ExponentialForm uses exponential histograms of the scale at which maxSize
// buckets are enough for durations whose largest is 10⁵ times the smallest (1 ms
// to 100 s). 160 gives scale 3: buckets 9 % wide.
//
// An observation alone needs one bucket at any scale. The scale matters to what
// adds observations up: not every component downscales, and one that does not
// would span the distance between two observations of the finest scale with
// millions of buckets.
func ExponentialForm(maxSize int32) *HistogramForm {
	return &HistogramForm{index: mappingOf(scaleFor(maxSize)), size: int64(maxSize)}
}

// Scales that an ExponentialForm may have: the coarsest that Prometheus knows,
// and the finest whose indexes fit pdata for every float64.
const (
	minScale = -4
	maxScale = logarithm.MaxScale
)

// contrast is the ratio of durations that an ExponentialForm is made for.
const contrast = 1e5

func scaleFor(maxSize int32) int32 {
	scale := maxScale
	for scale > minScale {
		// Values that far apart touch one bucket more than lie between them.
		touched := math.Ceil(math.Ldexp(math.Log2(contrast), int(scale))) + 1
		if touched <= float64(maxSize) {
			break
		}
		scale--
	}
	return scale
}

func mappingOf(scale int32) mapping.Mapping {
	var (
		index mapping.Mapping
		err   error
	)
	if scale > 0 {
		index, err = logarithm.NewMapping(scale)
	} else {
		index, err = exponent.NewMapping(scale)
	}
	if err != nil {
		panic(err) // cannot be: minScale…maxScale are within the library's range
	}
	return index
}

func (f *HistogramForm) prepare(dst pmetric.Metric, points int) {
	if f.index != nil {
		histogram := dst.SetEmptyExponentialHistogram()
		histogram.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		histogram.DataPoints().EnsureCapacity(points)
		return
	}
	histogram := dst.SetEmptyHistogram()
	histogram.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	histogram.DataPoints().EnsureCapacity(points)
}

// oneDuration puts a duration, above 0, into its bucket, once.
func (f *HistogramForm) oneDuration(value float64, at pcommon.Timestamp) oneDuration {
	one := oneDuration{value: value, weight: 1, sum: value, time: at}
	if f.index != nil {
		one.bucket = int64(f.index.MapToIndex(value))
	} else {
		one.bucket = int64(sort.SearchFloat64s(f.bounds, value))
	}
	return one
}

// appendPoint adds a point of what was observed since start.
func (f *HistogramForm) appendPoint(dst pmetric.Metric, d *durations, attributes RankAttributes, start pcommon.Timestamp) {
	if f.index != nil {
		point := dst.ExponentialHistogram().DataPoints().AppendEmpty()
		summarize(point, d, attributes, start)
		point.SetScale(f.index.Scale())
		point.Positive().SetOffset(int32(d.first))
		point.Positive().BucketCounts().FromRaw(d.counts)
		return
	}
	point := dst.Histogram().DataPoints().AppendEmpty()
	summarize(point, d, attributes, start)
	point.ExplicitBounds().FromRaw(f.bounds)
	point.BucketCounts().FromRaw(f.zeros)
	for i, count := range d.counts {
		point.BucketCounts().SetAt(int(d.first)+i, count)
	}
}

// summarize sets all but the buckets.
func summarize[P histogramPoint](point P, d *durations, attributes RankAttributes, start pcommon.Timestamp) {
	point.SetStartTimestamp(start)
	point.SetTimestamp(d.last)
	attributes.Put(point.Attributes())
	point.SetCount(d.count)
	point.SetSum(d.sum.Value())
	point.SetMin(d.min)
	point.SetMax(d.max)
}

// histogramPoint is what points of both forms have in common.
type histogramPoint interface {
	SetStartTimestamp(start pcommon.Timestamp)
	SetTimestamp(at pcommon.Timestamp)
	Attributes() pcommon.Map
	SetCount(count uint64)
	SetSum(sum float64)
	SetMin(low float64)
	SetMax(high float64)
}
