// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// seriesTotal is what delta points of one series add up to, with the times of the
// first start and of the last point.
type seriesTotal struct {
	start, last, next pcommon.Timestamp
	count             uint64
	sum, min, max     float64
	buckets           map[int]uint64
	ints              int64
	points            int
}

func (a *seriesTotal) span(t *testing.T, start, at pcommon.Timestamp) {
	if a.points == 0 {
		a.start, a.buckets, a.min, a.max = start, map[int]uint64{}, math.Inf(1), math.Inf(-1)
	} else {
		require.Equal(t, a.next, start, "points follow each other")
	}
	require.Less(t, start, at)
	a.last, a.next = at, at
	a.points++
}

func (a *seriesTotal) add(count uint64, sum, low, high float64) {
	a.count += count
	a.sum += sum
	a.min, a.max = min(a.min, low), max(a.max, high)
}

// addUp adds the points of a scope up, without a help of this package.
func addUp(t *testing.T, scope pmetric.ScopeMetrics) map[string]*seriesTotal {
	all := map[string]*seriesTotal{}
	for _, metric := range scope.Metrics().All() {
		a := &seriesTotal{}
		all[metric.Name()] = a
		switch metric.Type() {
		case pmetric.MetricTypeSum:
			for _, p := range metric.Sum().DataPoints().All() {
				a.span(t, p.StartTimestamp(), p.Timestamp())
				a.ints += p.IntValue()
			}
		case pmetric.MetricTypeHistogram:
			for _, p := range metric.Histogram().DataPoints().All() {
				a.span(t, p.StartTimestamp(), p.Timestamp())
				a.add(p.Count(), p.Sum(), p.Min(), p.Max())
				require.Equal(t, p.ExplicitBounds().Len()+1, p.BucketCounts().Len())
				for i, n := range p.BucketCounts().All() {
					a.buckets[i] += n
				}
			}
		case pmetric.MetricTypeExponentialHistogram:
			for _, p := range metric.ExponentialHistogram().DataPoints().All() {
				a.span(t, p.StartTimestamp(), p.Timestamp())
				a.add(p.Count(), p.Sum(), p.Min(), p.Max())
				counts := p.Positive().BucketCounts().AsRaw()
				require.NotZero(t, counts[0])
				require.NotZero(t, counts[len(counts)-1])
				for i, n := range counts {
					a.buckets[int(p.Positive().Offset())+i] += n
				}
			}
		}
		for bucket, n := range a.buckets {
			if n == 0 {
				delete(a.buckets, bucket)
			}
		}
	}
	return all
}

// TestTotalsAddUp: of any passes, points of several at once add up to what
// points of each one do.
func TestTotalsAddUp(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 9))
	for name, form := range forms() {
		t.Run(name, func(t *testing.T) {
			for range 300 {
				each, together := pmetric.NewScopeMetrics(), pmetric.NewScopeMetrics()
				eachWorker, togetherWorker := NewWorkerMetrics(each, form, 0), NewWorkerMetrics(together, form, 0)
				eachLinks, togetherLinks := Links{Began: began}, Links{Began: began}
				totals := NewTotals(form)
				overflowed, of := 0, 0
				write := func() {
					if !totals.Empty() {
						togetherWorker.Write(totals, RankAttributes{}, &togetherLinks)
					}
				}
				at := began
				for range 1 + random.IntN(60) {
					at += pcommon.Timestamp(1 + random.IntN(1e8))
					record := Record{}
					if random.IntN(4) > 0 {
						record.WallTime = math.Pow(10, 8*random.Float64()-5)
					}
					if random.IntN(40) == 0 {
						record.WallTime = math.MaxFloat64 * random.Float64()
					}
					record.Scheduled.NumDecodeRequests = random.Int64N(300) * int64(random.IntN(2))
					record.Scheduled.SumPrefillTokens = random.Int64N(9000) * int64(random.IntN(2))
					if random.IntN(60) == 0 {
						record.Scheduled.SumPrefillTokens = math.MaxInt64 - random.Int64N(10)
					}
					pass := Pass{Record: &record, Time: at}
					of += eachWorker.Observed(pass, &eachLinks)
					fits, out := totals.Add(pass)
					if !fits {
						require.Zero(t, out)
						write()
						fits, out = totals.Add(pass)
						require.True(t, fits, "a single pass always fits")
					}
					overflowed += out
					if random.IntN(20) == 0 {
						write()
					}
				}
				write()
				require.True(t, totals.Empty())
				require.Equal(t, of, overflowed)
				want, got := addUp(t, each), addUp(t, together)
				require.Len(t, got, len(want))
				for metric, a := range want {
					b := got[metric]
					require.NotNil(t, b, metric)
					require.LessOrEqual(t, b.points, a.points)
					require.Equal(t, a.start, b.start)
					require.Equal(t, a.last, b.last)
					require.Equal(t, a.count, b.count)
					require.Equal(t, a.buckets, b.buckets)
					if math.IsInf(a.sum, 0) { // of several points, each finite
						require.Equal(t, a.sum, b.sum)
					} else {
						require.InEpsilon(t, 1+a.sum, 1+b.sum, 1e-12)
					}
					require.Equal(t, a.min, b.min)
					require.Equal(t, a.max, b.max)
					require.Equal(t, a.ints, b.ints, "modulo 2⁶⁴")
				}
				require.Equal(t, eachLinks, togetherLinks)
			}
		})
	}
}

// TestTotalsStopAtTheRange: what would leave its range begins a new point.
func TestTotalsStopAtTheRange(t *testing.T) {
	duration := func(wall float64, decodes, prefill int64) Record {
		return Record{WallTime: wall, Scheduled: Requests{NumDecodeRequests: decodes, SumPrefillTokens: prefill}}
	}
	size := int64(160)
	// 1 is the upper bound of bucket -1.
	inside, outside := 0.999*math.Pow(2, float64(size-1)/8), math.Pow(2, float64(size)/8)
	for name, test := range map[string]struct {
		form          *HistogramForm
		first, second Record
		fits          bool
	}{
		"prefill tokens that just fit":  {explicit(), duration(0, 0, math.MaxInt64-1), duration(0, 0, 1), true},
		"prefill tokens one too many":   {explicit(), duration(0, 0, math.MaxInt64), duration(0, 0, 1), false},
		"decode tokens one too many":    {explicit(), duration(0, math.MaxInt64, 0), duration(0, 1, 0), false},
		"sum that just fits":            {explicit(), duration(math.MaxFloat64/2, 0, 0), duration(math.MaxFloat64/2, 0, 0), true},
		"sum too large":                 {explicit(), duration(math.MaxFloat64, 0, 0), duration(math.MaxFloat64/2, 0, 0), false},
		"weighted sum too large":        {explicit(), duration(1e300, 1e8, 0), duration(1e300, 1e8, 0), false},
		"an overflow and a duration":    {explicit(), duration(1e300, 1e10, 0), duration(1, 1, 0), true},
		"the same bucket":               {ExponentialForm(160), duration(1, 1, 0), duration(1, 1, 0), true},
		"as many buckets as allowed":    {ExponentialForm(160), duration(1, 1, 0), duration(inside, 1, 0), true},
		"one bucket more":               {ExponentialForm(160), duration(1, 1, 0), duration(outside, 1, 0), false},
		"as many, downwards":            {ExponentialForm(160), duration(inside, 1, 0), duration(1, 1, 0), true},
		"one more, downwards":           {ExponentialForm(160), duration(outside, 1, 0), duration(1, 1, 0), false},
		"one more, but of no weight":    {ExponentialForm(160), duration(1, 1, 0), duration(0, 5, 0), true},
		"all buckets of a small form":   {ExponentialForm(1), duration(1e-300, 1, 0), duration(1e300, 1, 0), false},
		"explicit bounds take anything": {explicit(), duration(1e-300, 1, 0), duration(1e300, 1, 0), true},
	} {
		t.Run(name, func(t *testing.T) {
			totals := NewTotals(test.form)
			fits, _ := totals.Add(Pass{Record: &test.first, Time: began + ms})
			require.True(t, fits)
			before := totals.last
			fits, _ = totals.Add(Pass{Record: &test.second, Time: began + 2*ms})
			assert.Equal(t, test.fits, fits)
			if !fits {
				assert.Equal(t, before, totals.last, "nothing was added")
			}
		})
	}
}

func TestPointOfSeveralPasses(t *testing.T) {
	scope := pmetric.NewScopeMetrics()
	worker, links := NewWorkerMetrics(scope, explicit(), 0), Links{Began: began}
	totals := NewTotals(explicit())
	for i, pass := range []Record{
		{WallTime: 0.02, Scheduled: Requests{NumDecodeRequests: 3, SumPrefillTokens: 100}},
		{WallTime: 0.005, Scheduled: Requests{NumDecodeRequests: 2}},
		{WallTime: 0.03},
		{Scheduled: Requests{SumPrefillTokens: 7}}, // not timed
	} {
		fits, _ := totals.Add(Pass{Record: &pass, Time: began + pcommon.Timestamp(i+1)*ms})
		require.True(t, fits)
	}
	worker.Write(totals, RankAttributes{DPRank: 3}, &links)
	assert.Equal(t, []string{
		"fpm.step.duration s Delta histogram: rank 3 @1000-1003 = count 3 sum 0.055 min 0.005 max 0.03 bounds [0.01 0.025 0.05] counts [1 1 1 0]",
		"fpm.decode.token_latency s Delta histogram: rank 3 @1000-1002 = count 5 sum 0.07 min 0.005 max 0.02 bounds [0.01 0.025 0.05] counts [2 3 0 0]",
		"fpm.prefill.tokens {token} monotonic Delta sum: rank 3 @1000-1004 = 107",
		"fpm.decode.tokens {token} monotonic Delta sum: rank 3 @1000-1004 = 5",
	}, lines(scope))
}

func TestAddingUpAllocatesNothing(t *testing.T) {
	record := decodeValid(t, fixture(t, "dynamo_vllm_v1"))
	for name, form := range forms() {
		totals, at := NewTotals(form), began
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			at += ms
			totals.Add(Pass{Record: &record, Time: at})
		}), name)
	}
}

// A copy says the same as the original, and what is added to one is not in the other.
func TestTotalsCopyTo(t *testing.T) {
	for name, form := range forms() {
		t.Run(name, func(t *testing.T) {
			pass := func(seconds float64, tokens int64, at pcommon.Timestamp) Pass {
				return Pass{Record: &Record{WallTime: seconds, Scheduled: Requests{NumDecodeRequests: tokens}}, Time: began + at}
			}
			written := func(totals *Totals) map[string]*seriesTotal {
				scope := pmetric.NewScopeMetrics()
				if !totals.Empty() {
					NewWorkerMetrics(scope, form, 0).Write(totals, RankAttributes{}, &Links{Began: began})
				}
				return addUp(t, scope)
			}
			original, dst := NewTotals(form), NewTotals(form)
			original.Add(pass(0.01, 3, 1))
			original.Add(pass(0.1, 2, 2))
			for range 2 { // the second time into memory that is there
				dst.Add(pass(5, 1, 3))
				original.CopyTo(dst)
				dst.Add(pass(0.01, 7, 4))
				copied := written(dst)
				assert.EqualValues(t, 12, copied[MetricDecodeTokens].ints)
				assert.EqualValues(t, 3, copied[MetricStepDuration].count)
				assert.Len(t, copied[MetricStepDuration].buckets, 2)
				assert.True(t, dst.Empty(), "writing empties")
			}
			dst.Add(pass(5, 1, 5))
			of := written(original)
			assert.EqualValues(t, 5, of[MetricDecodeTokens].ints)
			assert.EqualValues(t, 2, of[MetricStepDuration].count)
			assert.EqualValues(t, 5, of[MetricDecodeTokenLatency].count)
			assert.InDelta(t, 0.01, of[MetricStepDuration].min, 0)
			assert.InDelta(t, 0.1, of[MetricStepDuration].max, 0)
		})
	}
}

// Totals of many buckets leave no memory of them in a copy that has few.
func TestTotalsCopyToKeepsLittle(t *testing.T) {
	form := ExponentialForm(2000)
	wide, dst := NewTotals(form), NewTotals(form)
	for at, seconds := range []float64{0.001, 10} {
		wide.Add(Pass{Record: &Record{WallTime: seconds, Scheduled: Requests{NumDecodeRequests: 1}}, Time: began + pcommon.Timestamp(at)})
	}
	wide.CopyTo(dst)
	require.Greater(t, cap(dst.step.counts), 256)
	NewTotals(form).CopyTo(dst)
	assert.LessOrEqual(t, cap(dst.step.counts), 256)
	assert.LessOrEqual(t, cap(dst.tokenLatency.counts), 256)
}
