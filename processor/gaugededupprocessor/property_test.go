// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"context"
	"fmt"
	"math/big"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"golang.org/x/tools/txtar"
)

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

// TestLedgerBalances gives the batches of all case files to one processor, in any order, some refused and some cancelled:
// after each the decisions have grown by its points.
func TestLedgerBalances(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "cases", "*.txt"))
	require.NoError(t, err)
	var texts []string
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		require.NoError(t, err)
		for _, section := range archive.Files {
			if strings.HasPrefix(section.Name, "in ") {
				texts = append(texts, string(section.Data))
			}
		}
	}
	cfg := createDefaultConfig().(*Config)
	cfg.MaxSeries, cfg.Resolution = 20, time.Millisecond
	h := newHarness(t, cfg)
	s := newStream(1)
	points := 0
	for range 1000 {
		h.now += time.Duration(s.Int64N(int64(time.Second)))
		h.sink.refuse = s.IntN(4) == 0
		md, err := parseMetrics(texts[s.IntN(len(texts))])
		require.NoError(t, err)
		points += md.DataPointCount()
		if s.IntN(10) == 0 {
			cancelledWhileWaiting(t, h.gaugeDedup, md)
		} else {
			_ = h.ConsumeMetrics(context.Background(), md) // refused or not
		}
		require.Equal(t, points, h.decided())
	}
	for _, name := range decisionNames {
		require.Positive(t, h.values()["points{"+name+"}"], "%s happens", name)
	}
}

// cancelledWhileWaiting gives a batch to the processor while another one has the turn of its last resource.
func cancelledWhileWaiting(t *testing.T, p *gaugeDedup, md pmetric.Metrics) {
	busy := p.batches.Get().(*batch)
	require.NoError(t, busy.take(context.Background(), md))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, p.ConsumeMetrics(ctx, md), context.Canceled)
	busy.leave()
	p.recycle(busy)
}

// TestOnePointASeries: each series that was added to has one outgoing point a batch, where its first point was.
func TestOnePointASeries(t *testing.T) {
	s := newStream(3)
	h := newHarness(t, createDefaultConfig().(*Config))
	for range 200 {
		all := s.events()
		var want []string // series in the order of their first points
		for _, e := range all {
			if e.series[0] != 's' && !slices.Contains(want, e.key()) {
				want = append(want, e.key())
			}
		}
		out := &orderSink{}
		h.gaugeDedup.next = out
		require.NoError(t, h.ConsumeMetrics(context.Background(), s.batch(t, all, true)))
		require.Equal(t, want, out.keys)
	}
}

// orderSink writes down the series of all points that are no gauges.
type orderSink struct {
	consumerBase
	keys []string
}

func (o *orderSink) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	for _, rm := range md.ResourceMetrics().All() {
		rank, _ := rm.Resource().Attributes().Get("rank")
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			if m.Type() != pmetric.MetricTypeGauge {
				for range points(m) {
					o.keys = append(o.keys, fmt.Sprintf("%s/%d", m.Name(), rank.Int()))
				}
			}
		}
	}
	return nil
}
