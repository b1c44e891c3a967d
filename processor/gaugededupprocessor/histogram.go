// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/observation"
)

// foldHistograms folds the points of a delta histogram.
func (b *batch) foldHistograms(at place) (asTheyCame pmetric.Metric, left bool) {
	histogram, state := at.metric.Histogram(), &at.owner.State
	if state.histograms == nil {
		state.histograms = map[observation.Key]*folded[observation.Histogram]{}
	}
	histogram.DataPoints().RemoveIf(func(dp pmetric.HistogramDataPoint) bool {
		v := b.histograms.add(b, at, state.histograms, seriesKey(at.key, dp.Attributes()), dp)
		if v != asItCame {
			return v == drop
		}
		b.passUntracked(at, untrackedHistogram)
		if b.histograms.delta {
			return false
		}
		if !left {
			asTheyCame, left = sibling(at.metric), true
			asTheyCame.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		}
		dp.MoveTo(asTheyCame.Histogram().DataPoints().AppendEmpty())
		return true
	})
	if !b.histograms.delta {
		histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	return asTheyCame, left
}

type histogramPoints struct{}

func (histogramPoints) newState() observation.Histogram { return observation.Histogram{} }

func (histogramPoints) read(dp pmetric.HistogramDataPoint, p *observation.HistogramPoint) {
	p.Distribution = observation.Distribution{
		Start: observation.UnixNano(dp.StartTimestamp()), Time: observation.UnixNano(dp.Timestamp()),
		Count: dp.Count(), Sum: dp.Sum(), HasSum: dp.HasSum(),
		Min: dp.Min(), HasMin: dp.HasMin(), Max: dp.Max(), HasMax: dp.HasMax(),
	}
	p.Bounds = p.Bounds[:0]
	for _, bound := range dp.ExplicitBounds().All() {
		p.Bounds = append(p.Bounds, bound)
	}
	p.Buckets = appendCounts(p.Buckets[:0], dp.BucketCounts())
}

// write leaves attributes and bounds, which are already those of the series.
func (histogramPoints) write(dp pmetric.HistogramDataPoint, p *observation.HistogramPoint) {
	writeDistribution(dp, &p.Distribution)
	dp.BucketCounts().FromRaw(p.Buckets)
}

func (histogramPoints) flags(dp pmetric.HistogramDataPoint) pmetric.DataPointFlags { return dp.Flags() }

func (histogramPoints) exemplars(dp pmetric.HistogramDataPoint) pmetric.ExemplarSlice {
	return dp.Exemplars()
}

func appendCounts(to []uint64, from pcommon.UInt64Slice) []uint64 {
	for _, count := range from.All() {
		to = append(to, count)
	}
	return to
}

// distributionPoint is what explicit and exponential histogram points have in common.
type distributionPoint interface {
	SetStartTimestamp(pcommon.Timestamp)
	SetTimestamp(pcommon.Timestamp)
	SetCount(uint64)
	SetSum(float64)
	RemoveSum()
	SetMin(float64)
	RemoveMin()
	SetMax(float64)
	RemoveMax()
}

func writeDistribution[D distributionPoint](dp D, d *observation.Distribution) {
	dp.SetStartTimestamp(pcommon.Timestamp(d.Start))
	dp.SetTimestamp(pcommon.Timestamp(d.Time))
	dp.SetCount(d.Count)
	dp.RemoveSum()
	if d.HasSum {
		dp.SetSum(d.Sum)
	}
	dp.RemoveMin()
	if d.HasMin {
		dp.SetMin(d.Min)
	}
	dp.RemoveMax()
	if d.HasMax {
		dp.SetMax(d.Max)
	}
}
