// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// one is a single observation.
func one(form *HistogramForm, value float64, weight uint64) *durations {
	var d durations
	o := form.oneDuration(value, began+ms).times(weight)
	d.add(&o)
	return &d
}

// bucketOf observes a value and returns the bucket it went into: its position
// with explicit bounds, its index with exponential buckets.
func bucketOf(t *testing.T, form *HistogramForm, value float64) int32 {
	metric := pmetric.NewMetric()
	form.prepare(metric, 1)
	form.appendPoint(metric, one(form, value, 3), RankAttributes{}, began)
	if metric.Type() == pmetric.MetricTypeExponentialHistogram {
		point := metric.ExponentialHistogram().DataPoints().At(0)
		assert.Equal(t, []uint64{3}, point.Positive().BucketCounts().AsRaw())
		return point.Positive().Offset()
	}
	counts := metric.Histogram().DataPoints().At(0).BucketCounts().AsRaw()
	bucket := int32(-1)
	for i, count := range counts {
		if count != 0 {
			assert.EqualValues(t, 3, count)
			assert.Equal(t, int32(-1), bucket, "more than one bucket")
			bucket = int32(i)
		}
	}
	return bucket
}

func TestExplicitBounds(t *testing.T) {
	form := ExplicitForm([]float64{0.01, 0.025, 0.05})
	for value, want := range map[float64]int32{
		math.SmallestNonzeroFloat64: 0,
		0.009:                       0,
		0.01:                        0, // an upper bound is inclusive
		math.Nextafter(0.01, 1):     1,
		0.025:                       1,
		math.Nextafter(0.025, 1):    2,
		0.05:                        2,
		math.Nextafter(0.05, 1):     3,
		math.MaxFloat64:             3,
	} {
		assert.Equal(t, want, bucketOf(t, form, value), "%v", value)
	}
	assert.EqualValues(t, 0, bucketOf(t, ExplicitForm(nil), 0.02))
}

// Points share neither bounds nor counts with the form or each other.
func TestExplicitFormIsNotShared(t *testing.T) {
	form := ExplicitForm([]float64{0.01})
	metric := pmetric.NewMetric()
	form.prepare(metric, 2)
	form.appendPoint(metric, one(form, 0.001, 1), RankAttributes{}, began)
	point := metric.Histogram().DataPoints().At(0)
	point.ExplicitBounds().SetAt(0, 9)
	point.BucketCounts().SetAt(1, 9)
	form.appendPoint(metric, one(form, 0.001, 1), RankAttributes{}, began)
	assert.Equal(t, []float64{0.01}, metric.Histogram().DataPoints().At(1).ExplicitBounds().AsRaw())
	assert.Equal(t, []uint64{1, 0}, metric.Histogram().DataPoints().At(1).BucketCounts().AsRaw())
}

// Bucket i of scale s is (2^(i/2^s), 2^((i+1)/2^s)]: a power of two is the
// upper bound of its bucket.
func TestExponentialPowersOfTwo(t *testing.T) {
	for _, maxSize := range []int32{2, 9, 40, 160, 5120} {
		form := ExponentialForm(maxSize)
		scale := int(form.index.Scale())
		t.Run(fmt.Sprintf("scale %d", scale), func(t *testing.T) {
			for exponent := -1021; exponent <= 1023; exponent++ {
				value := math.Ldexp(1, exponent)
				upper := int32(math.Ceil(math.Ldexp(float64(exponent), scale))) - 1
				assert.Equal(t, upper, bucketOf(t, form, value), "2^%d", exponent)
				above := int32(math.Floor(math.Ldexp(float64(exponent), scale)))
				assert.Equal(t, above, bucketOf(t, form, value*1.0001), "above 2^%d", exponent)
			}
		})
	}
}

func TestExponentialScale(t *testing.T) {
	for maxSize, want := range map[int32]int32{
		1: -4, 2: -4, 3: -4, 9: -2, 10: -1, 17: -1, 18: 0, 34: 0, 35: 1, 133: 2, 134: 3, 160: 3, 320: 4, 5120: 8, math.MaxInt32: 20,
	} {
		assert.Equal(t, want, scaleFor(maxSize), "max_size %d", maxSize)
	}
}

// Durations whose largest is 100,000 times the smallest span at most maxSize
// buckets.
func TestExponentialSpan(t *testing.T) {
	for _, maxSize := range []int32{3, 20, 160, 1000, 5120} {
		form := ExponentialForm(maxSize)
		for low := 1e-6; low < 1; low *= 1.0371 {
			span := bucketOf(t, form, low*contrast) - bucketOf(t, form, low) + 1
			assert.LessOrEqual(t, span, maxSize, "%v", low)
		}
	}
}

// An observation leaves nothing behind in the form.
func TestExponentialFormIsNotShared(t *testing.T) {
	form := ExponentialForm(160)
	first := bucketOf(t, form, 0.02)
	for _, value := range []float64{1e-9, 1e9, math.SmallestNonzeroFloat64, math.MaxFloat64} {
		bucketOf(t, form, value)
	}
	assert.Equal(t, first, bucketOf(t, form, 0.02))
	assert.EqualValues(t, 3, form.index.Scale())
}
