// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// load makes batches of the series of one resource, shaped like those of an engine: int gauges and weighted observations with
// a rank and a scope of timing.
type load struct {
	resource string
	kind     pmetric.MetricType
}

const metricsOfAPass = 13

func (l load) batch(from, to int, at pcommon.Timestamp) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "backend")
	rm.Resource().Attributes().PutStr("service.instance.id", l.resource)
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName("github.com/otelcol-fpm/otelcol-fpm/receiver/fpmreceiver")
	sm.Scope().SetVersion("0.1.0")
	metrics := make([]pmetric.Metric, metricsOfAPass)
	for i := range metrics {
		metrics[i] = sm.Metrics().AppendEmpty()
		metrics[i].SetName(fmt.Sprintf("fpm.scheduled.decode.kv_tokens.%d", i))
		metrics[i].SetUnit("{token}")
		switch l.kind {
		case pmetric.MetricTypeGauge:
			metrics[i].SetEmptyGauge()
		default:
			metrics[i].SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		}
	}
	for i := from; i < to; i++ {
		m := metrics[i%metricsOfAPass]
		var attributes pcommon.Map
		switch l.kind {
		case pmetric.MetricTypeGauge:
			dp := m.Gauge().DataPoints().AppendEmpty()
			dp.SetTimestamp(at)
			dp.SetIntValue(int64(i))
			attributes = dp.Attributes()
		default:
			dp := m.Histogram().DataPoints().AppendEmpty()
			dp.SetStartTimestamp(at - 1)
			dp.SetTimestamp(at)
			dp.SetCount(3)
			dp.SetSum(0.03)
			dp.SetMin(0.01)
			dp.SetMax(0.01)
			dp.ExplicitBounds().FromRaw(benchmarkBounds)
			dp.BucketCounts().FromRaw(benchmarkBuckets)
			attributes = dp.Attributes()
		}
		attributes.PutInt("fpm.dp_rank", int64(i/metricsOfAPass))
		attributes.PutStr("fpm.timing_scope", "engine")
	}
	return md
}

var (
	benchmarkBounds  = []float64{0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.008, 0.01, 0.012, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60}
	benchmarkBuckets = []uint64{0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
)

func benchmarked(tb testing.TB, cfg *Config) *gaugeDedup {
	began := time.Now()
	p, err := newGaugeDedup(nopSettings(), cfg, consumertest.NewNop(), func() time.Duration { return time.Since(began) })
	require.NoError(tb, err)
	return p
}

func changesOnly() *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.RefreshInterval = 0
	return cfg
}

const pointsOfABatch = 1000

// BenchmarkSuppressed is the cost of a gauge point that repeats the value of its series, the batch being of one resource.
func BenchmarkSuppressed(b *testing.B) {
	for _, shape := range []struct{ resources, series int }{{1, 10_000}, {1000, 1000}, {1, 1_000_000}} {
		b.Run(fmt.Sprintf("series=%d/resources=%d", shape.resources*shape.series, shape.resources), func(b *testing.B) {
			benchmarkLoad(b, pmetric.MetricTypeGauge, shape.resources, shape.series)
		})
	}
}

// BenchmarkFolded is the cost of a histogram point of 23 buckets, one a series and batch.
func BenchmarkFolded(b *testing.B) {
	benchmarkLoad(b, pmetric.MetricTypeHistogram, 1, 10_000)
}

// BenchmarkResolution is the cost of a gauge point where a batch has ten of each series, of which one goes on.
func BenchmarkResolution(b *testing.B) {
	for _, ranks := range []int{8, 1024} {
		b.Run(fmt.Sprintf("ranks=%d", ranks), func(b *testing.B) {
			cfg := changesOnly()
			cfg.Resolution = time.Second
			p := benchmarked(b, cfg)
			const passes = 10
			prepared := pmetric.NewMetrics()
			for pass := range passes {
				load{"gpu:20380", pmetric.MetricTypeGauge}.batch(0, ranks*metricsOfAPass, pcommon.Timestamp(pass+1)).
					ResourceMetrics().MoveAndAppendTo(prepared.ResourceMetrics())
			}
			points := 0
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				md := pmetric.NewMetrics()
				prepared.CopyTo(md)
				b.StartTimer()
				if err := p.ConsumeMetrics(context.Background(), md); err != nil {
					b.Fatal(err)
				}
				points += passes * ranks * metricsOfAPass
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(points), "ns/point")
		})
	}
}

func benchmarkLoad(b *testing.B, kind pmetric.MetricType, resources, series int) {
	p := benchmarked(b, changesOnly())
	var prepared []pmetric.Metrics
	for r := range resources {
		for from := 0; from < series; from += pointsOfABatch {
			md := load{fmt.Sprintf("gpu-%d:20380", r), kind}.batch(from, from+pointsOfABatch, 1)
			prepared = append(prepared, md)
			again := pmetric.NewMetrics()
			md.CopyTo(again)
			require.NoError(b, p.ConsumeMetrics(context.Background(), again))
		}
	}
	points := 0
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		md := pmetric.NewMetrics()
		prepared[i%len(prepared)].CopyTo(md)
		b.StartTimer()
		if err := p.ConsumeMetrics(context.Background(), md); err != nil {
			b.Fatal(err)
		}
		points += pointsOfABatch
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(points), "ns/point")
}

// BenchmarkMemory is the state of a series, keys and spare room of the tables included.
func BenchmarkMemory(b *testing.B) {
	for _, tt := range []struct {
		kind   pmetric.MetricType
		series int
	}{
		{pmetric.MetricTypeGauge, 10_000},
		{pmetric.MetricTypeGauge, 1_000_000},
		{pmetric.MetricTypeHistogram, 10_000},
		{pmetric.MetricTypeHistogram, 100_000},
	} {
		b.Run(fmt.Sprintf("%s/series=%d", tt.kind, tt.series), func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(float64(stateBytes(b, tt.kind, tt.series))/float64(tt.series), "B/series")
			}
		})
	}
}

func stateBytes(tb testing.TB, kind pmetric.MetricType, series int) uint64 {
	p := benchmarked(tb, createDefaultConfig().(*Config))
	l := load{"gpu-7:20380", kind}
	before := heap()
	for from := 0; from < series; from += pointsOfABatch {
		require.NoError(tb, p.ConsumeMetrics(context.Background(), l.batch(from, from+pointsOfABatch, 1)))
	}
	after := heap()
	require.Equal(tb, series, p.table.Series())
	runtime.KeepAlive(p)
	return after - before
}

// heap returns the bytes in use. It collects twice: what a sync.Pool holds survives the first time.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkResourcesInParallel is the cost of a changed gauge point when each goroutine has a resource of its own; compare
// -cpu 1,2. Two batches take turns, so that each value is a change and nothing is taken out of them.
func BenchmarkResourcesInParallel(b *testing.B) {
	p := benchmarked(b, changesOnly())
	var resources atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		l := load{fmt.Sprint(resources.Add(1)), pmetric.MetricTypeGauge}
		even, odd := l.batch(0, pointsOfABatch, 1), l.batch(0, pointsOfABatch, 1)
		for _, m := range odd.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			for _, dp := range m.Gauge().DataPoints().All() {
				dp.SetIntValue(-1 - dp.IntValue())
			}
		}
		for pb.Next() {
			if err := p.ConsumeMetrics(context.Background(), even); err != nil {
				b.Error(err)
				return
			}
			even, odd = odd, even
		}
	})
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*pointsOfABatch), "ns/point")
}

// TestNoAllocationForASuppressedPoint: what a suppressed batch allocates does not depend on its size, and is nothing.
func TestNoAllocationForASuppressedPoint(t *testing.T) {
	p := benchmarked(t, changesOnly())
	require.Zero(t, allocations(t, p, pmetric.MetricTypeGauge, 13))
	require.Zero(t, allocations(t, p, pmetric.MetricTypeGauge, 1300))
}

// TestFoldsAllocateNothing: a known series takes its next point without an allocation, undo included.
func TestFoldsAllocateNothing(t *testing.T) {
	p := benchmarked(t, changesOnly())
	require.Zero(t, allocations(t, p, pmetric.MetricTypeHistogram, 130))
}

func allocations(t *testing.T, p *gaugeDedup, kind pmetric.MetricType, points int) float64 {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it would empty the pool of batches
	const runs = 20
	l := load{"gpu-7:20380", kind}
	require.NoError(t, p.ConsumeMetrics(context.Background(), l.batch(0, points, 1)))
	batches := make([]pmetric.Metrics, runs+1)
	for i := range batches {
		batches[i] = l.batch(0, points, pcommon.Timestamp(i+2))
	}
	next := 0
	return testing.AllocsPerRun(runs, func() {
		if err := p.ConsumeMetrics(context.Background(), batches[next]); err != nil {
			t.Error(err)
		}
		next++
	})
}

// TestBytesOfASeries keeps the state of a gauge series within what the README promises.
func TestBytesOfASeries(t *testing.T) {
	const series = 50_000
	require.LessOrEqual(t, stateBytes(t, pmetric.MetricTypeGauge, series)/series, uint64(200))
}
