// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-fpm/otelcol-fpm/internal/observation"
)

// oneDuration is an observed duration with a weight: the weight multiplies the
// count and the sum, never the value. It goes into one bucket.
type oneDuration struct {
	value  float64
	weight uint64
	// sum is value × weight, infinite when that is out of range.
	sum    float64
	bucket int64
	time   pcommon.Timestamp
}

// times is the same duration with another weight.
func (o oneDuration) times(weight uint64) oneDuration {
	o.weight, o.sum = weight, o.value*float64(weight)
	return o
}

// durations adds up observed durations.
type durations struct {
	count    uint64
	sum      observation.Sum
	min, max float64
	// counts are those of the buckets from first on.
	counts []uint64
	first  int64
	// last is the time of the last observation.
	last pcommon.Timestamp
}

// fits reports that one more can be added, within the range of count and sum and
// within size buckets.
func (d *durations) fits(one *oneDuration, size int64) bool {
	if d.count == 0 {
		return true
	}
	sum := d.sum
	sum.Add(one.sum)
	first, last := d.span(one.bucket)
	return one.weight <= math.MaxUint64-d.count && sum.Value() <= math.MaxFloat64 && last-first < size
}

// span is the range of buckets with one more.
func (d *durations) span(bucket int64) (first, last int64) {
	return min(d.first, bucket), max(d.first+int64(len(d.counts))-1, bucket)
}

// add adds one more, unless it has no weight.
func (d *durations) add(one *oneDuration) {
	if one.weight == 0 {
		return
	}
	if d.count == 0 {
		d.min, d.max, d.first = one.value, one.value, one.bucket
	}
	d.cover(one.bucket)
	d.counts[one.bucket-d.first] += one.weight
	d.count += one.weight
	d.sum.Add(one.sum)
	d.min, d.max = min(d.min, one.value), max(d.max, one.value)
	d.last = one.time
}

// cover makes room for a bucket.
func (d *durations) cover(bucket int64) {
	first, last := d.span(bucket)
	have, need := len(d.counts), int(last-first+1)
	if have == need {
		return
	}
	d.counts = slices.Grow(d.counts, need-have)[:need]
	moved := int(d.first - first)
	copy(d.counts[moved:], d.counts[:have])
	clear(d.counts[:moved])
	clear(d.counts[moved+have:])
	d.first = first
}

// copyTo makes dst the same as d, in the memory of its own counts.
func (d *durations) copyTo(dst *durations) {
	dst.clear()
	counts := append(dst.counts, d.counts...)
	*dst = *d
	dst.counts = counts
}

// clear keeps the memory of counts for the next ones, unless it is much for one of
// thousands of ranks.
func (d *durations) clear() {
	const keptCounts = 256
	if cap(d.counts) > keptCounts {
		d.counts = nil
	}
	*d = durations{counts: d.counts[:0]}
}
