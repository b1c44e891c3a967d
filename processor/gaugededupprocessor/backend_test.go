// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"context"
	"fmt"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// total is what a backend makes of one series.
type total struct {
	segments map[pcommon.Timestamp]segment // by start time
	last     pcommon.Timestamp
	gauge    []float64
}

// segment is the state of a series with one start time.
type segment struct {
	count   uint64
	sum     float64
	buckets []uint64
}

// backend reads what comes out of the processor.
type backend struct {
	t      *testing.T
	totals map[string]*total
	// adds tells that points are deltas: they are added, else the last one of a start time counts.
	adds bool
	seen map[string]bool // series with a point in this batch
	consumerBase
	refuse bool
}

func newBackend(t *testing.T, adds bool) *backend {
	return &backend{t: t, totals: map[string]*total{}, adds: adds}
}

func (b *backend) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	if b.refuse {
		return errRefused
	}
	b.seen = map[string]bool{}
	for _, rm := range md.ResourceMetrics().All() {
		rank, _ := rm.Resource().Attributes().Get("rank")
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				b.read(fmt.Sprintf("%s/%d", m.Name(), rank.Int()), m)
			}
		}
	}
	return nil
}

func (b *backend) read(key string, m pmetric.Metric) {
	t := b.totals[key]
	if t == nil {
		t = &total{segments: map[pcommon.Timestamp]segment{}}
		b.totals[key] = t
	}
	temporality := pmetric.AggregationTemporalityCumulative
	if b.adds {
		temporality = pmetric.AggregationTemporalityDelta
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, dp := range m.Gauge().DataPoints().All() {
			t.gauge = append(t.gauge, dp.DoubleValue())
		}
	case pmetric.MetricTypeSum:
		require.Equal(b.t, temporality, m.Sum().AggregationTemporality())
		for _, dp := range m.Sum().DataPoints().All() {
			b.add(key, dp.StartTimestamp(), dp.Timestamp(), segment{sum: float64(dp.IntValue()) + dp.DoubleValue()})
		}
	case pmetric.MetricTypeHistogram:
		require.Equal(b.t, temporality, m.Histogram().AggregationTemporality())
		for _, dp := range m.Histogram().DataPoints().All() {
			b.add(key, dp.StartTimestamp(), dp.Timestamp(), segment{dp.Count(), dp.Sum(), dp.BucketCounts().AsRaw()})
		}
	case pmetric.MetricTypeExponentialHistogram:
		require.Equal(b.t, temporality, m.ExponentialHistogram().AggregationTemporality())
		for _, dp := range m.ExponentialHistogram().DataPoints().All() {
			inBuckets := dp.ZeroCount()
			for _, count := range dp.Positive().BucketCounts().AsRaw() {
				inBuckets += count
			}
			require.Equal(b.t, dp.Count(), inBuckets)
			require.LessOrEqual(b.t, dp.Positive().BucketCounts().Len(), 160)
			b.add(key, dp.StartTimestamp(), dp.Timestamp(), segment{dp.Count(), dp.Sum(), []uint64{dp.ZeroCount()}})
		}
	}
}

func (b *backend) add(key string, start, at pcommon.Timestamp, s segment) {
	t := b.totals[key]
	require.False(b.t, b.seen[key], "%s: one point a series and batch", key)
	b.seen[key] = true
	require.Less(b.t, start, at, key)
	require.Greater(b.t, at, t.last, "%s: times strictly increase", key)
	old, again := t.segments[start]
	if b.adds {
		require.False(b.t, again)
		if t.last > 0 {
			require.Equal(b.t, t.last, start, "%s: contiguous", key)
		}
	} else {
		require.GreaterOrEqual(b.t, s.count, old.count, key)
		require.GreaterOrEqual(b.t, s.sum, old.sum, key)
	}
	t.segments[start] = s
	t.last = at
}

// sum adds the segments of a series.
func (t *total) sum() (count uint64, sum float64, buckets []uint64) {
	exact := new(big.Float).SetPrec(2000)
	for _, s := range t.segments {
		count += s.count
		exact.Add(exact, new(big.Float).SetFloat64(s.sum))
		for i, c := range s.buckets {
			if i >= len(buckets) {
				buckets = append(buckets, 0)
			}
			buckets[i] += c
		}
	}
	sum, _ = exact.Float64()
	return count, sum, buckets
}
