// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// publicExample is the row of Dynamo's documentation, on one line. It has no
// variances.
const publicExample = `{"timestamp":1250,"event":{"schema":"dynamo.fpm.trace.v1","source":{"namespace":"default","component":"backend","producer_id":"4192"},"capture_mode":"sampled","observed_at_unix_ms":1782777601250,"fpm":{"version":1,"worker_id":"4192","dp_rank":0,"counter_id":42,"wall_time":0.025,"scheduled_requests":{"num_prefill_requests":2,"sum_prefill_tokens":256,"sum_prefill_kv_tokens":64,"num_decode_requests":3,"sum_decode_kv_tokens":1024},"queued_requests":{"num_prefill_requests":1,"sum_prefill_tokens":128,"num_decode_requests":0,"sum_decode_kv_tokens":0}}}}`

func readRow(t testing.TB, line string) Row {
	t.Helper()
	row, _, err := new(RowReader).Read(nil, []byte(line))
	require.NoError(t, err)
	return row
}

func TestReadPublicExample(t *testing.T) {
	row := readRow(t, publicExample)
	assert.Equal(t, Envelope{
		Source:      Source{Namespace: "default", Component: "backend", ProducerID: "4192"},
		CaptureMode: CaptureSampled, ObservedAt: 1782777601250,
	}, row.Envelope)
	assert.False(t, row.Flat)
	row.Record.Payload = nil
	assert.Equal(t, Record{
		WorkerID: "4192", CounterID: 42, WallTime: 0.025,
		Scheduled: Requests{NumPrefillRequests: 2, SumPrefillTokens: 256, SumPrefillKVTokens: 64, NumDecodeRequests: 3, SumDecodeKVTokens: 1024},
		Queued:    Requests{NumPrefillRequests: 1, SumPrefillTokens: 128},
	}, row.Record)
}

// rewrite writes the log record of a row as the trace exporter does.
func rewrite(t testing.TB, row *Row) string {
	t.Helper()
	scope := plog.NewScopeLogs()
	AppendRowLog(scope, NewBodyWriter(), row, pcommon.Timestamp(row.ObservedAt*1e6))
	entry := scope.LogRecords().At(0)
	checked, err := ValidateBody(entry.Body())
	require.NoError(t, err)
	return string(AppendRow(nil, 1250, AppendEvent(nil, &row.Envelope, entry.Body().Map(), &checked)))
}

// TestReadIsTheInverseOfAppendRow: what this package writes it reads, and
// writes again byte for byte.
func TestReadIsTheInverseOfAppendRow(t *testing.T) {
	files, err := filepath.Glob("testdata/row/*.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			row := readRow(t, line)
			require.Equal(t, line, rewrite(t, &row), file)
		}
	}

	random := randomMessages{rand.New(rand.NewPCG(8, 8))}
	reader := new(RowReader)
	var payload []byte
	for range 2000 {
		record := decodeValid(t, random.message().encode())
		body := pcommon.NewValueMap()
		NewBodyWriter().Fill(body.Map(), &record)
		checked, err := ValidateBody(body)
		require.NoError(t, err)
		envelope := Envelope{
			Source:      Source{Namespace: random.text(), Component: random.text(), ProducerID: random.text()},
			CaptureMode: []string{CaptureFull, CaptureSampled}[random.IntN(2)], ObservedAt: 1 + random.count()%maxObservedAt,
		}
		line := string(AppendRow(nil, 1250, AppendEvent(nil, &envelope, body.Map(), &checked)))

		var row Row
		row, payload, err = reader.Read(payload[:0], []byte(line))
		require.NoError(t, err, line)
		require.Equal(t, envelope, row.Envelope)
		require.Equal(t, line, rewrite(t, &row))
		assertInvariants(t, &row.Record)
		record.Payload, record.Unversioned, record.counterFromSequence = row.Record.Payload, false, false
		require.Equal(t, record, row.Record)
	}
}

// TestReadRowNotWrittenByUs: other writers put blanks, escapes and keys where
// they like.
func TestReadRowNotWrittenByUs(t *testing.T) {
	plain := readRow(t, publicExample)
	for name, line := range map[string]string{
		"blanks":        " " + strings.NewReplacer(":", " :\t", ",", " , ", "{", "{ ", "}", " }").Replace(publicExample) + " \r\n",
		"no timestamp":  strings.Replace(publicExample, `"timestamp":1250,`, "", 1),
		"unknown keys":  strings.Replace(publicExample, `"event":{`, `"x":[{"a":[1,-2.5e3,null,true,false,"\u00e9"]}],"event":{"y":{},`, 1),
		"unknown name":  strings.Replace(publicExample, `"source":{`, `"source":{"node":"gpu-7",`, 1),
		"escapes":       strings.ReplaceAll(publicExample, "4192", `4\u00319\u0032`),
		"escaped keys":  strings.Replace(publicExample, `"wall_time"`, `"wall\u005ftime"`, 1),
		"event in back": `{"event":` + publicExample[strings.Index(publicExample, `{"schema"`):len(publicExample)-1] + `,"timestamp":1}`,
		"schema last":   strings.Replace(strings.Replace(publicExample, `"schema":"dynamo.fpm.trace.v1",`, "", 1), `}}}}`, `}},"schema":"dynamo.fpm.trace.v1"}}`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, plain, readRow(t, line))
		})
	}
}

func TestReadFlatRow(t *testing.T) {
	flat := publicExample[strings.Index(publicExample, `{"version"`) : len(publicExample)-2]
	plain := readRow(t, publicExample)
	assert.Equal(t, Row{Flat: true, Record: plain.Record}, readRow(t, flat))
	assert.Equal(t, Row{Flat: true, Record: plain.Record}, readRow(t, flat+"\n"))
}

// TestReadKeepsNothingOfTheLine: the caller may use its buffer again.
func TestReadKeepsNothingOfTheLine(t *testing.T) {
	line := []byte(publicExample)
	row, _, err := new(RowReader).Read(nil, line)
	require.NoError(t, err)
	clear(line)
	assert.Equal(t, readRow(t, publicExample), row)
}

// TestReadAppends: payloads of several rows lie behind one another in one
// buffer, and none reaches into the next.
func TestReadAppends(t *testing.T) {
	reader := new(RowReader)
	first, payload, err := reader.Read(nil, []byte(publicExample))
	require.NoError(t, err)
	_, payload, err = reader.Read(payload, []byte(`{"broken":`))
	require.Error(t, err)
	second, payload, err := reader.Read(payload, []byte(strings.Replace(publicExample, `"counter_id":42`, `"counter_id":43`, 1)))
	require.NoError(t, err)
	assert.Equal(t, readRow(t, publicExample), first)
	assert.Equal(t, int64(43), second.Record.CounterID)
	assert.Equal(t, len(second.Record.Payload), cap(second.Record.Payload))
	assert.GreaterOrEqual(t, len(payload), 2*len(first.Record.Payload))
}

func TestReadKeepsNumbers(t *testing.T) {
	for text, want := range map[string]any{
		"0": int64(0), "-0": int64(0), "7": int64(7), "-1": int64(-1), "127": int64(127), "128": int64(128),
		"65535": int64(65535), "65536": int64(65536), "4294967295": int64(4294967295), "4294967296": int64(4294967296),
		"999999999999999999": int64(999999999999999999), "-999999999999999999": int64(-999999999999999999),
		"9223372036854775807": int64(9223372036854775807), "-9223372036854775808": int64(-9223372036854775808),
		"0.0": toDouble(0), "-0.0": double(1 << 63), "1.0": toDouble(1), "1e2": toDouble(100), "1E+16": toDouble(1e16),
		"1e16": toDouble(1e16), "5e-324": toDouble(5e-324), "0.30000000000000004": toDouble(0.30000000000000004),
		"1e-400": toDouble(0), "123456789012345678901234567890.0": toDouble(123456789012345678901234567890.0),
	} {
		row := readRow(t, strings.Replace(publicExample, `"version":1,`, `"version":1,"x":`+text+`,`, 1))
		assert.Equal(t, want, filledBody(row.Record).get("x"), text)
	}
}

func TestAppendRowLog(t *testing.T) {
	at := pcommon.Timestamp(1782777601250 * 1e6)
	for name, test := range map[string]struct {
		line string
		want map[string]any
	}{
		"sampled": {publicExample, map[string]any{"fpm.dp_rank": int64(0), "fpm.capture_mode": "sampled"}},
		"full": {
			strings.Replace(strings.Replace(publicExample, `"sampled"`, `"full"`, 1), `"dp_rank":0`, `"dp_rank":3,"timing_scope":"model_step_cuda"`, 1),
			map[string]any{"fpm.dp_rank": int64(3), "fpm.timing_scope": "model_step_cuda", "fpm.capture_mode": "full"},
		},
		"flat": {
			publicExample[strings.Index(publicExample, `{"version"`) : len(publicExample)-2],
			map[string]any{"fpm.dp_rank": int64(0)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			row := readRow(t, test.line)
			scope := plog.NewScopeLogs()
			AppendRowLog(scope, NewBodyWriter(), &row, at)
			entry := scope.LogRecords().At(0)
			assert.Equal(t, at, entry.Timestamp())
			assert.Equal(t, at, entry.ObservedTimestamp())
			assert.Equal(t, "fpm.forward_pass", entry.EventName())
			assert.Equal(t, test.want, entry.Attributes().AsRaw())
			assert.Equal(t, filledBody(row.Record), orderedBody(entry.Body().Map()))
		})
	}
}

// TestSampledMetrics: the gauges and the counter are those of a whole pass, and
// there is nothing else.
func TestSampledMetrics(t *testing.T) {
	row := readRow(t, publicExample)
	pass := Pass{Record: &row.Record, Time: 2_000_000, CounterStart: 1_000_000}
	build := func(add func(*WorkerMetrics)) map[string]pmetric.Metric {
		scope := pmetric.NewScopeMetrics()
		worker := NewWorkerMetrics(scope, ExplicitForm(secondBounds), 1)
		add(worker)
		byName := map[string]pmetric.Metric{}
		for _, metric := range scope.Metrics().All() {
			byName[metric.Name()] = metric
		}
		return byName
	}
	whole := build(func(w *WorkerMetrics) { w.Pass(pass, &Links{Began: 1_000_000}) })
	sampled := build(func(w *WorkerMetrics) { w.Sampled(pass) })
	require.Len(t, sampled, Gauges+1)
	for i := range Metrics[:Gauges+1] {
		name := Metrics[i].Name
		assert.Equal(t, whole[name], sampled[name], name)
	}
}
