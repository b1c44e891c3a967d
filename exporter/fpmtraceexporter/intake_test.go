// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// bothSignals makes what the fpm receiver sends for a stream of one worker.
func bothSignals(t *testing.T, producer string, passes int64) (pmetric.Metrics, plog.Logs) {
	t.Helper()
	metrics, logs := pmetric.NewMetrics(), plog.NewLogs()
	resourceMetrics, resourceLogs := metrics.ResourceMetrics().AppendEmpty(), logs.ResourceLogs().AppendEmpty()
	describeWorker(resourceMetrics.Resource(), producer)
	describeWorker(resourceLogs.Resource(), producer)
	builder := fpm.NewWorkerMetrics(resourceMetrics.ScopeMetrics().AppendEmpty(), fpm.ExplicitForm([]float64{0.01, 0.1}), int(passes))
	scope, bodies := resourceLogs.ScopeLogs().AppendEmpty(), fpm.NewBodyWriter()
	links := fpm.Links{Began: 1}
	now := pcommon.Timestamp(1782777601250 * 1e6)
	for counter := range passes {
		now += 20e6
		record, err := fpm.NewDecoder(false).Decode(payload(t, producer, counter), counter)
		require.NoError(t, err)
		builder.Pass(fpm.Pass{Record: &record, Time: now, CounterStart: 1}, &links)
		fpm.AppendLog(scope, bodies, &record, counter, now)
	}
	builder.Lost(fpm.RankAttributes{DPRank: 1}, fpm.Lost{Total: 1, Start: 1}, now)
	builder.Stale(fpm.RankAttributes{DPRank: 2}, now)
	return metrics, logs
}

func payload(t *testing.T, worker string, counter int64) []byte {
	t.Helper()
	var buffer bytes.Buffer
	encoder := msgpack.NewEncoder(&buffer)
	encoder.UseCompactInts(true)
	field := func(key string, value any) {
		require.NoError(t, encoder.EncodeString(key))
		require.NoError(t, encoder.Encode(value))
	}
	require.NoError(t, encoder.EncodeMapLen(7))
	field("version", int64(1))
	field("worker_id", worker)
	field("dp_rank", int64(1))
	field("counter_id", counter)
	field("wall_time", float64(counter)/1024)
	for _, group := range []string{"scheduled_requests", "queued_requests"} {
		require.NoError(t, encoder.EncodeString(group))
		scheduled := group == "scheduled_requests"
		n := 6
		if scheduled {
			n++
		}
		require.NoError(t, encoder.EncodeMapLen(n))
		field("num_prefill_requests", counter%3)
		field("sum_prefill_tokens", counter*512)
		field("var_prefill_length", float64(counter)/3)
		if scheduled {
			field("sum_prefill_kv_tokens", counter*64)
		}
		field("num_decode_requests", counter%7)
		field("sum_decode_kv_tokens", counter*16384)
		field("var_decode_kv_tokens", float64(counter)*1e15)
	}
	return buffer.Bytes()
}

// text reads a segment as it is.
func (r *rig) text(name string) string {
	r.t.Helper()
	file, err := os.Open(filepath.Join(r.dir, name))
	require.NoError(r.t, err)
	defer file.Close()
	reader, err := gzip.NewReader(file)
	require.NoError(r.t, err)
	text, err := io.ReadAll(reader)
	require.NoError(r.t, err)
	return string(text)
}

// TestMetricsAndLogsWriteTheSameRows, and one instance takes both at once.
func TestMetricsAndLogsWriteTheSameRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil).start(nil)
		metrics, logs := bothSignals(t, "4192", 100)
		require.NoError(t, r.metrics.ConsumeMetrics(t.Context(), metrics))
		require.NoError(t, r.logs.ConsumeLogs(t.Context(), logs))
		r.took(200)
		r.stop()
		rows := strings.SplitAfter(r.text("fpm.4192.000000.jsonl.gz"), "\n")
		require.Len(t, rows, 201)
		assert.Equal(t, rows[:100], rows[100:200])
		assert.Empty(t, r.said.All())
	})
}

func TestSampledModeTakesMetrics(t *testing.T) {
	r := newRig(t, sampled).start(nil)
	metrics, _ := bothSignals(t, "4192", 100)
	require.NoError(t, r.metrics.ConsumeMetrics(t.Context(), metrics))
	r.took(100)
	r.stop()
	assert.Equal(t, []int64{99}, counters(r.rows("")))
}

// TestFoldedMetricsAreNamed: fed with what gauge_dedup makes of the stream, the
// exporter says where it belongs, once.
func TestFoldedMetricsAreNamed(t *testing.T) {
	r := newRig(t, nil).start(nil)
	for range 5 {
		metrics, _ := bothSignals(t, "4192", 10)
		fold(metrics)
		require.NoError(t, r.metrics.ConsumeMetrics(t.Context(), metrics))
		r.took(10)
	}
	r.stop()
	assert.Empty(t, r.files())
	assert.Equal(t, int64(5), r.sum("dropped", reasonFolded))
	assert.Equal(t, int64(45), r.sum("dropped", reasonIncomplete))
	require.Len(t, r.said.All(), 1)
	assert.Contains(t, r.said.All()[0].Message, "fpm_trace belongs before gauge_dedup")
}

// fold leaves of each sum and histogram one cumulative point.
func fold(metrics pmetric.Metrics) {
	for _, metric := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		n := 0
		switch metric.Type() {
		case pmetric.MetricTypeSum:
			metric.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			points := metric.Sum().DataPoints()
			last := points.Len()
			points.RemoveIf(func(pmetric.NumberDataPoint) bool { n++; return n < last })
		case pmetric.MetricTypeHistogram:
			metric.Histogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			points := metric.Histogram().DataPoints()
			last := points.Len()
			points.RemoveIf(func(pmetric.HistogramDataPoint) bool { n++; return n < last })
		}
	}
}

func TestIncompleteMetricsAreNamed(t *testing.T) {
	r := newRig(t, nil).start(nil)
	metrics, _ := bothSignals(t, "4192", 3)
	metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().RemoveIf(func(metric pmetric.Metric) bool {
		return metric.Name() == "fpm.queued.prefill.tokens"
	})
	require.NoError(t, r.metrics.ConsumeMetrics(t.Context(), metrics))
	r.took(3)
	r.stop()
	assert.Equal(t, int64(3), r.sum("dropped", reasonIncomplete))
	require.Len(t, r.said.All(), 1)
	assert.Equal(t, "did not come with the metric fpm.queued.prefill.tokens", r.said.All()[0].ContextMap()["error"])
}

// TestForeignMetricsAreIgnored without a word and uncounted.
func TestForeignMetricsAreIgnored(t *testing.T) {
	r := newRig(t, nil).start(nil)
	metrics := pmetric.NewMetrics()
	scope := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty()
	fpm.AppendEndpointUp(scope, "tcp://gpu-7:20380", true, 1)
	foreign := scope.Metrics().AppendEmpty()
	foreign.SetName("vllm.requests")
	foreign.SetEmptySum().DataPoints().AppendEmpty().SetIntValue(1)
	require.NoError(t, r.metrics.ConsumeMetrics(t.Context(), metrics))
	r.stop()
	assert.Empty(t, r.said.All())
	assert.Empty(t, r.files())
}

func TestInvalidMetrics(t *testing.T) {
	r := newRig(t, nil).start(nil)
	metrics, _ := bothSignals(t, "4192", 2)
	metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).SetIntValue(-1)
	require.NoError(t, r.metrics.ConsumeMetrics(t.Context(), metrics))
	r.took(2)
	r.stop()
	assert.Equal(t, int64(1), r.sum("dropped", reasonInvalid))
	assert.Equal(t, []int64{1}, counters(r.rows("")))
}

// TestInvalidBodies: one clear error a producer and reason, and the rest of
// the batch is written.
func TestInvalidBodies(t *testing.T) {
	r := newRig(t, nil).start(nil)
	logs := logsOf("4192", counted(0, 4)...)
	records := logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
	records.At(0).Body().SetStr("not a map")
	records.At(1).Body().Map().PutInt("version", 2)
	records.At(2).Body().Map().PutDouble("wall_time", -1)
	require.NoError(t, r.logs.ConsumeLogs(t.Context(), logs))
	r.took(4)
	r.stop()
	assert.Equal(t, []int64{3}, counters(r.rows("")))
	assert.Equal(t, int64(3), r.sum("dropped", reasonInvalid))
	require.Len(t, r.said.All(), 1)
	said := r.said.All()[0].ContextMap()
	assert.Equal(t, "malformed: wall_time: got -1, want a finite number, 0 or more", said["error"])
	assert.Equal(t, "4192", said["producer_id"])
	assert.Equal(t, int64(3), said["records"])
}

func TestOtherEventsAreIgnored(t *testing.T) {
	r := newRig(t, nil).start(nil)
	logs := logsOf("4192", counted(0, 3)...)
	records := logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
	records.At(0).SetEventName("fpm.benchmark.point")
	records.At(1).SetEventName("") // lost on the way, the body tells
	require.NoError(t, r.logs.ConsumeLogs(t.Context(), logs))
	r.took(2)
	r.stop()
	assert.Equal(t, []int64{1, 2}, counters(r.rows("")))
	assert.Empty(t, r.said.All())
}

// TestCaptureModeTravels: what was sampled once is not called full later.
func TestCaptureModeTravels(t *testing.T) {
	r := newRig(t, nil).start(nil)
	logs := logsOf("4192", counted(0, 3)...)
	records := logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
	records.At(0).Attributes().PutStr(fpm.AttrCaptureMode, fpm.CaptureSampled)
	records.At(1).Attributes().PutStr(fpm.AttrCaptureMode, fpm.CaptureFull)
	require.NoError(t, r.logs.ConsumeLogs(t.Context(), logs))
	r.took(3)
	r.stop()
	var modes []string
	for _, row := range r.rows("") {
		modes = append(modes, row.Event.CaptureMode)
	}
	assert.Equal(t, []string{"sampled", "full", "full"}, modes)
}

func TestObservationTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil).start(nil)
		logs := logsOf("4192", counted(0, 3)...)
		records := logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
		records.At(0).SetObservedTimestamp(1782777601250_999_999)
		records.At(0).SetTimestamp(5e9)
		records.At(1).SetObservedTimestamp(0)
		records.At(1).SetTimestamp(5e9)
		records.At(2).SetObservedTimestamp(0)
		require.NoError(t, r.logs.ConsumeLogs(t.Context(), logs))
		r.took(3)
		now := time.Now().UnixMilli()
		r.stop()
		rows := r.rows("")
		assert.Equal(t, int64(1782777601250), rows[0].Event.ObservedAtUnixMS)
		assert.Equal(t, int64(5000), rows[1].Event.ObservedAtUnixMS)
		assert.Equal(t, now, rows[2].Event.ObservedAtUnixMS)
	})
}

// TestLogLinesAreBounded: a stream of bad input is a line every ten seconds.
func TestLogLinesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil).start(nil)
		bad := logsOf("4192", pass{})
		bad.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Body().SetStr("bad")
		for range 1000 {
			require.NoError(t, r.logs.ConsumeLogs(t.Context(), bad))
			r.took(1)
			time.Sleep(25 * time.Millisecond)
		}
		r.stop()
		require.Len(t, r.said.All(), 3)
		assert.Equal(t, int64(399), r.said.All()[1].ContextMap()["not_shown"])
	})
}

// TestRowIsOneOfDynamos holds the exporter's text against the row's format.
func TestRowIsOneOfDynamos(t *testing.T) {
	r := newRig(t, nil).start(nil)
	_, logs := bothSignals(t, "gpu-7:20380", 1)
	require.NoError(t, r.logs.ConsumeLogs(t.Context(), logs))
	r.took(1)
	r.stop()
	assert.Regexp(t, "^"+regexp.QuoteMeta(`{"timestamp":`)+`\d+`+regexp.QuoteMeta(
		`,"event":{"schema":"dynamo.fpm.trace.v1","source":{"namespace":"default","component":"backend","producer_id":"gpu-7:20380"},`+
			`"capture_mode":"full","observed_at_unix_ms":1782777601270,"fpm":{"version":1,"worker_id":"gpu-7:20380","dp_rank":1,"counter_id":0,"wall_time":0.0,`+
			`"scheduled_requests":{"num_prefill_requests":0,"sum_prefill_tokens":0,"var_prefill_length":0.0,"sum_prefill_kv_tokens":0,`+
			`"num_decode_requests":0,"sum_decode_kv_tokens":0,"var_decode_kv_tokens":0.0},`+
			`"queued_requests":{"num_prefill_requests":0,"sum_prefill_tokens":0,"var_prefill_length":0.0,`+
			`"num_decode_requests":0,"sum_decode_kv_tokens":0,"var_decode_kv_tokens":0.0}}}}`)+"\n$",
		r.text("fpm.gpu-7_20380.000000.jsonl.gz"))
}

// TestAnIntakeLetsGoOfALargeRecord, so that one does not cost memory for ever.
func TestAnIntakeLetsGoOfALargeRecord(t *testing.T) {
	in := newIntake()
	in.logs(logsOf("4192", pass{pad: 4 << 20}), modeFull, func(in *intake) {
		require.Greater(t, cap(in.events), 4<<20)
	})
	assert.Zero(t, cap(in.events))
}

// TestAnIntakeHandsOnPortions: a call of any size takes buffers of one portion,
// and gives every record once and in order.
func TestAnIntakeHandsOnPortions(t *testing.T) {
	metrics, logs := bothSignals(t, "4192", 5000)
	for signal, read := range map[string]func(in *intake, take func(*intake)){
		"logs":    func(in *intake, take func(*intake)) { in.logs(logs, modeFull, take) },
		"metrics": func(in *intake, take func(*intake)) { in.metrics(metrics, modeFull, take) },
	} {
		t.Run(signal, func(t *testing.T) {
			in := newIntake()
			counter, portions := int64(0), 0
			read(in, func(in *intake) {
				portions++
				for i := range in.records {
					require.Equal(t, counter, in.records[i].counter)
					require.Contains(t, string(in.event(&in.records[i])), fmt.Sprintf(`"counter_id":%d,`, counter))
					counter++
				}
				require.Less(t, len(in.events), portionBytes+1000)
			})
			assert.Equal(t, int64(5000), counter)
			assert.Greater(t, portions, 5000*600/(portionBytes+1000))
			assert.LessOrEqual(t, cap(in.events), 2*portionBytes)
		})
	}
}

// TestRefusalsAreHandedOnToo, or a call of nothing else would be kept whole.
func TestRefusalsAreHandedOnToo(t *testing.T) {
	logs := plog.NewLogs()
	records := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for range 5 * portionRefusals {
		records.AppendEmpty().Body().SetStr("no forward pass")
	}
	refused := 0
	newIntake().logs(logs, modeFull, func(in *intake) {
		assert.LessOrEqual(t, len(in.refused), portionRefusals)
		refused += len(in.refused)
	})
	assert.Equal(t, 5*portionRefusals, refused)
}

// TestAddedUpPassesAreNamed: what a receiver with gauge_interval sends is no pass,
// also when all but one of the passes were not timed.
func TestAddedUpPassesAreNamed(t *testing.T) {
	for name, walls := range map[string][]float64{
		"all timed": {0.01, 0.01, 0.01}, "the last timed": {0, 0, 0.01}, "the first timed": {0.01, 0, 0}, "none timed": {0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil).start(nil)
			metrics := pmetric.NewMetrics()
			resource := metrics.ResourceMetrics().AppendEmpty()
			describeWorker(resource.Resource(), "4192")
			form := fpm.ExplicitForm([]float64{1})
			worker := fpm.NewWorkerMetrics(resource.ScopeMetrics().AppendEmpty(), form, 0)
			totals := fpm.NewTotals(form)
			var last fpm.Pass
			for i, wall := range walls {
				record := &fpm.Record{WorkerID: "4192", CounterID: int64(i), WallTime: wall}
				record.Scheduled.SumPrefillTokens, record.Scheduled.NumDecodeRequests = 100, 5
				last = fpm.Pass{Record: record, Time: pcommon.Timestamp(i + 2), CounterStart: 1}
				totals.Add(last)
			}
			worker.Write(totals, last.Record.Attributes(), &fpm.Links{Began: 1})
			worker.Sampled(last)
			require.NoError(t, r.metrics.ConsumeMetrics(t.Context(), metrics))
			r.took(1)
			if walls[0] > 0 && walls[2] == 0 { // the duration has a time of its own
				r.took(1)
			}
			r.stop()
			assert.Zero(t, r.sum("rows", outcomeWritten))
			assert.NotZero(t, r.sum("dropped", reasonFolded))
			require.Equal(t, 1, r.said.Len())
			assert.Contains(t, r.said.All()[0].Message, "gauge_interval")
		})
	}
}

// TestFoldedMetricsBehindOthers: a pass that lacks metrics because others were
// added up is not told of by itself, however large the call is.
func TestFoldedMetricsBehindOthers(t *testing.T) {
	r := newRig(t, nil).start(nil)
	metrics := pmetric.NewMetrics()
	add := func() (scope pmetric.ScopeMetrics) {
		resource := metrics.ResourceMetrics().AppendEmpty()
		describeWorker(resource.Resource(), "4192")
		return resource.ScopeMetrics().AppendEmpty()
	}
	form := fpm.ExplicitForm([]float64{1})
	fpm.NewWorkerMetrics(add(), form, 0).Sampled(fpm.Pass{Record: &fpm.Record{}, Time: 5, CounterStart: 1})
	many, _ := bothSignals(t, "4192", 1000) // more than a portion
	many.ResourceMetrics().MoveAndAppendTo(metrics.ResourceMetrics())
	totals := fpm.NewTotals(form)
	for i := range 2 {
		totals.Add(fpm.Pass{Record: &fpm.Record{WallTime: 1}, Time: pcommon.Timestamp(10 + i)})
	}
	fpm.NewWorkerMetrics(add(), form, 0).Write(totals, fpm.RankAttributes{}, &fpm.Links{Began: 1})
	require.NoError(t, r.metrics.ConsumeMetrics(t.Context(), metrics))
	r.took(1002)
	r.stop()
	require.Equal(t, 1, r.said.Len())
	assert.Equal(t, foldedWarning, r.said.All()[0].Message)
}

// TestRowTextAllocatesNothing once the buffers have grown.
func TestRowTextAllocatesNothing(t *testing.T) {
	metrics, logs := bothSignals(t, "4192", 50)
	in := newIntake()
	records := 0
	count := func(in *intake) { records += len(in.records) }
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		records = 0
		in.logs(logs, modeFull, count)
		in.metrics(metrics, modeFull, count)
	}))
	assert.Equal(t, 100, records)
}
