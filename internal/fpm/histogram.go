// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"sort"

	"github.com/lightstep/go-expohisto/structure"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// HistogramForm is how durations are put into buckets: by explicit bounds, or
// exponentially.
type HistogramForm struct {
	bounds []float64
	expo   *structure.Histogram[float64]
}

// ExplicitForm uses explicit upper bounds in seconds, inclusive, strictly
// increasing. The slice is kept.
func ExplicitForm(bounds []float64) *HistogramForm { return &HistogramForm{bounds: bounds} }

// ExponentialForm uses exponential histograms of at most maxSize buckets. The
// form reuses a buffer: it belongs to one goroutine.
func ExponentialForm(maxSize int32) *HistogramForm {
	return &HistogramForm{expo: structure.NewFloat64(structure.NewConfig(structure.WithMaxSize(maxSize)))}
}

func (f *HistogramForm) prepare(dst pmetric.Metric, points int) {
	if f.expo != nil {
		histogram := dst.SetEmptyExponentialHistogram()
		histogram.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		histogram.DataPoints().EnsureCapacity(points)
		return
	}
	histogram := dst.SetEmptyHistogram()
	histogram.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	histogram.DataPoints().EnsureCapacity(points)
}

// observe adds one observation with a weight: the weight multiplies the count
// and the sum, never the value. value is positive, weight at least 1, and their
// product finite.
func (f *HistogramForm) observe(dst pmetric.Metric, value float64, weight uint64, attributes RankAttributes, start, now pcommon.Timestamp) {
	if f.expo != nil {
		f.observeExponential(dst.ExponentialHistogram().DataPoints().AppendEmpty(), value, weight, attributes, start, now)
		return
	}
	point := dst.Histogram().DataPoints().AppendEmpty()
	point.SetStartTimestamp(start)
	point.SetTimestamp(now)
	attributes.Put(point.Attributes())
	point.SetCount(weight)
	point.SetSum(value * float64(weight))
	point.SetMin(value)
	point.SetMax(value)
	point.ExplicitBounds().FromRaw(f.bounds)
	counts := point.BucketCounts()
	counts.FromRaw(make([]uint64, len(f.bounds)+1))
	counts.SetAt(sort.SearchFloat64s(f.bounds, value), weight)
}

func (f *HistogramForm) observeExponential(point pmetric.ExponentialHistogramDataPoint, value float64, weight uint64, attributes RankAttributes, start, now pcommon.Timestamp) {
	f.expo.Clear()
	f.expo.UpdateByIncr(value, weight)

	point.SetStartTimestamp(start)
	point.SetTimestamp(now)
	attributes.Put(point.Attributes())
	point.SetCount(weight)
	point.SetSum(value * float64(weight))
	point.SetMin(value)
	point.SetMax(value)
	point.SetScale(f.expo.Scale())
	buckets := f.expo.Positive()
	point.Positive().SetOffset(buckets.Offset())
	for i := range buckets.Len() {
		point.Positive().BucketCounts().Append(buckets.At(i))
	}
}
