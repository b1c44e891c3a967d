// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/featuregate"
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

func withoutRepeats(list []float64) (short []float64) {
	for i, v := range list {
		if i == 0 || list[i-1] != v {
			short = append(short, v)
		}
	}
	return short
}

// TestNothingInventedNothingLost runs random streams, with refused batches and idle hours, and holds what a backend makes of
// the output against the list of all accepted events.
func TestNothingInventedNothingLost(t *testing.T) {
	for seed := range uint64(60) {
		for _, temporality := range []Temporality{TemporalityCumulative, TemporalityDelta} {
			t.Run(fmt.Sprintf("%s_seed_%d", temporality, seed), func(t *testing.T) {
				nothingInventedNothingLost(t, seed, temporality)
			})
		}
	}
}

func nothingInventedNothingLost(t *testing.T, seed uint64, temporality Temporality) {
	s := newStream(seed)
	cfg := createDefaultConfig().(*Config)
	cfg.Histograms.Temporality, cfg.Sums.Temporality = temporality, temporality
	h := newHarness(t, cfg)
	out := newBackend(t, temporality == TemporalityDelta)
	h.gaugeDedup.next = out

	var accepted []event
	points := 0
	for range 80 {
		all := s.events()
		together := s.IntN(2) == 0
		idle := time.Millisecond
		// After the time to live delta output cannot be contiguous any more.
		if s.IntN(20) == 0 && temporality == TemporalityCumulative {
			idle = cfg.SeriesTTL
			s.now += pcommon.Timestamp(idle)
		}
		h.now += idle
		md := s.batch(t, all, together)
		for {
			attempt := pmetric.NewMetrics()
			md.CopyTo(attempt)
			out.refuse = s.IntN(4) == 0
			points += len(all)
			err := h.ConsumeMetrics(context.Background(), attempt)
			if err == nil {
				accepted = append(accepted, all...)
				break
			}
			require.ErrorIs(t, err, errRefused)
			if s.IntN(3) == 0 {
				break // the client gives up
			}
		}
	}
	require.Equal(t, points, h.decided(), "LedgerBalances")

	bySeries := map[string][]event{}
	for _, e := range accepted {
		bySeries[e.key()] = append(bySeries[e.key()], e)
	}
	for key, list := range bySeries {
		have := out.totals[key]
		require.NotNil(t, have, key)
		if key[0] == 's' {
			var values []float64
			for _, e := range list {
				values = append(values, e.value)
			}
			require.Equal(t, withoutRepeats(values), withoutRepeats(have.gauge), "%s: every change, in order", key)
			require.Equal(t, values[len(values)-1], have.gauge[len(have.gauge)-1], "%s: the last one", key)
			require.LessOrEqual(t, len(have.gauge), len(values), "%s: nothing invented", key)
			continue
		}
		count, sum, buckets := have.sum()
		want := replay(list)
		if key[0] != 'i' {
			require.Equal(t, want.count, count, key)
		}
		require.InDelta(t, want.sum, sum, 1e-12*want.sum, key)
		switch key[0] {
		case 'o':
			require.Equal(t, want.buckets, buckets, key)
		case 'x':
			require.Equal(t, want.zeros, buckets[0], key)
		}
	}
	require.Len(t, out.totals, len(bySeries))
}

type replayed struct {
	segment
	zeros uint64
}

// replay adds all events of a series with exact arithmetic.
func replay(all []event) replayed {
	r := replayed{segment: segment{buckets: make([]uint64, len(propertyBounds)+1)}}
	exact := new(big.Float).SetPrec(2000)
	for _, e := range all {
		r.count += e.weight
		product := new(big.Float).SetPrec(2000).SetFloat64(e.value)
		exact.Add(exact, product.Mul(product, new(big.Float).SetUint64(e.weight)))
		i := 0
		for i < len(propertyBounds) && e.value > propertyBounds[i] {
			i++
		}
		r.buckets[i] += e.weight
		if e.value == 0 {
			r.zeros += e.weight
		}
	}
	r.sum, _ = exact.Float64()
	return r
}

// TestRefusedNeverHappened gives the same folds with refused batches in between as without them.
func TestRefusedNeverHappened(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprintf("seed_%d", seed), func(t *testing.T) {
			s := newStream(seed)
			cfg := createDefaultConfig().(*Config)
			cfg.MaxSeries = []int{1_000_000, 9}[s.IntN(2)]
			disturbed, calm := newHarness(t, cfg), newHarness(t, cfg)
			for range 60 {
				disturbed.now += time.Millisecond
				calm.now = disturbed.now
				all := s.events()
				md := withoutGauges(s.batch(t, all, true))
				if s.IntN(3) == 0 {
					addStale(md, s)
				}
				disturbed.sink.refuse = s.IntN(2) == 0
				if disturbed.sink.refuse {
					require.Error(t, disturbed.ConsumeMetrics(context.Background(), md))
					continue
				}
				again := pmetric.NewMetrics()
				md.CopyTo(again)
				disturbed.sink.text, calm.sink.text = "", ""
				require.NoError(t, disturbed.ConsumeMetrics(context.Background(), md))
				require.NoError(t, calm.ConsumeMetrics(context.Background(), again))
				require.Equal(t, calm.sink.text, disturbed.sink.text)
				require.Equal(t, calm.table.Series(), disturbed.table.Series())
			}
		})
	}
}

// addStale adds a NoRecordedValue point for a counter.
func addStale(md pmetric.Metrics, s *stream) {
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutInt("rank", 0)
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("ia")
	m.SetEmptySum().SetIsMonotonic(true)
	m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	dp := m.Sum().DataPoints().AppendEmpty()
	dp.SetTimestamp(s.now)
	dp.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
}

// withoutGauges puts a summary in the place of each gauge: it passes, so that there is always something to be refused.
func withoutGauges(md pmetric.Metrics) pmetric.Metrics {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Type() == pmetric.MetricTypeGauge {
					m.SetEmptySummary().DataPoints().AppendEmpty()
				}
			}
		}
	}
	return md
}

// TestPooledPoints runs a stream while pdata uses the memory of removed points again: nothing may hold on to one.
func TestPooledPoints(t *testing.T) {
	const gate = "pdata.useProtoPooling"
	require.NoError(t, featuregate.GlobalRegistry().Set(gate, true))
	defer func() { require.NoError(t, featuregate.GlobalRegistry().Set(gate, false)) }()
	for seed := range uint64(10) {
		nothingInventedNothingLost(t, seed, TemporalityCumulative)
		nothingInventedNothingLost(t, seed, TemporalityDelta)
	}
}
