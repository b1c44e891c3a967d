// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// replaced is the public example with something else in one place.
func replaced(t *testing.T, old, with string) string {
	require.Contains(t, publicExample, old)
	return strings.Replace(publicExample, old, with, 1)
}

func TestReadRejects(t *testing.T) {
	const (
		fpm    = "event.fpm"
		sched  = fpm + ".scheduled_requests"
		inside = `"version":1,`
	)
	r := func(old, with string) string { return replaced(t, old, with) }
	deep := func(levels int) string {
		return `"x":` + strings.Repeat("[", levels) + strings.Repeat("]", levels) + ","
	}
	for _, test := range []struct {
		name, line string
		reason     Reason
		field      string
		want       string // the error's text, when it matters
	}{
		{"empty", "", ReasonMalformed, "row", "malformed: row: got an empty line, want a JSON object"},
		{"blank", " \t\r\n", ReasonMalformed, "row", ""},
		{"text", "hello", ReasonMalformed, "row", `malformed: row: got 'h' at byte 0, want a JSON value`},
		{"an array", "[1]", ReasonMalformed, "row", "malformed: row: got an array, want an object"},
		{"a number", "17", ReasonMalformed, "row", "malformed: row: got 17, want an object"},
		{"a NUL", "\x00", ReasonMalformed, "row", ""},
		{"BOM", "\ufeff" + publicExample, ReasonMalformed, "row", ""},
		{"cut", publicExample[:300], ReasonMalformed, sched, ""},
		{"cut before its last brace", publicExample[:len(publicExample)-1], ReasonMalformed, "row", "malformed: row: got the end of the line, want ',' or '}'"},
		{"two objects", publicExample + publicExample, ReasonMalformed, "row", ""},
		{"trailing comma", r(`"timestamp":1250,`, `"timestamp":1250,,`), ReasonMalformed, "row", ""},
		{"no colon", r(`"timestamp":`, `"timestamp"`), ReasonMalformed, "timestamp", ""},
		{"single quotes", r(`"timestamp"`, `'timestamp'`), ReasonMalformed, "row", ""},
		{"raw control character", r(`"4192"`, "\"4\n92\""), ReasonMalformed, "event.source.producer_id", ""},
		{"not UTF-8", r(`"4192"`, "\"\xff\""), ReasonMalformed, "event.source.producer_id", ""},
		{"half a surrogate pair", r(`"4192"`, `"\ud800"`), ReasonMalformed, "event.source.producer_id", ""},
		{"half a surrogate pair and a letter", r(`"4192"`, `"\ud800\u0041"`), ReasonMalformed, "event.source.producer_id", ""},
		{"unknown escape", r(`"4192"`, `"\x41"`), ReasonMalformed, "event.source.producer_id", ""},
		{"leading zero", r("1250", "01250"), ReasonMalformed, "row", ""},
		{"leading plus", r("1250", "+1250"), ReasonMalformed, "row", ""},
		{"no digit behind the point", r("0.025", "0."), ReasonMalformed, fpm + ".wall_time", ""},
		{"no digit of the exponent", r("0.025", "1e"), ReasonMalformed, fpm + ".wall_time", ""},
		{"NaN", r("0.025", "NaN"), ReasonMalformed, fpm + ".wall_time", ""},

		{"event not an object", `{"event":3}`, ReasonMalformed, "event", "malformed: event: got 3, want an object"},
		{"event twice", `{"event":` + publicExample[len(`{"timestamp":1250,"event":`):len(publicExample)-1] + `,"event":{}}`, ReasonMalformed, "event", ""},
		{"empty event", `{"event":{}}`, ReasonSchema, "event.schema", "schema: event.schema: got nothing, want dynamo.fpm.trace.v1"},
		{"foreign schema", r("fpm.trace.v1", "request.trace.v1"), ReasonSchema, "event.schema", `schema: event.schema: got "dynamo.request.trace.v1", want dynamo.fpm.trace.v1`},
		{"next version of the schema", r("fpm.trace.v1", "fpm.trace.v2"), ReasonSchema, "event.schema", ""},
		{"foreign schema with another layout", `{"timestamp":1,"event":{"schema":"x","source":7}}`, ReasonSchema, "event.schema", ""},
		{"schema not text", r(`"dynamo.fpm.trace.v1"`, "1"), ReasonMalformed, "event.schema", ""},
		{"schema twice", r(`"source":`, `"schema":"dynamo.fpm.trace.v1","source":`), ReasonMalformed, "event.schema", ""},
		{"no source", r(`"source":{"namespace":"default","component":"backend","producer_id":"4192"},`, ""), ReasonMalformed, "event.source", ""},
		{"source not an object", r(`{"namespace":"default","component":"backend","producer_id":"4192"}`, `"4192"`), ReasonMalformed, "event.source", `malformed: event.source: got the string "4192", want an object`},
		{"no producer_id", r(`,"producer_id":"4192"`, ""), ReasonMalformed, "event.source.producer_id", ""},
		{"namespace null", r(`"default"`, "null"), ReasonMalformed, "event.source.namespace", "malformed: event.source.namespace: got null, want a string"},
		{"long component", r("backend", strings.Repeat("x", maxIdentityBytes+1)), ReasonMalformed, "event.source.component", ""},
		{"no capture_mode", r(`"capture_mode":"sampled",`, ""), ReasonMalformed, "event.capture_mode", ""},
		{"foreign capture_mode", r(`"sampled"`, `"some"`), ReasonMalformed, "event.capture_mode", `malformed: event.capture_mode: got "some", want sampled or full`},
		{"no observed_at", r(`"observed_at_unix_ms":1782777601250,`, ""), ReasonMalformed, "event.observed_at_unix_ms", ""},
		{"observed_at text", r("1782777601250", `"now"`), ReasonMalformed, "event.observed_at_unix_ms", ""},
		{"observed_at a float", r("1782777601250", "1782777601250.5"), ReasonMalformed, "event.observed_at_unix_ms", ""},
		{"observed_at 0", r("1782777601250", "0"), ReasonOutOfRange, "event.observed_at_unix_ms", ""},
		{"observed_at negative", r("1782777601250", "-5"), ReasonOutOfRange, "event.observed_at_unix_ms", ""},
		{"observed_at in nanoseconds", r("1782777601250", "1782777601250000000"), ReasonOutOfRange, "event.observed_at_unix_ms", "out_of_range: event.observed_at_unix_ms: got 1782777601250000000, want 1 to 9223372036854 milliseconds since 1970"},
		{"observed_at huge", r("1782777601250", "99999999999999999999"), ReasonOutOfRange, "event.observed_at_unix_ms", ""},
		{"no fpm", `{"event":{"schema":"dynamo.fpm.trace.v1","source":{"namespace":"","component":"","producer_id":""},"capture_mode":"full","observed_at_unix_ms":1}}`, ReasonMalformed, "event.fpm", ""},
		{"fpm twice", r(`"fpm":{`, `"fpm":{},"fpm":{`), ReasonMalformed, "event.fpm", ""},
		{"fpm null", `{"event":{"schema":"dynamo.fpm.trace.v1","fpm":null}}`, ReasonMalformed, "event.fpm", "malformed: event.fpm: got null, want an object"},

		{"version 2", r(`"version":1`, `"version":2`), ReasonUnsupportedVersion, fpm + ".version", ""},
		{"no version", r(inside, ""), ReasonUnsupportedVersion, fpm + ".version", "unsupported_version: event.fpm.version: got nothing, want 1"},
		{"no counter_id", r(`"counter_id":42,`, ""), ReasonMalformed, fpm + ".counter_id", ""},
		{"known key twice", r(inside, `"version":1,"dp_rank":0,`), ReasonMalformed, fpm + ".dp_rank", ""},
		{"group missing", r(`"queued_requests"`, `"other"`), ReasonMalformed, fpm + ".queued_requests", ""},
		{"count missing", r(`"sum_prefill_kv_tokens":64,`, ""), ReasonMalformed, sched + ".sum_prefill_kv_tokens", ""},
		{"count negative", r(`"num_decode_requests":3`, `"num_decode_requests":-3`), ReasonMalformed, sched + ".num_decode_requests", ""},
		{"count a float", r(`"num_decode_requests":3`, `"num_decode_requests":3.0`), ReasonMalformed, sched + ".num_decode_requests", ""},
		{"count text", r(`"num_decode_requests":3`, `"num_decode_requests":"3"`), ReasonMalformed, sched + ".num_decode_requests", ""},
		{"variance null", r(`"sum_prefill_kv_tokens"`, `"var_prefill_length":null,"sum_prefill_kv_tokens"`), ReasonMalformed, sched + ".var_prefill_length", ""},
		{"wall_time negative", r("0.025", "-0.025"), ReasonMalformed, fpm + ".wall_time", ""},
		{"wall_time over float64", r("0.025", "1e400"), ReasonMalformed, fpm + ".wall_time", "malformed: event.fpm.wall_time: got 1e400, want a number that fits a float64"},
		{"count above 2^63-1", r(`"num_decode_requests":3`, `"num_decode_requests":9223372036854775808`), ReasonOutOfRange, sched + ".num_decode_requests", "out_of_range: event.fpm.scheduled_requests.num_decode_requests: got 9223372036854775808, want at most 9223372036854775807"},
		{"count of 2^64-1", r(`"num_decode_requests":3`, `"num_decode_requests":18446744073709551615`), ReasonOutOfRange, sched + ".num_decode_requests", ""},
		{"count above 2^64", r(`"counter_id":42`, `"counter_id":99999999999999999999999999999999999999999999999999`), ReasonOutOfRange, fpm + ".counter_id", ""},
		{"unknown integer above 2^63-1", r(inside, inside+`"x":[9223372036854775808],`), ReasonOutOfRange, fpm + ".x", ""},
		{"unknown integer below -2^63", r(inside, inside+`"x":-9223372036854775809,`), ReasonOutOfRange, fpm + ".x", "out_of_range: event.fpm.x: got -9223372036854775809, want at least -9223372036854775808"},
		{"32 levels below the record", r(inside, inside+deep(32)), ReasonMalformed, fpm + ".x", ""},
		{"a million levels around it", strings.Repeat(`{"x":`, 1_000_000), ReasonMalformed, "row", ""},
		{"a million levels inside", r(inside, inside+deep(1_000_000)), ReasonMalformed, fpm + ".x", ""},
		{"a million levels beside the event", `{"x":` + strings.Repeat("[", 1_000_000), ReasonMalformed, "row", ""},
		{"too many values", r(inside, inside+`"x":[`+strings.Repeat("0,", maxValues)+"0],"), ReasonMalformed, fpm + ".x", ""},
		{"too many keys", r(inside, inside+`"x":{`+strings.Repeat(`"":0,`, maxKeys)+`"":0},`), ReasonMalformed, fpm + ".x", ""},
		{"key with a line break", r(inside, inside+`"a\nb":1e999,`), ReasonMalformed, fpm + `."a\nb"`, ""},
		{"long key", r(inside, inside+`"`+strings.Repeat("k", 300)+`":1e999,`), ReasonMalformed, fpm + `."` + strings.Repeat("k", 40) + `"… (300 bytes)`, ""},

		{"flat, not a record", `{"message":"hello"}`, ReasonMalformed, "scheduled_requests", ""},
		{"flat, empty", `{}`, ReasonMalformed, "scheduled_requests", ""},
		{"flat, out of range", `{"version":1,"counter_id":9223372036854775808}`, ReasonOutOfRange, "counter_id", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, payload, err := new(RowReader).Read([]byte("before"), []byte(test.line))
			require.Error(t, err)
			assertRowRejection(t, err)
			rejected := err.(*RejectError)
			assert.Equal(t, test.reason, rejected.Reason, err)
			assert.Equal(t, test.field, rejected.Field, err)
			if test.want != "" {
				assert.EqualError(t, err, test.want)
			}
			assert.Equal(t, "before", string(payload[:6]))
		})
	}
}

// TestReadDepth: 31 levels below the record are allowed, as on the wire.
func TestReadDepth(t *testing.T) {
	row := readRow(t, replaced(t, `"version":1,`, `"version":1,"x":`+strings.Repeat("[", 31)+strings.Repeat("]", 31)+`,`))
	assertInvariants(t, &row.Record)
}

func assertRowRejection(t testing.TB, err error) {
	rejected, ok := err.(*RejectError)
	require.True(t, ok, "%T", err)
	assert.Contains(t, []Reason{ReasonMalformed, ReasonOutOfRange, ReasonUnsupportedVersion, ReasonSchema}, rejected.Reason)
	assert.NotEmpty(t, rejected.Field)
	assert.NotEmpty(t, rejected.Got)
	assert.NotEmpty(t, rejected.Want)
	assertShortLine(t, rejected)
}
