// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/observation"
)

// event is one thing an engine says of one series.
type event struct {
	series string // name of the metric; the first letter is the kind: set, inc, observe, exponential
	rank   int
	value  float64
	weight uint64
	time   pcommon.Timestamp
}

func (e event) key() string { return fmt.Sprintf("%s/%d", e.series, e.rank) }

// stream makes events and batches of them.
type stream struct {
	*rand.Rand
	last map[string]pcommon.Timestamp // of each series, so that start times are contiguous
	now  pcommon.Timestamp
}

func newStream(seed uint64) *stream {
	return &stream{Rand: rand.New(rand.NewPCG(seed, 7)), last: map[string]pcommon.Timestamp{}, now: 1_700_000_000_000_000_000}
}

var propertyBounds = []float64{0.001, 0.01, 0.1, 1}

func (s *stream) events() []event {
	var all []event
	for range 1 + s.IntN(12) {
		e := event{series: string("siox"[s.IntN(4)]) + string("ab"[s.IntN(2)]), rank: s.IntN(2), weight: 1}
		switch e.series[0] {
		case 's':
			e.value = float64(s.IntN(3))
		case 'i':
			e.value = float64(s.IntN(1000))
			if e.series[1] == 'b' {
				e.value /= 1000
			}
		default:
			e.value, e.weight = math.Exp2(20*(s.Float64()-0.8)), 1+s.Uint64N(64)
			if s.IntN(20) == 0 {
				e.value = 0
			}
		}
		s.now += pcommon.Timestamp(s.Int64N(int64(5 * time.Millisecond)))
		e.time = s.now
		all = append(all, e)
	}
	s.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// batch puts each event into a point. Half of the time neighbours share a metric entry, else each has its own.
func (s *stream) batch(t *testing.T, all []event, together bool) pmetric.Metrics {
	md := pmetric.NewMetrics()
	var m pmetric.Metric
	for i, e := range all {
		if !together || i == 0 || all[i-1].series != e.series || all[i-1].rank != e.rank {
			rm := md.ResourceMetrics().AppendEmpty()
			rm.Resource().Attributes().PutInt("rank", int64(e.rank))
			m = rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
			m.SetName(e.series)
		}
		start := s.last[e.key()]
		s.last[e.key()] = e.time
		s.point(t, m, e, start)
	}
	return md
}

func (s *stream) point(t *testing.T, m pmetric.Metric, e event, start pcommon.Timestamp) {
	fresh := m.Type() == pmetric.MetricTypeEmpty
	switch e.series[0] {
	case 's':
		if fresh {
			m.SetEmptyGauge()
		}
		dp := m.Gauge().DataPoints().AppendEmpty()
		dp.SetTimestamp(e.time)
		dp.SetDoubleValue(e.value)
	case 'i':
		if fresh {
			m.SetEmptySum().SetIsMonotonic(true)
			m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		}
		dp := m.Sum().DataPoints().AppendEmpty()
		dp.SetStartTimestamp(start)
		dp.SetTimestamp(e.time)
		if e.series[1] == 'a' {
			dp.SetIntValue(int64(e.value))
		} else {
			dp.SetDoubleValue(e.value)
		}
	case 'o':
		if fresh {
			m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		}
		p, r := observation.WeightedHistogram(e.value, e.weight, propertyBounds)
		require.Nil(t, r)
		p.Start, p.Time = observation.UnixNano(start), observation.UnixNano(e.time)
		dp := m.Histogram().DataPoints().AppendEmpty()
		histogramPoints{}.write(dp, &p)
		dp.ExplicitBounds().FromRaw(propertyBounds)
	case 'x':
		if fresh {
			m.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		}
		p, r := observation.WeightedExponential(e.value, e.weight)
		require.Nil(t, r)
		p.Start, p.Time = observation.UnixNano(start), observation.UnixNano(e.time)
		exponentialPoints{}.write(m.ExponentialHistogram().DataPoints().AppendEmpty(), &p)
	}
}
