// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"sort"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/observation"
)

// distribution are the observations of one histogram added up. A weight
// multiplies the count and the sum, never the value. No count can overflow: a
// batch has at most maxBatchEvents events of at most maxWeight.
type distribution struct {
	period
	count    uint64
	sum      observation.Sum
	negative bool // there was a negative observation: then there is no sum
	min, max float64
	buckets  buckets
}

// buckets are explicit or exponential ones.
type buckets interface {
	add(value float64, weight uint64)
}

func newDistribution(bounds []float64) distribution {
	if bounds == nil {
		return distribution{buckets: newExponential()}
	}
	return distribution{buckets: &explicit{bounds: bounds, counts: make([]uint64, len(bounds)+1)}}
}

// add is false, and changes nothing, when the sum would leave its range. The
// first observation never does.
func (d *distribution) add(value float64, weight uint64) bool {
	value += 0 // −0 is 0
	sum := d.sum
	sum.Add(value * float64(weight))
	if !finite(sum.Value()) {
		return false
	}
	d.sum = sum
	d.negative = d.negative || value < 0
	if d.count == 0 {
		d.min, d.max = value, value
	} else {
		d.min, d.max = min(d.min, value), max(d.max, value)
	}
	d.count += weight
	d.buckets.add(value, weight)
	return true
}

// distributionPoint is what explicit and exponential points have in common.
type distributionPoint interface {
	SetCount(uint64)
	SetSum(float64)
	SetMin(float64)
	SetMax(float64)
}

func (d *distribution) write(point distributionPoint) {
	point.SetCount(d.count)
	if !d.negative {
		point.SetSum(d.sum.Value())
	}
	point.SetMin(d.min)
	point.SetMax(d.max)
}

// explicit are buckets with inclusive upper bounds.
type explicit struct {
	bounds []float64
	counts []uint64
}

func (b *explicit) add(value float64, weight uint64) {
	b.counts[sort.SearchFloat64s(b.bounds, value)] += weight
}

func (b *explicit) write(point pmetric.HistogramDataPoint) {
	point.ExplicitBounds().FromRaw(b.bounds)
	point.BucketCounts().FromRaw(b.counts)
}
