// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/observation"
)

// foldSums folds the points of a monotonic delta sum.
func (b *batch) foldSums(at place) (asTheyCame pmetric.Metric, left bool) {
	sum, state := at.metric.Sum(), &at.owner.State
	if state.sums == nil {
		state.sums = map[observation.Key]*folded[observation.Counter]{}
	}
	sum.DataPoints().RemoveIf(func(dp pmetric.NumberDataPoint) bool {
		v := b.sums.add(b, at, state.sums, seriesKey(at.key, dp.Attributes()), dp)
		if v != asItCame {
			return v == drop
		}
		b.passUntracked(at, untrackedSum)
		if b.sums.delta {
			return false
		}
		if !left {
			asTheyCame, left = sibling(at.metric), true
			asTheyCame.SetEmptySum().SetIsMonotonic(true)
			asTheyCame.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		}
		dp.MoveTo(asTheyCame.Sum().DataPoints().AppendEmpty())
		return true
	})
	if !b.sums.delta {
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	return asTheyCame, left
}

// thinSums removes the points of a monotonic cumulative sum that newer ones of the batch make superfluous.
func (b *batch) thinSums(at place) {
	at.metric.Sum().DataPoints().RemoveIf(func(pmetric.NumberDataPoint) bool {
		if b.slots.superseded() {
			b.ledger.points[thinned]++
			return true
		}
		b.ledger.points[passed]++
		return false
	})
}

type sumPoints struct{}

func (sumPoints) newState() observation.Counter { return observation.Counter{} }

func (sumPoints) read(dp pmetric.NumberDataPoint, p *observation.Increment) {
	*p = observation.Increment{
		Start: observation.UnixNano(dp.StartTimestamp()), Time: observation.UnixNano(dp.Timestamp()),
		HasValue: dp.ValueType() != pmetric.NumberDataPointValueTypeEmpty,
		IsDouble: dp.ValueType() == pmetric.NumberDataPointValueTypeDouble,
		Int:      dp.IntValue(), Double: dp.DoubleValue(),
	}
}

func (sumPoints) write(dp pmetric.NumberDataPoint, p *observation.Increment) {
	dp.SetStartTimestamp(pcommon.Timestamp(p.Start))
	dp.SetTimestamp(pcommon.Timestamp(p.Time))
	if p.IsDouble {
		dp.SetDoubleValue(p.Double)
	} else {
		dp.SetIntValue(p.Int)
	}
}

func (sumPoints) flags(dp pmetric.NumberDataPoint) pmetric.DataPointFlags { return dp.Flags() }

func (sumPoints) exemplars(dp pmetric.NumberDataPoint) pmetric.ExemplarSlice { return dp.Exemplars() }
