// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// sink is a consumer of one signal that takes, refuses or hangs as it is told,
// and keeps what it took. What it refuses it spoils first: nobody may rely on
// data that was handed on.
type sink[T any] struct {
	mu    sync.Mutex
	taken []T
	tries int
	// answer decides; nil takes all.
	answer func(ctx context.Context, try int) error
}

func (s *sink[T]) consume(ctx context.Context, data T, spoil func()) error {
	s.mu.Lock()
	s.tries++
	try, answer := s.tries, s.answer
	s.mu.Unlock()
	if answer != nil {
		if err := answer(ctx, try); err != nil {
			spoil()
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = append(s.taken, data)
	return nil
}

// tell changes what the sink does from now on.
func (s *sink[T]) tell(answer func(ctx context.Context, try int) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *sink[T]) all() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.taken)
}

func (*sink[T]) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

type metricsSink struct{ sink[pmetric.Metrics] }

func (s *metricsSink) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	return s.consume(ctx, md, func() { md.ResourceMetrics().RemoveIf(func(pmetric.ResourceMetrics) bool { return true }) })
}

type logsSink struct{ sink[plog.Logs] }

func (s *logsSink) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	return s.consume(ctx, ld, func() { ld.ResourceLogs().RemoveIf(func(plog.ResourceLogs) bool { return true }) })
}

// point is a metric point of any kind, with all that identifies its series.
type point struct {
	resource map[string]any
	metric   string
	// attributes of the point; series is all of it as text.
	attributes map[string]any
	series     string
	start, at  pcommon.Timestamp
	value      float64 // a histogram's sum
	count      uint64  // a histogram's
	noValue    bool
	delta      bool
	alone      bool // in its Metric entry
}

// points lists all points in the order of their delivery.
func (s *metricsSink) points() []point {
	var all []point
	for _, md := range s.all() {
		all = append(all, pointsOf(md)...)
	}
	return all
}

// pointsBeforeShutdown leaves out the points that Shutdown ended all series with.
func (s *metricsSink) pointsBeforeShutdown() []point {
	var all []point
	batches := s.all()
	for i, md := range batches {
		points := pointsOf(md)
		final := !slices.ContainsFunc(points, func(p point) bool { return !p.noValue })
		if i == len(batches)-1 && final {
			break
		}
		all = append(all, points...)
	}
	return all
}

func pointsOf(md pmetric.Metrics) []point {
	var all []point
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				add := func(p point, attributes pcommon.Map, n int) {
					p.resource, p.metric, p.attributes = rm.Resource().Attributes().AsRaw(), m.Name(), attributes.AsRaw()
					p.series = fmt.Sprint(p.metric, p.attributes, p.resource)
					p.alone = n == 1
					all = append(all, p)
				}
				number := func(points pmetric.NumberDataPointSlice, delta bool) {
					for _, p := range points.All() {
						value := p.DoubleValue()
						if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
							value = float64(p.IntValue())
						}
						add(point{start: p.StartTimestamp(), at: p.Timestamp(), value: value, noValue: p.Flags().NoRecordedValue(), delta: delta}, p.Attributes(), points.Len())
					}
				}
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					number(m.Gauge().DataPoints(), false)
				case pmetric.MetricTypeSum:
					number(m.Sum().DataPoints(), m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityDelta)
				case pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						add(point{start: p.StartTimestamp(), at: p.Timestamp(), value: p.Sum(), count: p.Count(), delta: true}, p.Attributes(), m.Histogram().DataPoints().Len())
					}
				case pmetric.MetricTypeExponentialHistogram:
					for _, p := range m.ExponentialHistogram().DataPoints().All() {
						add(point{start: p.StartTimestamp(), at: p.Timestamp(), value: p.Sum(), count: p.Count(), delta: true}, p.Attributes(), m.ExponentialHistogram().DataPoints().Len())
					}
				}
			}
		}
	}
	return all
}

// of selects the points of one metric.
func of(all []point, metric string) []point {
	return slices.DeleteFunc(slices.Clone(all), func(p point) bool { return p.metric != metric })
}

// wellFormed asserts what holds of every stream of points, whatever happened:
// times strictly increase within a series, starts lie before times, a delta
// point starts where the one before it ended or later, no value follows itself.
func wellFormed(t *testing.T, all []point) {
	t.Helper()
	last := map[string]point{}
	for _, p := range all {
		before, known := last[p.series]
		if known {
			assert.Greater(t, p.at, before.at, "times strictly increase: %s", p.series)
			if p.delta {
				assert.GreaterOrEqual(t, p.start, before.at, "delta points do not overlap: %s", p.series)
			}
			if p.noValue {
				assert.False(t, before.noValue, "a series ends once: %s", p.series)
			}
		}
		if p.start != 0 {
			assert.Less(t, p.start, p.at, "%s", p.series)
		}
		if p.noValue {
			assert.True(t, p.alone, "a point without a value is alone in its metric: %s", p.series)
		}
		last[p.series] = p
	}
}

// contiguous asserts that the delta points of each series follow one another
// without a hole.
func contiguous(t *testing.T, all []point) {
	t.Helper()
	last := map[string]pcommon.Timestamp{}
	for _, p := range all {
		if before, known := last[p.series]; p.delta && known {
			assert.Equal(t, before, p.start, "contiguous: %s", p.series)
		}
		last[p.series] = p.at
	}
}

// counters are the counter_ids that arrived as metrics, in order.
func counters(all []point) []int64 {
	var found []int64
	for _, p := range of(all, fpm.MetricMessages) {
		found = append(found, int64(p.value))
	}
	return found
}

// records lists all log records in the order of their delivery.
func (s *logsSink) records() []plog.LogRecord {
	var all []plog.LogRecord
	for _, ld := range s.all() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, record := range sl.LogRecords().All() {
					all = append(all, record)
				}
			}
		}
	}
	return all
}

func logCounters(records []plog.LogRecord) []int64 {
	var found []int64
	for _, record := range records {
		counter, _ := record.Body().Map().Get("counter_id")
		found = append(found, counter.Int())
	}
	return found
}
