// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"maps"
	"slices"

	"github.com/lightstep/go-expohisto/mapping"
	"github.com/lightstep/go-expohisto/mapping/logarithm"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

const (
	// maxScale is the scale of a point whose values do not ask for a coarser one:
	// buckets 9 % wide. Finer ones would do no good: not everything that adds
	// points up downscales, and at the finest scale two values far apart are
	// millions of buckets apart.
	maxScale = 3
	// maxSize is how many buckets of each sign a point has at most. At scale −4,
	// the coarsest that Prometheus knows, all floats lie in fewer.
	maxSize = 160
)

// indexAtMaxScale maps positive values to bucket indexes.
var indexAtMaxScale = func() mapping.Mapping {
	index, err := logarithm.NewMapping(maxScale)
	if err != nil {
		panic(err) // cannot be: the library takes 1 to 20
	}
	return index
}()

// exponential are exponential buckets.
type exponential struct {
	zero               uint64
	positive, negative indexCounts
}

// indexCounts are counts by index at maxScale.
type indexCounts map[int32]uint64

func newExponential() *exponential {
	return &exponential{positive: indexCounts{}, negative: indexCounts{}}
}

func (b *exponential) add(value float64, weight uint64) {
	switch {
	case value > 0:
		b.positive[indexAtMaxScale.MapToIndex(value)] += weight
	case value < 0:
		b.negative[indexAtMaxScale.MapToIndex(-value)] += weight
	default:
		b.zero += weight
	}
}

func (b *exponential) write(point pmetric.ExponentialHistogramDataPoint) {
	coarser := 0
	for b.positive.size(coarser) > maxSize || b.negative.size(coarser) > maxSize {
		coarser++
	}
	point.SetScale(maxScale - int32(coarser))
	point.SetZeroCount(b.zero)
	b.positive.write(point.Positive(), coarser)
	b.negative.write(point.Negative(), coarser)
}

// size is how many buckets span the counts at a coarser scale: indexes nest, a
// step is an arithmetic shift.
func (c indexCounts) size(coarser int) int {
	if len(c) == 0 {
		return 0
	}
	indexes := slices.Sorted(maps.Keys(c))
	return int(indexes[len(indexes)-1]>>coarser-indexes[0]>>coarser) + 1
}

func (c indexCounts) write(dst pmetric.ExponentialHistogramDataPointBuckets, coarser int) {
	if len(c) == 0 {
		return
	}
	first := slices.Min(slices.Collect(maps.Keys(c))) >> coarser
	counts := make([]uint64, c.size(coarser))
	for index, count := range c {
		counts[index>>coarser-first] += count
	}
	dst.SetOffset(first)
	dst.BucketCounts().FromRaw(counts)
}
