// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// These tests count time in milliseconds.
const ms = pcommon.Timestamp(1_000_000)

// began is when the streams of these tests began.
const began = 1000 * ms

// worker makes the metrics of one worker from passes at the given times.
type worker struct {
	t     *testing.T
	scope pmetric.ScopeMetrics
	*WorkerMetrics
	links map[int64]*Links
}

func newWorker(t *testing.T, form *HistogramForm) *worker {
	scope := pmetric.NewScopeMetrics()
	return &worker{t: t, scope: scope, WorkerMetrics: NewWorkerMetrics(scope, form, 8), links: map[int64]*Links{}}
}

// pass adds the points of a record and returns the number of overflows.
func (w *worker) pass(record Record, time pcommon.Timestamp) int {
	links := w.links[record.DPRank]
	if links == nil {
		links = &Links{Began: began}
		w.links[record.DPRank] = links
	}
	return w.Pass(Pass{Record: &record, Time: time, CounterStart: began}, links)
}

// finish returns the lines of the batch.
func (w *worker) finish() []string {
	assertSound(w.t, w.scope)
	return lines(w.scope)
}

func explicit() *HistogramForm { return ExplicitForm([]float64{0.01, 0.025, 0.05}) }

func TestMetricsOfAPass(t *testing.T) {
	w := newWorker(t, explicit())
	assert.Zero(t, w.pass(validRecord(), 1200*ms))
	w.Lost(RankAttributes{DPRank: 3}, Lost{Total: 17, Start: began}, 1200*ms)
	assert.Equal(t, []string{
		"fpm.scheduled.prefill.requests {request} gauge: rank 3 @1200 = 2",
		"fpm.scheduled.prefill.tokens {token} gauge: rank 3 @1200 = 2048",
		"fpm.scheduled.prefill.length.variance {token^2} gauge: rank 3 @1200 = 1.5 double",
		"fpm.scheduled.prefill.kv_tokens {token} gauge: rank 3 @1200 = 300",
		"fpm.scheduled.decode.requests {request} gauge: rank 3 @1200 = 96",
		"fpm.scheduled.decode.kv_tokens {token} gauge: rank 3 @1200 = 70000",
		"fpm.scheduled.decode.kv_tokens.variance {token^2} gauge: rank 3 @1200 = 2.5 double",
		"fpm.queued.prefill.requests {request} gauge: rank 3 @1200 = 5",
		"fpm.queued.prefill.tokens {token} gauge: rank 3 @1200 = 6000",
		"fpm.queued.prefill.length.variance {token^2} gauge: rank 3 @1200 = 3.5 double",
		"fpm.queued.decode.requests {request} gauge: rank 3 @1200 = 7",
		"fpm.queued.decode.kv_tokens {token} gauge: rank 3 @1200 = 8000",
		"fpm.queued.decode.kv_tokens.variance {token^2} gauge: rank 3 @1200 = 4.5 double",
		"fpm.messages {message} monotonic Cumulative sum: rank 3 @1000-1200 = 1234",
		"fpm.step.duration s Delta histogram: rank 3 @1000-1200 = count 1 sum 0.025 min 0.025 max 0.025 bounds [0.01 0.025 0.05] counts [0 1 0 0]",
		"fpm.decode.token_latency s Delta histogram: rank 3 @1000-1200 = count 96 sum 2.4 min 0.025 max 0.025 bounds [0.01 0.025 0.05] counts [0 96 0 0]",
		"fpm.prefill.tokens {token} monotonic Delta sum: rank 3 @1000-1200 = 2048",
		"fpm.decode.tokens {token} monotonic Delta sum: rank 3 @1000-1200 = 96",
		"fpm.messages.lost {message} monotonic Cumulative sum: rank 3 @1000-1200 = 17",
	}, w.finish())
}

func TestMetricsOfAPassExponential(t *testing.T) {
	w := newWorker(t, ExponentialForm(160))
	assert.Zero(t, w.pass(validRecord(), 1200*ms))
	got := w.finish()
	// 0.025 lies in bucket -43 of base 2^(1/8): (0.0241…, 0.0262…].
	assert.Contains(t, got, "fpm.step.duration s Delta exponential histogram: rank 3 @1000-1200 = count 1 sum 0.025 min 0.025 max 0.025 scale 3 zero 0 positive -43 [1] negative []")
	assert.Contains(t, got, "fpm.decode.token_latency s Delta exponential histogram: rank 3 @1000-1200 = count 96 sum 2.4 min 0.025 max 0.025 scale 3 zero 0 positive -43 [96] negative []")
	assert.Len(t, got, 18)
}

func TestMetricsWithoutAnObservation(t *testing.T) {
	heartbeat := validRecord()
	heartbeat.WallTime, heartbeat.Scheduled, heartbeat.Queued = 0, Requests{}, Requests{}
	untimed := validRecord()
	untimed.WallTime = 0
	timedIdle := heartbeat
	timedIdle.WallTime = 0.02
	prefillOnly := validRecord()
	prefillOnly.Scheduled.NumDecodeRequests = 0

	for name, test := range map[string]struct {
		record       Record
		step, tokens bool
		prefill      int64
		decode       int64
	}{
		"heartbeat":                         {heartbeat, false, false, 0, 0},
		"untimed pass":                      {untimed, false, false, 2048, 96},
		"wall_time with all counts 0":       {timedIdle, true, false, 0, 0},
		"pass without decode requests":      {prefillOnly, true, false, 2048, 0},
		"pass with prefills and decodes":    {validRecord(), true, true, 2048, 96},
		"negative zero is not a duration":   {with(untimed, func(r *Record) { r.WallTime = math.Copysign(0, -1) }), false, false, 2048, 96},
		"the smallest duration is observed": {with(untimed, func(r *Record) { r.WallTime = math.SmallestNonzeroFloat64 }), true, true, 2048, 96},
	} {
		t.Run(name, func(t *testing.T) {
			for formName, form := range map[string]*HistogramForm{"explicit": explicit(), "exponential": ExponentialForm(160)} {
				w := newWorker(t, form)
				assert.Zero(t, w.pass(test.record, 1200*ms))
				got := strings.Join(w.finish(), "\n")
				assert.Equal(t, test.step, strings.Contains(got, "fpm.step.duration"), formName)
				assert.Equal(t, test.tokens, strings.Contains(got, "fpm.decode.token_latency"), formName)
				assert.Contains(t, got, fmt.Sprintf("fpm.prefill.tokens {token} monotonic Delta sum: rank 3 @1000-1200 = %d\n", test.prefill))
				assert.Contains(t, got+"\n", fmt.Sprintf("fpm.decode.tokens {token} monotonic Delta sum: rank 3 @1000-1200 = %d\n", test.decode))
				assert.Contains(t, got, "fpm.messages {message} monotonic Cumulative sum: rank 3 @1000-1200 = 1234\n")
				assert.Equal(t, Gauges, strings.Count(got, "} gauge:"))
				assert.NotContains(t, got, "fpm.messages.lost")
			}
		})
	}
}

// Delta points of one series follow each other without a gap, whatever lies
// between them.
func TestMetricsContiguousDeltas(t *testing.T) {
	heartbeat := with(validRecord(), func(r *Record) { r.WallTime, r.Scheduled, r.Queued = 0, Requests{}, Requests{} })
	prefill := with(validRecord(), func(r *Record) { r.Scheduled.NumDecodeRequests = 0 })
	overflow := with(validRecord(), func(r *Record) { r.WallTime = math.MaxFloat64 })

	w := newWorker(t, explicit())
	w.pass(heartbeat, 1100*ms)
	w.pass(validRecord(), 1200*ms)
	w.pass(heartbeat, 1300*ms)
	w.pass(prefill, 1400*ms)
	w.pass(heartbeat, 1500*ms)
	assert.Equal(t, 1, w.pass(overflow, 1600*ms))
	w.pass(validRecord(), 1700*ms)
	assert.ElementsMatch(t, []string{
		"fpm.step.duration: 1000-1200 1200-1400 1400-1600 1600-1700",
		"fpm.decode.token_latency: 1000-1200 1200-1700",
		"fpm.prefill.tokens: 1000-1100 1100-1200 1200-1300 1300-1400 1400-1500 1500-1600 1600-1700",
		"fpm.decode.tokens: 1000-1100 1100-1200 1200-1300 1300-1400 1400-1500 1500-1600 1600-1700",
	}, spans(w.finish(), "Delta"))

	// The next batch goes on with the same links.
	next := newWorker(t, explicit())
	next.links = w.links
	next.pass(prefill, 1800*ms)
	next.pass(validRecord(), 1900*ms)
	assert.ElementsMatch(t, []string{
		"fpm.step.duration: 1700-1800 1800-1900",
		"fpm.decode.token_latency: 1700-1900",
		"fpm.prefill.tokens: 1700-1800 1800-1900",
		"fpm.decode.tokens: 1700-1800 1800-1900",
	}, spans(next.finish(), "Delta"))

	// New links begin a new stream.
	again := newWorker(t, explicit())
	again.links[3] = &Links{Began: 2000 * ms}
	again.pass(validRecord(), 2100*ms)
	assert.Equal(t, []string{
		"fpm.step.duration: 2000-2100",
		"fpm.decode.token_latency: 2000-2100",
		"fpm.prefill.tokens: 2000-2100",
		"fpm.decode.tokens: 2000-2100",
	}, spans(again.finish(), "Delta"))
}

// A caller whose batch was refused keeps the old value of the links.
func TestLinksAreAValue(t *testing.T) {
	links := Links{Began: began}
	kept := links
	record := validRecord()
	NewWorkerMetrics(pmetric.NewScopeMetrics(), explicit(), 1).Pass(Pass{Record: &record, Time: 1200 * ms}, &links)
	assert.NotEqual(t, kept, links)
	assert.Equal(t, Links{Began: began}, kept)
}

func TestMetricsOverflow(t *testing.T) {
	for name, test := range map[string]struct {
		wallTime float64
		weight   int64
		want     int
	}{
		"largest sum":              {math.MaxFloat64, 1, 0},
		"twice the largest":        {math.MaxFloat64, 2, 1},
		"large weight":             {1e300, math.MaxInt64, 1},
		"largest weight that fits": {1e289, math.MaxInt64, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for _, form := range []*HistogramForm{explicit(), ExponentialForm(160)} {
				w := newWorker(t, form)
				record := with(validRecord(), func(r *Record) { r.WallTime, r.Scheduled.NumDecodeRequests = test.wallTime, test.weight })
				assert.Equal(t, test.want, w.pass(record, 1200*ms))
				got := strings.Join(w.finish(), "\n")
				assert.Contains(t, got, "fpm.step.duration")
				assert.Equal(t, test.want == 0, strings.Contains(got, "fpm.decode.token_latency"))
				assert.Contains(t, got, fmt.Sprintf("fpm.decode.tokens {token} monotonic Delta sum: rank 3 @1000-1200 = %d", test.weight))
			}
		})
	}
}

func TestMetricsOfTwoRanks(t *testing.T) {
	other := with(validRecord(), func(r *Record) { r.DPRank, r.CounterID, r.Scheduled.SumPrefillTokens = 4, 9, 1 })
	w := newWorker(t, explicit())
	w.pass(validRecord(), 1200*ms)
	w.pass(other, 1201*ms)
	w.pass(validRecord(), 1300*ms)
	w.Lost(RankAttributes{DPRank: 3}, Lost{Total: 0, Start: began}, 1300*ms)
	w.Lost(RankAttributes{DPRank: 4}, Lost{Total: 2, Start: 1100 * ms}, 1201*ms)
	got := w.finish()
	assert.Contains(t, got, "fpm.scheduled.prefill.tokens {token} gauge: rank 3 @1200 = 2048; rank 4 @1201 = 1; rank 3 @1300 = 2048")
	assert.Contains(t, got, "fpm.messages {message} monotonic Cumulative sum: rank 3 @1000-1200 = 1234; rank 4 @1000-1201 = 9; rank 3 @1000-1300 = 1234")
	assert.Contains(t, got, "fpm.messages.lost {message} monotonic Cumulative sum: rank 3 @1000-1300 = 0; rank 4 @1100-1201 = 2")
	assert.Contains(t, got, "fpm.prefill.tokens {token} monotonic Delta sum: rank 3 @1000-1200 = 2048; rank 4 @1000-1201 = 1; rank 3 @1200-1300 = 2048")
	assert.Len(t, got, len(Metrics))
}

func TestMetricsTimingScope(t *testing.T) {
	for name, test := range map[string]struct {
		scope string
		has   bool
		want  map[string]any
	}{
		"absent": {"", false, map[string]any{"fpm.dp_rank": int64(3)}},
		"empty":  {"", true, map[string]any{"fpm.dp_rank": int64(3), "fpm.timing_scope": ""}},
		"given":  {"model_step_cuda", true, map[string]any{"fpm.dp_rank": int64(3), "fpm.timing_scope": "model_step_cuda"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, form := range []*HistogramForm{explicit(), ExponentialForm(160)} {
				w := newWorker(t, form)
				record := with(validRecord(), func(r *Record) { r.TimingScope, r.HasTimingScope = test.scope, test.has })
				w.pass(record, 1200*ms)
				w.Lost(record.Attributes(), Lost{Start: began}, 1200*ms)
				w.Stale(record.Attributes(), 1300*ms)
				w.finish()
				points := 0
				eachPoint(w.scope, func(_ pmetric.Metric, attributes pcommon.Map) {
					points++
					assert.Equal(t, test.want, attributes.AsRaw())
				})
				assert.Equal(t, len(Metrics)+Gauges, points)
			}
		})
	}
}

func TestMetricsOfAStaleRank(t *testing.T) {
	w := newWorker(t, explicit())
	w.pass(validRecord(), 1200*ms)
	w.Stale(RankAttributes{DPRank: 4}, 1300*ms)
	w.Stale(RankAttributes{DPRank: 5}, 1301*ms)
	got := w.finish()
	require.Len(t, got, 18+2*Gauges)
	for i := range Gauges {
		metric := &Metrics[i]
		assert.Equal(t, fmt.Sprintf("%s %s gauge: rank 4 @1300 = stale", metric.Name, metric.Unit), got[18+i])
		assert.Equal(t, fmt.Sprintf("%s %s gauge: rank 5 @1301 = stale", metric.Name, metric.Unit), got[18+Gauges+i])
	}

	alone := newWorker(t, explicit())
	alone.Stale(RankAttributes{DPRank: 4}, 1300*ms)
	assert.Len(t, alone.finish(), Gauges)
}

func TestMetricsWithoutPoints(t *testing.T) {
	assert.Empty(t, newWorker(t, explicit()).finish())
	assert.Empty(t, newWorker(t, ExponentialForm(160)).finish())
}

func TestAppendEndpointUp(t *testing.T) {
	scope := pmetric.NewScopeMetrics()
	AppendEndpointUp(scope, "tcp://gpu-7:20380", true, 1200*ms)
	AppendEndpointUp(scope, "tcp://gpu-7:20381", false, 1200*ms)
	require.Equal(t, []string{
		"fpm.endpoint.up  gauge: tcp://gpu-7:20380 @1200 = 1",
		"fpm.endpoint.up  gauge: tcp://gpu-7:20381 @1200 = 0",
	}, lines(scope))
	assert.Equal(t, map[string]any{"fpm.endpoint": "tcp://gpu-7:20380"}, scope.Metrics().At(0).Gauge().DataPoints().At(0).Attributes().AsRaw())
	assert.NotEmpty(t, scope.Metrics().At(0).Description())
}

func with(record Record, change func(*Record)) Record {
	change(&record)
	return record
}

// assertSound holds what is true of every batch: no empty metric, no NaN, no
// unspecified temporality, names and descriptions from the table, one non-zero
// bucket an observation.
func assertSound(t testing.TB, scope pmetric.ScopeMetrics) {
	for _, metric := range scope.Metrics().All() {
		i := slices.IndexFunc(Metrics, func(m Metric) bool { return m.Name == metric.Name() })
		require.GreaterOrEqual(t, i, 0, metric.Name())
		assert.Equal(t, Metrics[i].Description, metric.Description())
		assert.Equal(t, Metrics[i].Unit, metric.Unit())
		switch metric.Type() {
		case pmetric.MetricTypeGauge:
			assert.NotZero(t, metric.Gauge().DataPoints().Len())
		case pmetric.MetricTypeSum:
			assert.NotZero(t, metric.Sum().DataPoints().Len())
			assert.True(t, metric.Sum().IsMonotonic())
			assert.NotEqual(t, pmetric.AggregationTemporalityUnspecified, metric.Sum().AggregationTemporality())
		case pmetric.MetricTypeHistogram:
			assert.NotZero(t, metric.Histogram().DataPoints().Len())
			assert.Equal(t, pmetric.AggregationTemporalityDelta, metric.Histogram().AggregationTemporality())
			for _, point := range metric.Histogram().DataPoints().All() {
				assertOneBucket(t, point.BucketCounts().AsRaw(), point.Count())
				assert.Equal(t, point.Min(), point.Max())
				assert.False(t, math.IsNaN(point.Sum()) || math.IsInf(point.Sum(), 0))
			}
		case pmetric.MetricTypeExponentialHistogram:
			assert.NotZero(t, metric.ExponentialHistogram().DataPoints().Len())
			assert.Equal(t, pmetric.AggregationTemporalityDelta, metric.ExponentialHistogram().AggregationTemporality())
			for _, point := range metric.ExponentialHistogram().DataPoints().All() {
				assertOneBucket(t, point.Positive().BucketCounts().AsRaw(), point.Count())
				assert.Equal(t, point.Min(), point.Max())
				assert.False(t, math.IsNaN(point.Sum()) || math.IsInf(point.Sum(), 0))
			}
		default:
			t.Errorf("%s: %s", metric.Name(), metric.Type())
		}
	}
}

func assertOneBucket(t testing.TB, counts []uint64, count uint64) {
	counts = slices.DeleteFunc(counts, func(n uint64) bool { return n == 0 })
	assert.Equal(t, []uint64{count}, counts)
}

// eachPoint visits the attributes of every point.
func eachPoint(scope pmetric.ScopeMetrics, visit func(pmetric.Metric, pcommon.Map)) {
	for _, metric := range scope.Metrics().All() {
		switch metric.Type() {
		case pmetric.MetricTypeGauge:
			for _, point := range metric.Gauge().DataPoints().All() {
				visit(metric, point.Attributes())
			}
		case pmetric.MetricTypeSum:
			for _, point := range metric.Sum().DataPoints().All() {
				visit(metric, point.Attributes())
			}
		case pmetric.MetricTypeHistogram:
			for _, point := range metric.Histogram().DataPoints().All() {
				visit(metric, point.Attributes())
			}
		case pmetric.MetricTypeExponentialHistogram:
			for _, point := range metric.ExponentialHistogram().DataPoints().All() {
				visit(metric, point.Attributes())
			}
		}
	}
}

// lines writes each metric as one line: name, unit, form, and its points with
// their times in milliseconds.
func lines(scope pmetric.ScopeMetrics) []string {
	var result []string
	for _, metric := range scope.Metrics().All() {
		var (
			form   string
			points []string
		)
		switch metric.Type() {
		case pmetric.MetricTypeGauge:
			form = "gauge"
			for _, point := range metric.Gauge().DataPoints().All() {
				points = append(points, series(point.Attributes())+" @"+span(point.StartTimestamp(), point.Timestamp())+" = "+number(point))
			}
		case pmetric.MetricTypeSum:
			form = metric.Sum().AggregationTemporality().String() + " sum"
			if metric.Sum().IsMonotonic() {
				form = "monotonic " + form
			}
			for _, point := range metric.Sum().DataPoints().All() {
				points = append(points, series(point.Attributes())+" @"+span(point.StartTimestamp(), point.Timestamp())+" = "+number(point))
			}
		case pmetric.MetricTypeHistogram:
			form = metric.Histogram().AggregationTemporality().String() + " histogram"
			for _, point := range metric.Histogram().DataPoints().All() {
				points = append(points, fmt.Sprintf("%s @%s = count %d sum %.6g min %v max %v bounds %v counts %v",
					series(point.Attributes()), span(point.StartTimestamp(), point.Timestamp()),
					point.Count(), point.Sum(), point.Min(), point.Max(), point.ExplicitBounds().AsRaw(), point.BucketCounts().AsRaw()))
			}
		case pmetric.MetricTypeExponentialHistogram:
			form = metric.ExponentialHistogram().AggregationTemporality().String() + " exponential histogram"
			for _, point := range metric.ExponentialHistogram().DataPoints().All() {
				points = append(points, fmt.Sprintf("%s @%s = count %d sum %.6g min %v max %v scale %d zero %d positive %d %v negative %v",
					series(point.Attributes()), span(point.StartTimestamp(), point.Timestamp()),
					point.Count(), point.Sum(), point.Min(), point.Max(), point.Scale(), point.ZeroCount(),
					point.Positive().Offset(), point.Positive().BucketCounts().AsRaw(), point.Negative().BucketCounts().AsRaw()))
			}
		}
		result = append(result, fmt.Sprintf("%s %s %s: %s", metric.Name(), metric.Unit(), form, strings.Join(points, "; ")))
	}
	return result
}

func series(attributes pcommon.Map) string {
	if endpoint, ok := attributes.Get("fpm.endpoint"); ok {
		return endpoint.Str()
	}
	rank, _ := attributes.Get("fpm.dp_rank")
	return fmt.Sprintf("rank %d", rank.Int())
}

func span(start, time pcommon.Timestamp) string {
	if start == 0 {
		return fmt.Sprint(uint64(time / ms))
	}
	return fmt.Sprintf("%d-%d", start/ms, time/ms)
}

func number(point pmetric.NumberDataPoint) string {
	switch {
	case point.Flags().NoRecordedValue() && point.ValueType() == pmetric.NumberDataPointValueTypeEmpty:
		return "stale"
	case point.ValueType() == pmetric.NumberDataPointValueTypeInt:
		return fmt.Sprint(point.IntValue())
	case point.ValueType() == pmetric.NumberDataPointValueTypeDouble:
		return fmt.Sprint(point.DoubleValue()) + " double"
	default:
		return "nothing"
	}
}

// spans keeps the times of the metrics of one form.
func spans(lines []string, form string) []string {
	var result []string
	for _, line := range lines {
		head, points, _ := strings.Cut(line, ": ")
		if !strings.Contains(head, form) {
			continue
		}
		name, _, _ := strings.Cut(head, " ")
		text := name + ":"
		for point := range strings.SplitSeq(points, "; ") {
			_, rest, _ := strings.Cut(point, "@")
			times, _, _ := strings.Cut(rest, " ")
			text += " " + times
		}
		result = append(result, text)
	}
	return result
}
