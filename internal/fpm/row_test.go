// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// pairs is a map in a given order: key, value, key, value, …; values are
// pairs, []any, string, bool, int, int64, float64, []byte or nil.
type pairs []any

func (p pairs) fill(dst pcommon.Map) {
	for i := 0; i < len(p); i += 2 {
		fillValue(dst.PutEmpty(p[i].(string)), p[i+1])
	}
}

func fillValue(dst pcommon.Value, value any) {
	switch value := value.(type) {
	case pairs:
		value.fill(dst.SetEmptyMap())
	case []any:
		slice := dst.SetEmptySlice()
		for _, element := range value {
			fillValue(slice.AppendEmpty(), element)
		}
	case string:
		dst.SetStr(value)
	case bool:
		dst.SetBool(value)
	case int:
		dst.SetInt(int64(value))
	case int64:
		dst.SetInt(value)
	case float64:
		dst.SetDouble(value)
	case []byte:
		dst.SetEmptyBytes().FromRaw(value)
	}
}

// with returns a copy in which key has another value; a key that is not there
// is added at the end.
func (p pairs) with(key string, value any) pairs {
	changed := append(pairs{}, p...)
	for i := 0; i < len(changed); i += 2 {
		if changed[i] == key {
			changed[i+1] = value
			return changed
		}
	}
	return append(changed, key, value)
}

func (p pairs) without(key string) pairs {
	var changed pairs
	for i := 0; i < len(p); i += 2 {
		if p[i] != key {
			changed = append(changed, p[i], p[i+1])
		}
	}
	return changed
}

var (
	scheduledPairs = pairs{
		"num_prefill_requests", 1, "sum_prefill_tokens", 512, "var_prefill_length", 0.0, "sum_prefill_kv_tokens", 64,
		"num_decode_requests", 8, "sum_decode_kv_tokens", 16384, "var_decode_kv_tokens", 100.0,
	}
	queuedPairs = pairs{
		"num_prefill_requests", 2, "sum_prefill_tokens", 2048, "var_prefill_length", 256.5,
		"num_decode_requests", 0, "sum_decode_kv_tokens", 0, "var_decode_kv_tokens", 0.0,
	}
	rootPairs = pairs{
		"version", 1, "worker_id", "4192", "dp_rank", 0, "counter_id", 77, "wall_time", 0.0123,
		"scheduled_requests", scheduledPairs, "queued_requests", queuedPairs,
	}
)

func rowBody(p pairs) pcommon.Value {
	body := pcommon.NewValueMap()
	p.fill(body.Map())
	return body
}

var testEnvelope = Envelope{
	Source:      Source{Namespace: "default", Component: "backend", ProducerID: "4192"},
	CaptureMode: CaptureSampled,
	ObservedAt:  1782777601250,
}

func rowOf(t *testing.T, envelope Envelope, body pcommon.Value) string {
	t.Helper()
	checked, err := ValidateBody(body)
	require.NoError(t, err)
	return string(AppendRow(nil, 1250, AppendEvent(nil, &envelope, body.Map(), &checked)))
}

// TestRowGolden compares whole rows with the files in testdata/row; the rules
// behind them are those of Rust's serde_json. Run with UPDATE_GOLDEN=1 to
// write them anew, and read the difference.
func TestRowGolden(t *testing.T) {
	for _, test := range []struct {
		name     string
		envelope Envelope
		body     pairs
	}{
		{"v1", testEnvelope, rootPairs},
		{"heartbeat", testEnvelope, pairs{
			"version", 1, "worker_id", "", "dp_rank", 3, "counter_id", 0, "wall_time", 0.0,
			"scheduled_requests",
			pairs{
				"num_prefill_requests", 0, "sum_prefill_tokens", 0, "var_prefill_length", 0.0, "sum_prefill_kv_tokens", 0,
				"num_decode_requests", 0, "sum_decode_kv_tokens", 0, "var_decode_kv_tokens", 0.0,
			},
			"queued_requests",
			pairs{
				"num_prefill_requests", 0, "sum_prefill_tokens", 0, "var_prefill_length", 0.0,
				"num_decode_requests", 0, "sum_decode_kv_tokens", 0, "var_decode_kv_tokens", 0.0,
			},
		}},
		{"variances_absent", testEnvelope, rootPairs.
			with("scheduled_requests", scheduledPairs.without("var_prefill_length").without("var_decode_kv_tokens")).
			with("queued_requests", queuedPairs.without("var_prefill_length").without("var_decode_kv_tokens"))},
		{"variances_absent_other_order", testEnvelope, pairs{
			"queued_requests",
			pairs{
				"sum_decode_kv_tokens", 5, "sum_prefill_tokens", 4, "num_decode_requests", 3, "num_prefill_requests", 2,
			},
			"scheduled_requests", scheduledPairs, "wall_time", 1, "counter_id", 9, "dp_rank", 0, "worker_id", "w", "version", 1,
		}},
		{"ints_in_float_fields", testEnvelope, rootPairs.with("wall_time", 0).
			with("scheduled_requests", scheduledPairs.with("var_prefill_length", 7)).
			with("queued_requests", queuedPairs.with("var_decode_kv_tokens", int64(math.MaxInt64)))},
		{"limits", testEnvelope, rootPairs.with("counter_id", int64(math.MaxInt64)).with("wall_time", 5e-324).
			with("scheduled_requests", scheduledPairs.with("sum_decode_kv_tokens", int64(math.MaxInt64)).
				with("var_prefill_length", 1e16).with("var_decode_kv_tokens", 1e-6)).
			with("queued_requests", queuedPairs.with("var_prefill_length", math.Copysign(0, -1)).
				with("var_decode_kv_tokens", tenth+0.2))},
		{"strings", Envelope{
			Source:      Source{Namespace: "a\"b", Component: "line\nbreak", ProducerID: "a/b\u2028\x7f"},
			CaptureMode: CaptureFull, ObservedAt: 1,
		}, rootPairs.with("worker_id", "q\"\\\b\t\n\f\r\x00\x1f\x7f\u2028\u2029<>&é世")},
		{"unknown_keys", testEnvelope, pairs{
			"version", 1, "vendor", nil, "worker_id", "4192", "dp_rank", 0, "counter_id", 77,
			"timing_scope", "model_step_cuda", "wall_time", 0.5,
			"scheduled_requests", scheduledPairs.with("extend_lengths", []any{1, 2, 3}).with("past_kv_lengths", []any{}),
			"queued_requests", queuedPairs.with("sum_prefill_kv_tokens", "not a field here"),
			"nested",
			pairs{"deep", pairs{"list", []any{true, false, nil, -1, 1.0, "x", pairs{}}}, "not_a_number", math.NaN(), "inf", math.Inf(-1)},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := rowOf(t, test.envelope, rowBody(test.body))
			path := filepath.Join("testdata", "row", test.name+".jsonl")
			if os.Getenv("UPDATE_GOLDEN") != "" {
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, string(want), got)
		})
	}
}

// TestRecordRowEqualsBodyRow: for a version 1 record the text made of the
// record is the text made of its body.
func TestRecordRowEqualsBodyRow(t *testing.T) {
	for _, body := range []pairs{
		rootPairs,
		{
			"version", 1, "worker_id", "w\"", "dp_rank", 7, "counter_id", int64(math.MaxInt64),
			"timing_scope", "model_step_cuda", "wall_time", 1e-7,
			"scheduled_requests", scheduledPairs, "queued_requests", queuedPairs,
		},
	} {
		payload := encodePayload(t, body)
		record, err := NewDecoder(false).Decode(payload, 0)
		require.NoError(t, err)
		fromRecord := AppendRow(nil, 1250, AppendRecordEvent(nil, &testEnvelope, &record))
		assert.Equal(t, rowOf(t, testEnvelope, rowBody(body)), string(fromRecord))
	}
}

func encodePayload(t testing.TB, p pairs) []byte {
	var buffer bytes.Buffer
	encoder := msgpack.NewEncoder(&buffer)
	encoder.UseCompactInts(true)
	encodePairs(t, encoder, p)
	return buffer.Bytes()
}

func encodePairs(t testing.TB, encoder *msgpack.Encoder, value any) {
	var err error
	switch value := value.(type) {
	case pairs:
		err = encoder.EncodeMapLen(len(value) / 2)
		for _, part := range value {
			encodePairs(t, encoder, part)
		}
	case []any:
		err = encoder.EncodeArrayLen(len(value))
		for _, part := range value {
			encodePairs(t, encoder, part)
		}
	default:
		err = encoder.Encode(value)
	}
	require.NoError(t, err)
}

// FuzzRow: whatever the decoder accepts is a body that validates, and its row,
// read by a JSON reader, is the body again: keys in order, ints with the same
// digits, floats with the same bits.
func FuzzRow(f *testing.F) {
	for _, body := range []pairs{
		rootPairs,
		rootPairs.with("scheduled_requests", scheduledPairs.without("var_prefill_length").with("extend_lengths", []any{1, -2, 3.5})),
		rootPairs.with("unknown", pairs{"a", nil, "b", []any{"x\u2028", true, pairs{}}, "c", math.NaN()}),
		rootPairs.without("version").without("counter_id"),
		rootPairs.with("wall_time", 1).with("worker_id", "\x00\"\\"),
	} {
		f.Add(encodePayload(f, body))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		record, err := NewDecoder(true).Decode(payload, 42)
		if err != nil {
			t.Skip("not a record")
		}
		body := pcommon.NewValueMap()
		NewBodyWriter().Fill(body.Map(), &record)
		checked, err := ValidateBody(body)
		require.NoError(t, err)
		require.Equal(t, record.WorkerID, checked.WorkerID)
		require.Equal(t, record.DPRank, checked.DPRank)
		require.Equal(t, record.CounterID, checked.CounterID)

		row := AppendRow(nil, 1250, AppendEvent(nil, &testEnvelope, body.Map(), &checked))
		require.Equal(t, 1, bytes.Count(row, []byte("\n")))
		var envelope struct {
			Timestamp int64
			Event     struct {
				Schema string
				FPM    json.RawMessage
			}
		}
		require.NoError(t, json.Unmarshal(row, &envelope))
		require.Equal(t, Schema, envelope.Event.Schema)
		addAbsentVariances(body.Map())
		decoder := json.NewDecoder(bytes.NewReader(envelope.Event.FPM))
		decoder.UseNumber()
		requireSameJSON(t, decoder, body)
		_, err = decoder.Token()
		require.ErrorIs(t, err, io.EOF)
	})
}

// addAbsentVariances is the row's one departure from its body, spelled out.
func addAbsentVariances(body pcommon.Map) {
	for _, name := range []string{"scheduled_requests", "queued_requests"} {
		value, _ := body.Get(name)
		filled := pcommon.NewMap()
		for key, field := range value.Map().All() {
			field.CopyTo(filled.PutEmpty(key))
			variance := map[string]string{
				"sum_prefill_tokens": "var_prefill_length", "sum_decode_kv_tokens": "var_decode_kv_tokens",
			}[key]
			if _, there := value.Map().Get(variance); variance != "" && !there {
				filled.PutDouble(variance, 0)
			}
		}
		filled.CopyTo(value.Map())
	}
}

func requireSameJSON(t *testing.T, decoder *json.Decoder, want pcommon.Value) {
	t.Helper()
	token, err := decoder.Token()
	require.NoError(t, err)
	switch want.Type() {
	case pcommon.ValueTypeMap:
		require.Equal(t, json.Delim('{'), token)
		for key, value := range want.Map().All() {
			got, err := decoder.Token()
			require.NoError(t, err)
			require.Equal(t, key, got)
			requireSameJSON(t, decoder, value)
		}
		token, err = decoder.Token()
		require.NoError(t, err)
		require.Equal(t, json.Delim('}'), token)
	case pcommon.ValueTypeSlice:
		require.Equal(t, json.Delim('['), token)
		for _, value := range want.Slice().All() {
			requireSameJSON(t, decoder, value)
		}
		token, err = decoder.Token()
		require.NoError(t, err)
		require.Equal(t, json.Delim(']'), token)
	case pcommon.ValueTypeInt:
		require.Equal(t, json.Number(strconv.FormatInt(want.Int(), 10)), token)
	case pcommon.ValueTypeDouble:
		if math.IsNaN(want.Double()) || math.IsInf(want.Double(), 0) {
			require.Nil(t, token)
			return
		}
		got, err := strconv.ParseFloat(string(token.(json.Number)), 64)
		require.NoError(t, err)
		require.Equal(t, math.Float64bits(want.Double()), math.Float64bits(got))
	case pcommon.ValueTypeStr:
		require.Equal(t, want.Str(), token)
	case pcommon.ValueTypeBool:
		require.Equal(t, want.Bool(), token)
	default:
		require.Nil(t, token)
	}
}

func TestValidateBody(t *testing.T) {
	sched := func(key string, value any) pairs {
		return rootPairs.with("scheduled_requests", scheduledPairs.with(key, value))
	}
	queued := func(key string, value any) pairs {
		return rootPairs.with("queued_requests", queuedPairs.with(key, value))
	}
	deep := func(levels int) any {
		var value any = "bottom"
		for range levels {
			value = []any{value}
		}
		return value
	}
	for _, test := range []struct {
		name   string
		body   pairs
		reason Reason // empty: accepted
		field  string
	}{
		{"v1", rootPairs, "", ""},
		{"root keys in another order", append(append(pairs{}, rootPairs[2:]...), rootPairs[:2]...), "", ""},
		{"empty worker_id", rootPairs.with("worker_id", ""), "", ""},
		{"wall_time an int", rootPairs.with("wall_time", 1), "", ""},
		{"variance an int", sched("var_prefill_length", 3), "", ""},
		{"variance minus zero", sched("var_prefill_length", math.Copysign(0, -1)), "", ""},
		{"variances absent", rootPairs.with("queued_requests", queuedPairs.without("var_prefill_length").without("var_decode_kv_tokens")), "", ""},
		{"unknown keys", queued("sum_prefill_kv_tokens", "anything").with("vendor", pairs{"a", nil}), "", ""},
		{"31 levels below the root", rootPairs.with("vendor", deep(31)), "", ""},

		{"empty", pairs{}, ReasonMalformed, "version"},
		{"version missing", rootPairs.without("version"), ReasonMalformed, "version"},
		{"version a float", rootPairs.with("version", 1.0), ReasonMalformed, "version"},
		{"version 2", rootPairs.with("version", 2), ReasonUnsupportedVersion, "version"},
		{"wall_time missing", rootPairs.without("wall_time"), ReasonMalformed, "wall_time"},
		{"wall_time NaN", rootPairs.with("wall_time", math.NaN()), ReasonMalformed, "wall_time"},
		{"wall_time infinite", rootPairs.with("wall_time", math.Inf(1)), ReasonMalformed, "wall_time"},
		{"wall_time negative", rootPairs.with("wall_time", -0.1), ReasonMalformed, "wall_time"},
		{"wall_time a negative int", rootPairs.with("wall_time", -1), ReasonMalformed, "wall_time"},
		{"wall_time text", rootPairs.with("wall_time", "0.1"), ReasonMalformed, "wall_time"},
		{"scheduled missing", rootPairs.without("scheduled_requests"), ReasonMalformed, "scheduled_requests"},
		{"scheduled a list", rootPairs.with("scheduled_requests", []any{}), ReasonMalformed, "scheduled_requests"},
		{"queued missing", rootPairs.without("queued_requests"), ReasonMalformed, "queued_requests"},
		{"queued nil", rootPairs.with("queued_requests", nil), ReasonMalformed, "queued_requests"},
		{"scheduled count missing", rootPairs.with("scheduled_requests", scheduledPairs.without("sum_prefill_kv_tokens")), ReasonMalformed, "scheduled_requests.sum_prefill_kv_tokens"},
		{"queued count missing", rootPairs.with("queued_requests", queuedPairs.without("num_decode_requests")), ReasonMalformed, "queued_requests.num_decode_requests"},
		{"count negative", sched("num_decode_requests", -1), ReasonMalformed, "scheduled_requests.num_decode_requests"},
		{"count a float", queued("sum_prefill_tokens", 1.0), ReasonMalformed, "queued_requests.sum_prefill_tokens"},
		{"count a boolean", queued("sum_prefill_tokens", true), ReasonMalformed, "queued_requests.sum_prefill_tokens"},
		{"variance NaN", queued("var_decode_kv_tokens", math.NaN()), ReasonMalformed, "queued_requests.var_decode_kv_tokens"},
		{"variance nil", sched("var_prefill_length", nil), ReasonMalformed, "scheduled_requests.var_prefill_length"},
		{"worker_id missing", rootPairs.without("worker_id"), ReasonMalformed, "worker_id"},
		{"worker_id an int", rootPairs.with("worker_id", 4192), ReasonMalformed, "worker_id"},
		{"worker_id not UTF-8", rootPairs.with("worker_id", "\xff"), ReasonMalformed, "worker_id"},
		{"dp_rank missing", rootPairs.without("dp_rank"), ReasonMalformed, "dp_rank"},
		{"dp_rank negative", rootPairs.with("dp_rank", -1), ReasonMalformed, "dp_rank"},
		{"counter_id missing", rootPairs.without("counter_id"), ReasonMalformed, "counter_id"},
		{"counter_id a float", rootPairs.with("counter_id", 1.5), ReasonMalformed, "counter_id"},
		{"counter_id negative", rootPairs.with("counter_id", -7), ReasonMalformed, "counter_id"},
		{"unknown key with bytes", rootPairs.with("blob", []byte{1}), ReasonMalformed, "blob"},
		{"unknown text not UTF-8", sched("note", "\xff"), ReasonMalformed, "scheduled_requests.note"},
		{"unknown key not UTF-8", rootPairs.with("\xff", 1), ReasonMalformed, `"\xff"`},
		{"unknown nested key not UTF-8", rootPairs.with("vendor", pairs{"\xff", 1}), ReasonMalformed, "vendor"},
		{"32 levels below the root", rootPairs.with("vendor", deep(32)), ReasonMalformed, "vendor"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := ValidateBody(rowBody(test.body))
			if test.reason == "" {
				require.NoError(t, err)
				return
			}
			var rejected *RejectError
			require.ErrorAs(t, err, &rejected)
			assert.Equal(t, test.reason, rejected.Reason)
			assert.Equal(t, test.field, rejected.Field)
			assert.NotEmpty(t, rejected.Got)
			assert.NotEmpty(t, rejected.Want)
		})
	}

	_, err := ValidateBody(pcommon.NewValueStr(`{"version":1}`))
	assert.EqualError(t, err, `malformed: body: got the string "{\"version\":1}", want a map`)
}

// TestValidateBodyKnownKeyTwice: pdata maps are lists and may hold a key twice
// when they come from another process.
func TestValidateBodyKnownKeyTwice(t *testing.T) {
	for _, test := range []struct {
		field, key string
		within     func(root pcommon.Map) pcommon.Map
	}{
		{"dp_rank", "dp_rank", func(root pcommon.Map) pcommon.Map { return root }},
		{"queued_requests.sum_prefill_tokens", "sum_prefill_tokens", func(root pcommon.Map) pcommon.Map {
			group, _ := root.Get("queued_requests")
			return group.Map()
		}},
	} {
		logs := plog.NewLogs()
		body := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body()
		rootPairs.fill(body.SetEmptyMap())
		test.within(body.Map()).PutInt("placeholder", 1)
		text, err := (&plog.JSONMarshaler{}).MarshalLogs(logs)
		require.NoError(t, err)
		text = bytes.ReplaceAll(text, []byte("placeholder"), []byte(test.key))
		logs, err = (&plog.JSONUnmarshaler{}).UnmarshalLogs(text)
		require.NoError(t, err)

		_, err = ValidateBody(logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Body())
		var rejected *RejectError
		require.ErrorAs(t, err, &rejected)
		assert.Equal(t, test.field, rejected.Field)
	}
}
