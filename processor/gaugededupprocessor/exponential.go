// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/observation"
)

// foldExponentials folds the points of an exponential delta histogram.
func (b *batch) foldExponentials(at place) (asTheyCame pmetric.Metric, left bool) {
	histogram, state := at.metric.ExponentialHistogram(), &at.owner.State
	if state.exponentials == nil {
		state.exponentials = map[observation.Key]*folded[observation.Exponential]{}
	}
	histogram.DataPoints().RemoveIf(func(dp pmetric.ExponentialHistogramDataPoint) bool {
		v := b.exponentials.add(b, at, state.exponentials, seriesKey(at.key, dp.Attributes()), dp)
		if v != asItCame {
			return v == drop
		}
		b.passUntracked(at, untrackedHistogram)
		if b.exponentials.delta {
			return false
		}
		if !left {
			asTheyCame, left = sibling(at.metric), true
			asTheyCame.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		}
		dp.MoveTo(asTheyCame.ExponentialHistogram().DataPoints().AppendEmpty())
		return true
	})
	if !b.exponentials.delta {
		histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	return asTheyCame, left
}

type exponentialPoints struct{ maxSize int }

func (e exponentialPoints) newState() observation.Exponential {
	return observation.NewExponential(e.maxSize)
}

func (exponentialPoints) read(dp pmetric.ExponentialHistogramDataPoint, p *observation.ExponentialPoint) {
	p.Distribution = observation.Distribution{
		Start: observation.UnixNano(dp.StartTimestamp()), Time: observation.UnixNano(dp.Timestamp()),
		Count: dp.Count(), Sum: dp.Sum(), HasSum: dp.HasSum(),
		Min: dp.Min(), HasMin: dp.HasMin(), Max: dp.Max(), HasMax: dp.HasMax(),
	}
	p.Scale, p.ZeroCount, p.ZeroThreshold = dp.Scale(), dp.ZeroCount(), dp.ZeroThreshold()
	readBuckets(dp.Positive(), &p.Positive)
	readBuckets(dp.Negative(), &p.Negative)
}

func readBuckets(from pmetric.ExponentialHistogramDataPointBuckets, to *observation.Buckets) {
	to.Offset = from.Offset()
	to.Counts = appendCounts(to.Counts[:0], from.BucketCounts())
}

// write leaves the attributes, which are already those of the series.
func (exponentialPoints) write(dp pmetric.ExponentialHistogramDataPoint, p *observation.ExponentialPoint) {
	writeDistribution(dp, &p.Distribution)
	dp.SetScale(p.Scale)
	dp.SetZeroCount(p.ZeroCount)
	dp.SetZeroThreshold(p.ZeroThreshold)
	writeBuckets(dp.Positive(), &p.Positive)
	writeBuckets(dp.Negative(), &p.Negative)
}

func writeBuckets(to pmetric.ExponentialHistogramDataPointBuckets, from *observation.Buckets) {
	to.SetOffset(from.Offset)
	to.BucketCounts().FromRaw(from.Counts)
}

func (exponentialPoints) flags(dp pmetric.ExponentialHistogramDataPoint) pmetric.DataPointFlags {
	return dp.Flags()
}

func (exponentialPoints) exemplars(dp pmetric.ExponentialHistogramDataPoint) pmetric.ExemplarSlice {
	return dp.Exemplars()
}
