// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

func toDouble(value float64) double { return double(math.Float64bits(value)) }

func TestBodyKeepsTheWire(t *testing.T) {
	message := wireMap{
		{"queued_requests", wireMap{
			{"note", "unknown"},
			{"sum_decode_kv_tokens", 8000},
			{"num_decode_requests", 7},
			{"var_prefill_length", 3},
			{"sum_prefill_tokens", 6000},
			{"num_prefill_requests", 5},
			{"sum_prefill_kv_tokens", "unknown here"},
		}},
		{"outer", wireMap{{"z", nil}, {"a", []any{true, -1, float32(0.5), "x", wireMap{{"k", []any{}}}, nil}}, {"m", wireMap{}}}},
		{"wall_time", 0.025},
		{"scheduled_requests", validMap().get("scheduled_requests")},
		{"counter_id", int64(math.MaxInt64)},
		{"dp_rank", 3},
		{"", 1.0},
		{"worker_id", "wörker"},
		{"timing_scope", "model_step_cuda"},
		{"version", 1},
	}
	record := decodeValid(t, message.encode())
	assert.Equal(t, ordered{
		{"queued_requests", ordered{
			{"note", "unknown"},
			{"sum_decode_kv_tokens", int64(8000)},
			{"num_decode_requests", int64(7)},
			{"var_prefill_length", int64(3)},
			{"sum_prefill_tokens", int64(6000)},
			{"num_prefill_requests", int64(5)},
			{"sum_prefill_kv_tokens", "unknown here"},
		}},
		{"outer", ordered{
			{"z", nil},
			{"a", []any{true, int64(-1), toDouble(0.5), "x", ordered{{"k", []any{}}}, nil}},
			{"m", ordered{}},
		}},
		{"wall_time", toDouble(0.025)},
		{"scheduled_requests", ordered{
			{"num_prefill_requests", int64(2)},
			{"sum_prefill_tokens", int64(2048)},
			{"var_prefill_length", toDouble(1.5)},
			{"sum_prefill_kv_tokens", int64(300)},
			{"num_decode_requests", int64(96)},
			{"sum_decode_kv_tokens", int64(70000)},
			{"var_decode_kv_tokens", toDouble(2.5)},
		}},
		{"counter_id", int64(math.MaxInt64)},
		{"dp_rank", int64(3)},
		{"", toDouble(1)},
		{"worker_id", "wörker"},
		{"timing_scope", "model_step_cuda"},
		{"version", int64(1)},
	}, filledBody(record))
}

func TestBodyUnknownKeyTwice(t *testing.T) {
	message := validMap().add("", "note", 1).add("", "other", 2).add("", "note", "last").
		add("", "outer", wireMap{{"a", []any{1}}, {"b", 1}, {"a", nil}})
	body := filledBody(decodeValid(t, message.encode()))
	assert.Equal(t, []string{
		"version", "worker_id", "dp_rank", "counter_id", "wall_time", "scheduled_requests", "queued_requests",
		"note", "other", "outer",
	}, body.keys())
	assert.Equal(t, "last", body.get("note"))
	assert.Equal(t, ordered{{"a", nil}, {"b", int64(1)}}, body.get("outer"))
}

func TestBodyUnversioned(t *testing.T) {
	for _, test := range []struct {
		name    string
		message wireMap
		keys    []string
		counter int64
	}{
		{
			"neither", validMap().without("version").without("counter_id"),
			[]string{"version", "worker_id", "dp_rank", "counter_id", "wall_time", "scheduled_requests", "queued_requests"},
			99,
		},
		{
			"no version", validMap().without("version"),
			[]string{"version", "worker_id", "dp_rank", "counter_id", "wall_time", "scheduled_requests", "queued_requests"},
			1234,
		},
		{
			"neither, dp_rank last", append(validMap().without("version").without("counter_id").without("dp_rank"), wirePair{"dp_rank", 3}),
			[]string{"version", "worker_id", "wall_time", "scheduled_requests", "queued_requests", "dp_rank", "counter_id"},
			99,
		},
		{
			"dp_rank under an unknown key", append(wireMap{{"outer", wireMap{{"dp_rank", 1}}}}, validMap().without("version").without("counter_id")...),
			[]string{"version", "outer", "worker_id", "dp_rank", "counter_id", "wall_time", "scheduled_requests", "queued_requests"},
			99,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := filledBody(decodeValid(t, test.message.encode()))
			assert.Equal(t, test.keys, body.keys())
			assert.Equal(t, int64(1), body.get("version"))
			assert.Equal(t, test.counter, body.get("counter_id"))
		})
	}
}

// The body shares no memory with the payload, which belongs to the caller.
func TestBodyCopiesText(t *testing.T) {
	payload := validMap().add("", "note", "text").encode()
	record := decodeValid(t, payload)
	body := pcommon.NewMap()
	NewBodyWriter().Fill(body, &record)
	want := orderedBody(body)
	for i := range payload {
		payload[i] = 'x'
	}
	assert.Equal(t, want, orderedBody(body))
}

// A detached record has the same body when the payload has become another one.
func TestDetach(t *testing.T) {
	for name, message := range map[string]wireMap{
		"canonical":   validMap().withScope("model_step_cuda"),
		"unknown":     validMap().add("", "note", wireMap{{"a", "text"}}).add("queued_requests", "b", []any{"c"}),
		"reordered":   append(validMap().without("worker_id"), wirePair{"worker_id", "w"}),
		"unversioned": validMap().without("version").without("counter_id"),
	} {
		t.Run(name, func(t *testing.T) {
			payload := message.encode()
			record := decodeValid(t, payload)
			fields := record
			want := filledBody(record)
			record.Detach()
			for i := range payload {
				payload[i] = 'x'
			}
			assert.Equal(t, want, filledBody(record))
			assert.Equal(t, record.canonical, record.Payload == nil, "a copy that nobody reads")
			fields.Payload, record.Payload = nil, nil
			assert.Equal(t, fields, record)
		})
	}
}

// A random accepted payload, as the package reads it and as the generic decoder
// of the msgpack library does.
func TestBodyEqualsGenericDecoding(t *testing.T) {
	random := randomMessages{rand.New(rand.NewPCG(7, 7))}
	decoder, writer := NewDecoder(true), NewBodyWriter()
	canonical := 0
	for range 3000 {
		payload := random.message().encode()
		record, err := decoder.Decode(payload, 99)
		require.NoError(t, err)
		if record.canonical {
			canonical++
		}
		body := pcommon.NewMap()
		writer.Fill(body, &record)
		assertBodyIsPayload(t, &record, orderedBody(body))
		assertRecordIsBody(t, &record, orderedBody(body))
	}
	assert.Greater(t, canonical, 300, "canonical messages were among them")
}

// What departs from Dynamo's struct in whatever way is not canonical, and has
// its body from the payload.
func TestCanonicalBodyIsThePayload(t *testing.T) {
	for name, test := range map[string]struct {
		message   wireMap
		canonical bool
	}{
		"version 1":                    {validMap(), true},
		"timing_scope":                 {validMap().withScope("model_step_cuda"), true},
		"empty timing_scope":           {validMap().withScope(""), true},
		"timing_scope at the end":      {validMap().set("timing_scope", "s"), false},
		"unversioned":                  {validMap().without("version"), false},
		"no counter_id":                {validMap().without("version").without("counter_id"), false},
		"unknown key":                  {validMap().add("", "note", 1), false},
		"unknown key in a group":       {validMap().add("scheduled_requests", "note", 1), false},
		"unknown key in the other":     {validMap().add("queued_requests", "note", 1), false},
		"queued sum_prefill_kv_tokens": {validMap().add("queued_requests", "sum_prefill_kv_tokens", 1), false},
		"no scheduled variance":        {validMap().without("scheduled_requests.var_decode_kv_tokens"), false},
		"no queued variance":           {validMap().without("queued_requests.var_prefill_length"), false},
		"integer wall_time":            {validMap().set("wall_time", 1), false},
		"negative zero":                {validMap().set("wall_time", math.Copysign(0, -1)), true},
		"integer variance":             {validMap().set("queued_requests.var_decode_kv_tokens", 1), false},
		"float32 variance":             {validMap().set("queued_requests.var_decode_kv_tokens", float32(0.1)), true},
		"another root order":           {append(validMap().without("version"), wirePair{"version", 1}), false},
		"another group order": {validMap().without("scheduled_requests.num_prefill_requests").
			add("scheduled_requests", "num_prefill_requests", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			record := decodeValid(t, test.message.encode())
			assert.Equal(t, test.canonical, record.canonical)
			body := filledBody(record)
			assertBodyIsPayload(t, &record, body)
			record.canonical = false
			assert.Equal(t, filledBody(record), body, "walked")
		})
	}
}

// withScope puts a timing_scope where native vLLM has it.
func (m wireMap) withScope(scope string) wireMap {
	at := slices.IndexFunc(m, func(pair wirePair) bool { return pair.key == "wall_time" })
	return slices.Insert(slices.Clone(m), at, wirePair{"timing_scope", scope})
}

// assertBodyIsPayload holds a body against the generic decoding of the payload.
func assertBodyIsPayload(t testing.TB, record *Record, body ordered) {
	want := reference(t, record.Payload)
	if record.Unversioned {
		want = append(ordered{{"version", int64(1)}}, want...)
	}
	if record.counterFromSequence {
		for i, pair := range want {
			if pair.Key == "dp_rank" {
				want = append(want[:i+1:i+1], append(ordered{{"counter_id", record.CounterID}}, want[i+1:]...)...)
				break
			}
		}
	}
	require.Equal(t, want, body)
}

// assertRecordIsBody holds the known fields of a record against its body.
func assertRecordIsBody(t testing.TB, record *Record, body ordered) {
	require.Equal(t, body.get("worker_id"), record.WorkerID)
	scope, present := body.get("timing_scope").(string)
	require.Equal(t, scope, record.TimingScope)
	require.Equal(t, present, record.HasTimingScope)
	find := func(field string) any {
		group, key := splitField(field)
		if group != "" {
			return body.get(group).(ordered).get(key)
		}
		return body.get(key)
	}
	for _, field := range countFields {
		require.Equal(t, find(field), countOf(record, field), field)
	}
	for _, field := range measureFields {
		got := measureOf(record, field)
		switch want := find(field).(type) {
		case nil:
			require.Zero(t, got, field)
		case int64:
			require.Equal(t, float64(want), got, field)
		default:
			require.Equal(t, want, toDouble(got), field)
		}
	}
}

// randomMessages makes messages that are accepted.
type randomMessages struct{ *rand.Rand }

func (r randomMessages) message() wireMap {
	message := validMap()
	if r.IntN(4) == 0 {
		return r.canonical(message)
	}
	for _, field := range countFields {
		message = message.set(field, r.count())
	}
	for _, field := range measureFields {
		message = message.set(field, r.measure())
	}
	for _, field := range measureFields[1:] {
		if r.IntN(4) == 0 {
			message = message.without(field)
		}
	}
	if r.IntN(2) == 0 {
		message = message.set("timing_scope", r.text())
	}
	if r.IntN(4) == 0 {
		message = message.without("version")
		if r.IntN(2) == 0 {
			message = message.without("counter_id")
		}
	}
	message = message.set("worker_id", r.text())
	for _, group := range []string{"", "scheduled_requests", "queued_requests"} {
		for range r.IntN(3) {
			message = message.add(group, "x-"+r.text(), r.value(3))
		}
	}
	if r.IntN(4) == 0 {
		message = message.set("queued_requests.sum_prefill_kv_tokens", r.value(2))
	}
	for _, group := range groupFields {
		r.shuffle(message.get(group).(wireMap))
	}
	r.shuffle(message)
	return message
}

// canonical gives the message other values, and its form stays.
func (r randomMessages) canonical(message wireMap) wireMap {
	if r.IntN(2) == 0 {
		message = message.withScope(r.text())
	}
	for _, field := range countFields {
		message = message.set(field, r.count())
	}
	for _, field := range measureFields {
		message = message.set(field, r.ExpFloat64())
	}
	return message.set("worker_id", r.text())
}

func (r randomMessages) shuffle(m wireMap) {
	r.Shuffle(len(m), func(i, j int) { m[i], m[j] = m[j], m[i] })
}

func (r randomMessages) count() int64 { return r.Int64() >> r.IntN(63) }

func (r randomMessages) measure() any {
	switch r.IntN(4) {
	case 0:
		return r.count()
	case 1:
		return float32(r.ExpFloat64())
	default:
		return r.ExpFloat64() * math.Pow(10, float64(r.IntN(20)-10))
	}
}

func (r randomMessages) text() string {
	const letters = "abcdefgh-._ äöü€𝄞\n\"\x00"
	runes := []rune(letters)
	text := make([]rune, r.IntN(40))
	for i := range text {
		text[i] = runes[r.IntN(len(runes))]
	}
	return string(text)
}

func (r randomMessages) value(depth int) any {
	kinds := 7
	if depth > 0 {
		kinds = 9
	}
	switch r.IntN(kinds) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return r.count()
	case 3:
		return -r.count()
	case 4:
		return math.Float64frombits(r.Uint64())
	case 5:
		return float32(r.NormFloat64())
	case 6:
		return r.text()
	case 7:
		array := make([]any, r.IntN(4))
		for i := range array {
			array[i] = r.value(depth - 1)
		}
		return array
	default:
		m := make(wireMap, r.IntN(4))
		for i := range m {
			m[i] = wirePair{string(rune('a' + r.IntN(3))), r.value(depth - 1)}
		}
		return m
	}
}

func TestAppendLog(t *testing.T) {
	now := pcommon.NewTimestampFromTime(time.Date(2026, 7, 1, 12, 0, 0, 123456789, time.UTC))
	for name, test := range map[string]struct {
		message wireMap
		want    map[string]any
	}{
		"plain":        {validMap(), map[string]any{"fpm.dp_rank": int64(3), "fpm.sequence": int64(99)}},
		"timing_scope": {validMap().set("timing_scope", "model_step_cuda"), map[string]any{"fpm.dp_rank": int64(3), "fpm.timing_scope": "model_step_cuda", "fpm.sequence": int64(99)}},
		"empty scope":  {validMap().set("timing_scope", ""), map[string]any{"fpm.dp_rank": int64(3), "fpm.timing_scope": "", "fpm.sequence": int64(99)}},
	} {
		t.Run(name, func(t *testing.T) {
			record := decodeValid(t, test.message.encode())
			scope := plog.NewScopeLogs()
			AppendLog(scope, NewBodyWriter(), &record, 99, now)
			require.Equal(t, 1, scope.LogRecords().Len())
			entry := scope.LogRecords().At(0)
			assert.Equal(t, now, entry.Timestamp())
			assert.Equal(t, now, entry.ObservedTimestamp())
			assert.Equal(t, "fpm.forward_pass", entry.EventName())
			assert.Equal(t, plog.SeverityNumberUnspecified, entry.SeverityNumber())
			assert.Empty(t, entry.SeverityText())
			assert.Equal(t, test.want, entry.Attributes().AsRaw())
			assert.Equal(t, filledBody(record), orderedBody(entry.Body().Map()))
		})
	}
}
