// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// stream is a batch of forward passes as a receiver sends it: by worker, in
// the order of arrival.
type stream struct {
	form    *HistogramForm
	metrics pmetric.Metrics
	logs    plog.Logs
}

func newStream(form *HistogramForm) *stream {
	return &stream{form: form, metrics: pmetric.NewMetrics(), logs: plog.NewLogs()}
}

func workerResource(dst pcommon.Resource, worker string) {
	dst.Attributes().PutStr(AttrServiceNamespace, "default")
	dst.Attributes().PutStr(AttrServiceName, "backend")
	dst.Attributes().PutStr(AttrServiceInstanceID, "instance of "+worker)
	dst.Attributes().PutStr(AttrWorkerID, worker)
}

// worker adds one worker's passes in both forms, with the points that come
// along in practice: losses and a stale rank.
func (s *stream) worker(worker string, records []Record, times []pcommon.Timestamp) {
	resourceMetrics := s.metrics.ResourceMetrics().AppendEmpty()
	workerResource(resourceMetrics.Resource(), worker)
	resourceLogs := s.logs.ResourceLogs().AppendEmpty()
	workerResource(resourceLogs.Resource(), worker)
	scopeLogs := resourceLogs.ScopeLogs().AppendEmpty()
	bodies := NewBodyWriter()

	builder := NewWorkerMetrics(resourceMetrics.ScopeMetrics().AppendEmpty(), s.form, len(records))
	links := map[int64]*Links{}
	for i := range records {
		record := &records[i]
		rank := record.DPRank
		if links[rank] == nil {
			links[rank] = &Links{Began: times[0] - 1}
		}
		builder.Pass(Pass{Record: record, Time: times[i], CounterStart: times[0] - 1}, links[rank])
		AppendLog(scopeLogs, bodies, record, record.CounterID, times[i])
	}
	builder.Lost(records[0].Attributes(), Lost{Total: 3, Start: 1}, times[len(times)-1])
	builder.Stale(RankAttributes{DPRank: 99}, times[len(times)-1])
}

func randomRecord(t testing.TB, random *rand.Rand, worker string, rank, counter int64) Record {
	count := func() any {
		switch random.IntN(4) {
		case 0:
			return 0
		case 1:
			return int64(math.MaxInt64)
		default:
			return random.Int64N(100_000)
		}
	}
	measure := func() any {
		switch random.IntN(5) {
		case 0:
			return 0.0
		case 1:
			return math.Float64frombits(random.Uint64() & (1<<63 - 1) % math.Float64bits(math.MaxFloat64))
		default:
			return random.ExpFloat64()
		}
	}
	body := pairs{"version", 1, "worker_id", worker, "dp_rank", rank, "counter_id", counter}
	if random.IntN(2) == 0 {
		body = append(body, "timing_scope", "model_step_cuda")
	}
	body = append(body, "wall_time", measure(),
		"scheduled_requests", pairs{
			"num_prefill_requests", count(), "sum_prefill_tokens", count(), "var_prefill_length", measure(), "sum_prefill_kv_tokens", count(),
			"num_decode_requests", count(), "sum_decode_kv_tokens", count(), "var_decode_kv_tokens", measure(),
		},
		"queued_requests", pairs{
			"num_prefill_requests", count(), "sum_prefill_tokens", count(), "var_prefill_length", measure(),
			"num_decode_requests", count(), "sum_decode_kv_tokens", count(), "var_decode_kv_tokens", measure(),
		})
	record, err := NewDecoder(false).Decode(encodePayload(t, body), counter)
	require.NoError(t, err)
	return record
}

func rowsOfLogs(t *testing.T, logs plog.Logs) (rows []string) {
	t.Helper()
	for _, resource := range logs.ResourceLogs().All() {
		for _, entry := range resource.ScopeLogs().At(0).LogRecords().All() {
			envelope := Envelope{
				Source: SourceOf(resource.Resource()), CaptureMode: CaptureFull,
				ObservedAt: int64(entry.ObservedTimestamp()) / 1e6,
			}
			rows = append(rows, rowOf(t, envelope, entry.Body()))
		}
	}
	return rows
}

func rowsOfMetrics(t *testing.T, passes []Rebuilt) (rows []string) {
	t.Helper()
	for i := range passes {
		pass := &passes[i]
		require.Equal(t, Complete, pass.Completeness(), pass.Missing())
		require.NoError(t, ValidateRecord(&pass.Record))
		envelope := Envelope{Source: pass.Source, CaptureMode: CaptureFull, ObservedAt: int64(pass.Time) / 1e6}
		rows = append(rows, string(AppendRow(nil, 1250, AppendRecordEvent(nil, &envelope, &pass.Record))))
	}
	return rows
}

// TestMetricsAndLogsGiveTheSameRows: for version 1 records the two ways into a
// trace lead to the same text, whatever the stream.
func TestMetricsAndLogsGiveTheSameRows(t *testing.T) {
	for name, form := range map[string]*HistogramForm{
		"explicit": ExplicitForm([]float64{0.01, 0.1, 1}), "exponential": ExponentialForm(160),
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(3, 4))
			reconstructor := NewReconstructor()
			for range 100 {
				stream := newStream(form)
				for worker := range 1 + random.IntN(3) {
					var (
						records []Record
						times   []pcommon.Timestamp
						now     = pcommon.Timestamp(1782777601250000000)
					)
					for i := range 1 + random.Int64N(40) {
						now += pcommon.Timestamp(random.Int64N(2) * 1e6) // ranks may share a time
						if i > 0 && records[i-1].DPRank == i%3 {
							now += 1e6
						}
						records = append(records, randomRecord(t, random, "w"+strconv.Itoa(worker), i%3, i))
						times = append(times, now)
						if i%3 == 2 {
							now += 1e6
						}
					}
					stream.worker("w"+strconv.Itoa(worker), records, times)
				}
				AppendEndpointUp(stream.metrics.ResourceMetrics().At(0).ScopeMetrics().AppendEmpty(), "tcp://gpu-7:20380", true, 1)
				want := rowsOfLogs(t, stream.logs)
				got := rowsOfMetrics(t, reconstructor.Metrics(stream.metrics))
				require.Equal(t, want, got)
			}
		})
	}
}

// oneWorker is a batch of two passes of one rank.
func oneWorker(t *testing.T) pmetric.Metrics {
	random := rand.New(rand.NewPCG(5, 6))
	records := []Record{randomRecord(t, random, "w", 0, 1), randomRecord(t, random, "w", 0, 2)}
	for i := range records {
		records[i].WallTime = 0.5
		records[i].Scheduled.NumDecodeRequests = 2
		records[i].HasTimingScope = false
	}
	stream := newStream(ExplicitForm([]float64{1}))
	stream.worker("w", records, []pcommon.Timestamp{1e9, 2e9})
	return stream.metrics
}

func metricNamed(t *testing.T, metrics pmetric.Metrics, name string) pmetric.Metric {
	t.Helper()
	for _, metric := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		if metric.Name() == name {
			return metric
		}
	}
	require.Fail(t, "no such metric", name)
	return pmetric.Metric{}
}

func TestReconstructTellsIncompleteAndFoldedApart(t *testing.T) {
	type states []Completeness
	for _, test := range []struct {
		name    string
		change  func(t *testing.T, metrics pmetric.Metrics)
		want    states
		missing string
	}{
		{"as sent", func(*testing.T, pmetric.Metrics) {}, states{Complete, Complete}, ""},
		{"untimed", func(t *testing.T, metrics pmetric.Metrics) {
			metricNamed(t, metrics, MetricStepDuration).Histogram().DataPoints().RemoveIf(func(pmetric.HistogramDataPoint) bool { return true })
		}, states{Complete, Complete}, ""},
		{"a gauge point missing", func(t *testing.T, metrics pmetric.Metrics) {
			drop := true
			metricNamed(t, metrics, "fpm.queued.decode.requests").Gauge().DataPoints().RemoveIf(func(pmetric.NumberDataPoint) bool {
				defer func() { drop = false }()
				return drop
			})
		}, states{Incomplete, Complete}, "the metric fpm.queued.decode.requests"},
		{"the counter missing", func(t *testing.T, metrics pmetric.Metrics) {
			metricNamed(t, metrics, MetricMessages).SetName("other")
		}, states{Incomplete, Incomplete}, "the metric fpm.messages"},
		{"the counter a delta", func(t *testing.T, metrics pmetric.Metrics) {
			metricNamed(t, metrics, MetricMessages).Sum().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		}, states{Incomplete, Incomplete}, "the metric fpm.messages"},
		{"a token sum missing", func(t *testing.T, metrics pmetric.Metrics) {
			metricNamed(t, metrics, MetricDecodeTokens).SetName("other")
		}, states{Incomplete, Incomplete}, "the metric fpm.decode.tokens"},
		{"an int gauge turned float", func(t *testing.T, metrics pmetric.Metrics) {
			metricNamed(t, metrics, "fpm.scheduled.prefill.tokens").Gauge().DataPoints().At(0).SetDoubleValue(1)
		}, states{Incomplete, Complete}, "the metric fpm.scheduled.prefill.tokens"},
		{"a gauge turned sum", func(t *testing.T, metrics pmetric.Metrics) {
			metricNamed(t, metrics, "fpm.scheduled.prefill.tokens").SetEmptySum().DataPoints().AppendEmpty().SetIntValue(1)
		}, states{Incomplete, Incomplete}, "the metric fpm.scheduled.prefill.tokens"},
		{"no rank", func(t *testing.T, metrics pmetric.Metrics) {
			for _, metric := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
				switch metric.Type() {
				case pmetric.MetricTypeGauge:
					for _, point := range metric.Gauge().DataPoints().All() {
						point.Attributes().Clear()
					}
				case pmetric.MetricTypeSum:
					for _, point := range metric.Sum().DataPoints().All() {
						point.Attributes().Clear()
					}
				default:
					for _, point := range metric.Histogram().DataPoints().All() {
						point.Attributes().Clear()
					}
				}
			}
		}, states{Incomplete, Incomplete}, "the attribute fpm.dp_rank"},
		{"a point twice", func(t *testing.T, metrics pmetric.Metrics) {
			points := metricNamed(t, metrics, "fpm.scheduled.prefill.tokens").Gauge().DataPoints()
			points.At(0).CopyTo(points.AppendEmpty())
		}, states{Incomplete, Complete}, "a single point of each metric"},
		{"cumulative token sum", func(t *testing.T, metrics pmetric.Metrics) {
			metricNamed(t, metrics, MetricPrefillTokens).Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		}, states{Folded, Folded}, ""},
		{"cumulative duration", func(t *testing.T, metrics pmetric.Metrics) {
			metricNamed(t, metrics, MetricStepDuration).Histogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		}, states{Folded, Folded}, ""},
		{"cumulative token latency", func(t *testing.T, metrics pmetric.Metrics) {
			metricNamed(t, metrics, MetricDecodeTokenLatency).Histogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		}, states{Folded, Folded}, ""},
		{"durations added up", func(t *testing.T, metrics pmetric.Metrics) {
			metricNamed(t, metrics, MetricStepDuration).Histogram().DataPoints().At(1).SetCount(2)
		}, states{Complete, Folded}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			metrics := oneWorker(t)
			test.change(t, metrics)
			passes := NewReconstructor().Metrics(metrics)
			var got states
			missing := ""
			for i := range passes {
				got = append(got, passes[i].Completeness())
				if got[i] == Incomplete {
					missing = passes[i].Missing()
				}
			}
			assert.Equal(t, test.want, got)
			assert.Equal(t, test.missing, missing)
		})
	}
}

// TestReconstructAcrossResourceEntries: the points of a pass may lie in several
// entries of the same resource, as after a batch processor.
func TestReconstructAcrossResourceEntries(t *testing.T) {
	metrics := oneWorker(t)
	want := rowsOfMetrics(t, NewReconstructor().Metrics(metrics))
	second := metrics.ResourceMetrics().AppendEmpty()
	first := metrics.ResourceMetrics().At(0)
	first.Resource().CopyTo(second.Resource())
	moved := second.ScopeMetrics().AppendEmpty()
	n := 0
	first.ScopeMetrics().At(0).Metrics().RemoveIf(func(metric pmetric.Metric) bool {
		if n++; n%2 == 0 {
			metric.CopyTo(moved.Metrics().AppendEmpty())
			return true
		}
		return false
	})
	assert.Equal(t, want, rowsOfMetrics(t, NewReconstructor().Metrics(metrics)))
}

func TestReconstructIgnoresWhatIsNoPass(t *testing.T) {
	metrics := pmetric.NewMetrics()
	resource := metrics.ResourceMetrics().AppendEmpty()
	workerResource(resource.Resource(), "w")
	scope := resource.ScopeMetrics().AppendEmpty()
	AppendEndpointUp(scope, "tcp://gpu-7:20380", false, 5)
	builder := NewWorkerMetrics(scope, ExplicitForm(nil), 0)
	builder.Lost(RankAttributes{}, Lost{Total: 1}, 5)
	builder.Stale(RankAttributes{}, 5)
	foreign := scope.Metrics().AppendEmpty()
	foreign.SetName("vllm.requests")
	foreign.SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(1)
	assert.Empty(t, NewReconstructor().Metrics(metrics))
}

func TestValidateRecord(t *testing.T) {
	good := randomRecord(t, rand.New(rand.NewPCG(7, 8)), "w", 0, 1)
	require.NoError(t, ValidateRecord(&good))
	for field, spoil := range map[string]func(*Record){
		"scheduled_requests.num_prefill_requests": func(r *Record) { r.Scheduled.NumPrefillRequests = -1 },
		"queued_requests.sum_decode_kv_tokens":    func(r *Record) { r.Queued.SumDecodeKVTokens = -1 },
		"queued_requests.var_prefill_length":      func(r *Record) { r.Queued.VarPrefillLength = math.NaN() },
		"scheduled_requests.var_decode_kv_tokens": func(r *Record) { r.Scheduled.VarDecodeKVTokens = math.Inf(1) },
		"wall_time":    func(r *Record) { r.WallTime = -1 },
		"worker_id":    func(r *Record) { r.WorkerID = "\xff" },
		"timing_scope": func(r *Record) { r.TimingScope = "\xff" },
		"dp_rank":      func(r *Record) { r.DPRank = -1 },
		"counter_id":   func(r *Record) { r.CounterID = -1 },
	} {
		record := good
		spoil(&record)
		var rejected *RejectError
		require.ErrorAs(t, ValidateRecord(&record), &rejected)
		assert.Equal(t, field, rejected.Field)
	}
}
