// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observation

import "math"

// Distribution is what explicit and exponential histogram points have in common.
type Distribution struct {
	Start, Time            UnixNano
	Count                  uint64
	Sum, Min, Max          float64
	HasSum, HasMin, HasMax bool
}

// check looks at everything but the buckets, whose counts add up to inBuckets.
func (d *Distribution) check(inBuckets uint64, overflow bool) *Rejection {
	switch {
	case d.HasSum && !finite(d.Sum):
		return reject(NotFinite, "sum", d.Sum, "a finite number")
	case d.HasMin && !finite(d.Min):
		return reject(NotFinite, "min", d.Min, "a finite number")
	case d.HasMax && !finite(d.Max):
		return reject(NotFinite, "max", d.Max, "a finite number")
	case overflow:
		return reject(BadBuckets, "bucket_counts", "more than 2^64-1 in total", "as many as count")
	case inBuckets != d.Count:
		return reject(BadBuckets, "bucket_counts", inBuckets, "as many as count")
	case d.Count == 0 && d.HasSum && d.Sum != 0:
		return reject(BadBuckets, "sum", d.Sum, "0 when count is 0")
	}
	return checkTime(d.Time)
}

// total is the running Distribution of one series.
//
// Invariant SumOnlyOfNonNegative: the sum is left out from the first negative observation on, because a sum that can
// go down breaks rates. Sum, minimum and maximum are also left out from the first point on that had none.
type total struct {
	count               uint64
	sum                 Sum
	min, max            float64
	noSum, noMin, noMax bool
}

func (t *total) overflowsWith(d *Distribution) bool {
	return d.Count > math.MaxUint64-t.count || !t.noSum && d.HasSum && t.sum.overflowsWith(d.Sum)
}

// add adds d; negative tells that there is a negative observation in it.
func (t *total) add(d *Distribution, negative bool) {
	if d.Count == 0 {
		return
	}
	t.noSum = t.noSum || negative || !d.HasSum
	if !t.noSum {
		t.sum.Add(d.Sum)
	}
	t.noMin = t.noMin || !d.HasMin
	t.noMax = t.noMax || !d.HasMax
	if t.count == 0 {
		t.min, t.max = d.Min, d.Max
	} else {
		t.min, t.max = min(t.min, d.Min), max(t.max, d.Max)
	}
	t.count += d.Count
}

// resume zeroes all but the knowledge that the series has no sum.
func (t *total) resume() { *t = total{noSum: t.noSum} }

func (t *total) distribution(start, at UnixNano) Distribution {
	d := Distribution{
		Start: start, Time: at, Count: t.count,
		HasSum: !t.noSum,
		HasMin: t.count > 0 && !t.noMin,
		HasMax: t.count > 0 && !t.noMax,
	}
	if d.HasSum {
		d.Sum = t.sum.Value()
	}
	if d.HasMin {
		d.Min = t.min
	}
	if d.HasMax {
		d.Max = t.max
	}
	return d
}

// addCounts returns the total of counts on top of sum, and whether it left the range of uint64.
func addCounts(sum uint64, overflow bool, counts []uint64) (uint64, bool) {
	for _, c := range counts {
		sum += c
		overflow = overflow || sum < c
	}
	return sum, overflow
}
