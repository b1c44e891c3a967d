// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sequenceFrame is the sequence number that goes with the payloads of these
// tests; it differs from validMap's counter_id.
const sequenceFrame = 99

func TestDecodeAccepts(t *testing.T) {
	want := validRecord
	with := func(change func(*Record)) Record {
		record := want()
		change(&record)
		return record
	}
	tests := []struct {
		name    string
		payload wireMap
		want    Record
	}{
		{"version 1", validMap(), want()},
		{
			"no variances", validMap().
				without("scheduled_requests.var_prefill_length").without("scheduled_requests.var_decode_kv_tokens").
				without("queued_requests.var_prefill_length").without("queued_requests.var_decode_kv_tokens"),
			with(func(r *Record) {
				r.Scheduled.VarPrefillLength, r.Scheduled.VarDecodeKVTokens = 0, 0
				r.Queued.VarPrefillLength, r.Queued.VarDecodeKVTokens = 0, 0
			}),
		},
		{
			"timing_scope", validMap().add("", "timing_scope", "model_step_cuda"),
			with(func(r *Record) { r.TimingScope, r.HasTimingScope = "model_step_cuda", true }),
		},
		{
			"empty timing_scope", validMap().add("", "timing_scope", ""),
			with(func(r *Record) { r.HasTimingScope = true }),
		},
		{"empty worker_id", validMap().set("worker_id", ""), with(func(r *Record) { r.WorkerID = "" })},
		{
			"worker_id of 4096 bytes", validMap().set("worker_id", strings.Repeat("w", 4096)),
			with(func(r *Record) { r.WorkerID = strings.Repeat("w", 4096) }),
		},
		{"unknown root key", validMap().add("", "benchmark_sample", wireMap{{"a", []any{1, 2.5, nil, true, "x"}}}), want()},
		{"unknown scheduled key", validMap().add("scheduled_requests", "extend_lengths", []any{3, 4}), want()},
		{"unknown queued key", validMap().add("queued_requests", "note", "x"), want()},
		{"unknown nested key", validMap().add("", "outer", wireMap{{"inner", wireMap{{"innermost", -1}}}}), want()},
		{"unknown empty key", validMap().add("", "", 1), want()},
		{"unknown NaN", validMap().add("", "quality", math.NaN()), want()},
		{"unknown negative int", validMap().add("", "drift", -5), want()},
		{"sum_prefill_kv_tokens is unknown to queued_requests", validMap().add("queued_requests", "sum_prefill_kv_tokens", "any"), want()},
		{"unknown key twice", validMap().add("", "note", 1).add("", "note", "last"), want()},
		{"unknown key twice in a group", validMap().add("queued_requests", "note", 1).add("queued_requests", "note", 2), want()},
		{"unknown nested key twice", validMap().add("", "outer", wireMap{{"a", 1}, {"a", 2}}), want()},
		{
			"a known name under an unknown key is unknown",
			validMap().add("", "outer", wireMap{{"wall_time", "x"}, {"wall_time", nil}}), want(),
		},
		{"heartbeat", heartbeatMap(), Record{WorkerID: "worker-7", DPRank: 3, CounterID: 1234}},
		{"untimed", validMap().set("wall_time", 0.0), with(func(r *Record) { r.WallTime = 0 })},
		{"negative zero", validMap().set("wall_time", math.Copysign(0, -1)), with(func(r *Record) { r.WallTime = math.Copysign(0, -1) })},
		{"long duration", validMap().set("wall_time", 1e100), with(func(r *Record) { r.WallTime = 1e100 })},
		{
			"no version, no counter_id", validMap().without("version").without("counter_id"),
			with(func(r *Record) { r.Unversioned, r.counterFromSequence, r.CounterID = true, true, sequenceFrame }),
		},
		{"no version", validMap().without("version"), with(func(r *Record) { r.Unversioned = true })},
		{"nested to level 32", validMap().add("", "deep", nest(31)), want()},
		{"nested to level 32 in a group", validMap().add("queued_requests", "deep", nest(30)), want()},
		{"1024 keys", validMap().add("", "wide", wide(1024)), want()},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			payload := test.payload.encode()
			got := decodeValid(t, payload)
			test.want.Payload = payload
			test.want.canonical = got.canonical // see TestCanonicalBodyIsThePayload
			assert.Equal(t, test.want, got)
			assert.Equal(t, math.Signbit(test.want.WallTime), math.Signbit(got.WallTime))
		})
	}
}

func TestDecodeAnyKeyOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	shuffle := func(m wireMap) {
		random.Shuffle(len(m), func(i, j int) { m[i], m[j] = m[j], m[i] })
	}
	for range 100 {
		message := validMap()
		for _, group := range groupFields {
			shuffle(message.get(group).(wireMap))
		}
		shuffle(message)
		payload := message.encode()
		want := validRecord()
		want.Payload = payload
		require.Equal(t, want, decodeValid(t, payload))
	}
}

// Publishers may put an int, or a float32, where a float is declared.
func TestDecodeFloatForms(t *testing.T) {
	for _, field := range measureFields {
		for name, value := range map[string]any{
			"0": 0, "1": 1, "300": 300, "int64": int64(math.MaxInt64), "float32": float32(0.025), "float64": 0.025,
			"smallest": math.SmallestNonzeroFloat64, "largest": math.MaxFloat64,
		} {
			t.Run(field+"/"+name, func(t *testing.T) {
				record := decodeValid(t, validMap().set(field, value).encode())
				want := map[string]float64{
					"0": 0, "1": 1, "300": 300, "int64": 1 << 63, "float32": 0.02500000037252903, "float64": 0.025,
					"smallest": math.SmallestNonzeroFloat64, "largest": math.MaxFloat64,
				}[name]
				assert.Equal(t, want, measureOf(&record, field))
			})
		}
	}
}

// An int may have any width, signed or not.
func TestDecodeIntForms(t *testing.T) {
	for name, code := range map[string]raw{
		"fixint": {5}, "uint8": {0xcc, 5}, "uint16": {0xcd, 0, 5}, "uint32": {0xce, 0, 0, 0, 5},
		"uint64": {0xcf, 0, 0, 0, 0, 0, 0, 0, 5},
		"int8":   {0xd0, 5}, "int16": {0xd1, 0, 5}, "int32": {0xd2, 0, 0, 0, 5}, "int64": {0xd3, 0, 0, 0, 0, 0, 0, 0, 5},
	} {
		for _, field := range countFields {
			t.Run(field+"/"+name, func(t *testing.T) {
				record := decodeValid(t, validMap().set(field, code).encode())
				assert.EqualValues(t, 5, countOf(&record, field))
			})
		}
	}
}

func TestDecodeRejects(t *testing.T) {
	tests := []struct {
		name    string
		payload any
		reason  Reason
		field   string
		got     string
	}{
		{"empty payload", raw{}, ReasonMalformed, "payload", "a payload cut short after 0 bytes"},
		{"empty map", wireMap{}, ReasonMalformed, "scheduled_requests", "nothing"},
		{"no groups", validMap().without("scheduled_requests").without("queued_requests"), ReasonMalformed, "scheduled_requests", "nothing"},
		{"no scheduled_requests", validMap().without("scheduled_requests"), ReasonMalformed, "scheduled_requests", "nothing"},
		{"no queued_requests", validMap().without("queued_requests"), ReasonMalformed, "queued_requests", "nothing"},
		{"empty scheduled_requests", validMap().set("scheduled_requests", wireMap{}), ReasonMalformed, "scheduled_requests.num_prefill_requests", "nothing"},
		{"no worker_id", validMap().without("worker_id"), ReasonMalformed, "worker_id", "nothing"},
		{"no wall_time", validMap().without("wall_time"), ReasonMalformed, "wall_time", "nothing"},
		{"array", []any{1, 2}, ReasonMalformed, "payload", "an array"},
		{"nil", nil, ReasonMalformed, "payload", "nil"},
		{"string", "hello", ReasonMalformed, "payload", `the string "hello"`},
		{"int", 7, ReasonMalformed, "payload", "the integer 7"},
		{"bin", []byte{1}, ReasonMalformed, "payload", "binary"},
		{"ext", raw{0xd4, 1, 0}, ReasonMalformed, "payload", "an extension"},
		{"ext before a map", raw{0xc7, 0, 1, 0x80}, ReasonMalformed, "payload", "an extension"},
		{"unused code", raw{0xc1}, ReasonMalformed, "payload", "an invalid code"},

		{"version 0", validMap().set("version", 0), ReasonUnsupportedVersion, "version", "0"},
		{"version 2", validMap().set("version", 2), ReasonUnsupportedVersion, "version", "2"},
		{"version 2 of another layout", wireMap{{"version", 2}, {"passes", []any{}}}, ReasonUnsupportedVersion, "version", "2"},
		{"version -1", validMap().set("version", -1), ReasonUnsupportedVersion, "version", "-1"},
		{"version 2^63-1", validMap().set("version", int64(math.MaxInt64)), ReasonUnsupportedVersion, "version", "9223372036854775807"},
		{"version without counter_id", validMap().without("counter_id"), ReasonMalformed, "counter_id", "nothing"},

		{"trailing byte", append(raw(validMap().encode()), 0xc0), ReasonMalformed, "payload", "1 bytes after the map"},
		{"trailing map", append(raw(validMap().encode()), validMap().encode()...), ReasonMalformed, "payload", "bytes after the map"},

		{"int key", validMap().add("", 7, 1), ReasonMalformed, "payload", "the integer 7 as a key"},
		{"bin key", validMap().add("", []byte("wall_time"), 1), ReasonMalformed, "payload", "binary as a key"},
		{"nil key", validMap().add("", nil, 1), ReasonMalformed, "payload", "nil as a key"},
		{"int key in scheduled_requests", validMap().add("scheduled_requests", 7, 1), ReasonMalformed, "scheduled_requests", "the integer 7 as a key"},
		{"float key in queued_requests", validMap().add("queued_requests", 1.5, 1), ReasonMalformed, "queued_requests", "the float 1.5 as a key"},
		{"bool key under an unknown key", validMap().add("", "outer", wireMap{{true, 1}}), ReasonMalformed, "outer", "the boolean true as a key"},
		{
			"array key under an unknown key of a group", validMap().add("queued_requests", "outer", []any{wireMap{{[]any{}, 1}}}),
			ReasonMalformed, "queued_requests.outer", "an array as a key",
		},

		{"invalid UTF-8 in worker_id", validMap().set("worker_id", "a\xff"), ReasonMalformed, "worker_id", `"a\xff"`},
		{"invalid UTF-8 in timing_scope", validMap().set("timing_scope", "\xc3"), ReasonMalformed, "timing_scope", `"\xc3"`},
		{"invalid UTF-8 in an unknown key", validMap().add("", "k\xff", 1), ReasonMalformed, "payload", `"k\xff"`},
		{"invalid UTF-8 in an unknown value", validMap().add("", "note", "v\xff"), ReasonMalformed, "note", `"v\xff"`},
		{"invalid UTF-8 in a nested key", validMap().add("", "outer", wireMap{{"k\xff", 1}}), ReasonMalformed, "outer", `"k\xff"`},
		{"invalid UTF-8 in a nested value", validMap().add("queued_requests", "outer", []any{"v\xff"}), ReasonMalformed, "queued_requests.outer", `"v\xff"`},
		{"surrogate in worker_id", validMap().set("worker_id", "\xed\xa0\x80"), ReasonMalformed, "worker_id", `"\xed\xa0\x80"`},

		{"nested to level 33", validMap().add("", "deep", nest(32)), ReasonMalformed, "deep", "more than 32 levels"},
		{"nested to level 33 in a group", validMap().add("queued_requests", "deep", nest(31)), ReasonMalformed, "queued_requests.deep", "more than 32 levels"},
		{"nested maps to level 33", validMap().add("", "deep", nestMaps(32)), ReasonMalformed, "deep", "more than 32 levels"},
		{"1025 keys", validMap().add("", "wide", wide(1025)), ReasonMalformed, "wide", "a map of 1025 keys"},
		{"1025 root keys", append(validMap(), wide(1018)...), ReasonMalformed, "payload", "a map of 1025 keys"},
		{"worker_id of 4097 bytes", validMap().set("worker_id", strings.Repeat("w", 4097)), ReasonMalformed, "worker_id", "4097 bytes"},

		{"bin under an unknown key", validMap().add("", "blob", []byte{1, 2}), ReasonMalformed, "blob", "binary"},
		{"ext under an unknown key", validMap().add("", "blob", raw{0xd4, 1, 0}), ReasonMalformed, "blob", "an extension"},
		{"ext 8 under an unknown key", validMap().add("", "blob", raw{0xc7, 1, 1, 0}), ReasonMalformed, "blob", "an extension"},
		{"unused code under an unknown key", validMap().add("", "blob", raw{0xc1}), ReasonMalformed, "blob", "an invalid code"},
		{"bin in a nested array", validMap().add("scheduled_requests", "blob", []any{[]any{[]byte{1}}}), ReasonMalformed, "scheduled_requests.blob", "binary"},
		{"ext in a nested map", validMap().add("", "blob", wireMap{{"x", raw{0xd4, 1, 0}}}), ReasonMalformed, "blob", "an extension"},
		{
			"an unknown key named like its group", validMap().add("scheduled_requests", "scheduled_requests", []byte{1}),
			ReasonMalformed, "scheduled_requests.scheduled_requests", "binary",
		},

		{"2^63 under an unknown key", validMap().add("", "big", uint64(1<<63)), ReasonOutOfRange, "big", "9223372036854775808"},
		{
			"2^64-1 in an array of a group", validMap().add("scheduled_requests", "extend_lengths", []any{1, uint64(math.MaxUint64)}),
			ReasonOutOfRange, "scheduled_requests.extend_lengths", "18446744073709551615",
		},
		{"2^63 as version", validMap().set("version", uint64(1<<63)), ReasonOutOfRange, "version", "9223372036854775808"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rejected := decodeRejected(t, encode(test.payload))
			assert.Equal(t, test.reason, rejected.Reason)
			assert.Equal(t, test.field, rejected.Field)
			assert.Contains(t, rejected.Got, test.got)
			assert.NotEmpty(t, rejected.Want)
		})
	}
}

func TestDecodeUnversionedRefused(t *testing.T) {
	decoder := Decoder{AcceptUnversioned: false}
	_, err := decoder.Decode(validMap().without("version").without("counter_id").encode(), sequenceFrame)
	require.EqualError(t, err, "unsupported_version: version: got nothing, want 1 (accept_unversioned takes payloads of the first releases)")
	_, err = decoder.Decode(wireMap{}.encode(), sequenceFrame)
	require.EqualError(t, err, "malformed: scheduled_requests: got nothing, want the key to be there")
	_, err = decoder.Decode(validMap().encode(), sequenceFrame)
	require.NoError(t, err)
}

// Every known field refuses every type but its own.
func TestDecodeRejectsOtherTypes(t *testing.T) {
	wrong := map[string]struct {
		value any
		got   string
	}{
		"nil":    {nil, "nil"},
		"bool":   {true, "the boolean true"},
		"string": {"x", `the string "x"`},
		"bin":    {[]byte("x"), "binary"},
		"array":  {[]any{1}, "an array"},
		"map":    {wireMap{}, "a map"},
		"ext":    {raw{0xd4, 1, 0}, "an extension"},
		"int":    {7, "the integer 7"},
		"float":  {1.0, "the float 1"},
		"NaN":    {math.NaN(), "the float NaN"},
		"unused": {raw{0xc1}, "an invalid code"},
	}
	check := func(fields []string, want string, kinds ...string) {
		for _, field := range fields {
			for _, kind := range kinds {
				t.Run(field+"/"+kind, func(t *testing.T) {
					rejected := decodeRejected(t, validMap().set(field, wrong[kind].value).encode())
					assert.Equal(t, RejectError{ReasonMalformed, field, wrong[kind].got, want}, *rejected)
				})
			}
		}
	}
	never := []string{"nil", "bool", "bin", "array", "ext", "unused"}
	check(append([]string{"version"}, countFields...), "an integer", append(never, "string", "map", "float", "NaN")...)
	check(measureFields, "a number", append(never, "string", "map")...)
	check(textFields, "a string", append(never, "map", "int", "float")...)
	check(groupFields, "a map", append(never, "string", "int", "float")...)
}

func TestDecodeRejectsValues(t *testing.T) {
	reject := func(name string, field string, value any, want RejectError) {
		t.Run(field+"/"+name, func(t *testing.T) {
			want.Field = field
			assert.Equal(t, want, *decodeRejected(t, validMap().set(field, value).encode()))
		})
	}
	outside := RejectError{Reason: ReasonOutOfRange, Got: "9223372036854775808", Want: "at most 9223372036854775807"}
	for _, field := range countFields {
		reject("-1", field, -1, RejectError{Reason: ReasonMalformed, Got: "-1", Want: "0 or more"})
		reject("int64 minimum", field, int64(math.MinInt64), RejectError{Reason: ReasonMalformed, Got: "-9223372036854775808", Want: "0 or more"})
		reject("2^63", field, uint64(1<<63), outside)

		t.Run(field+"/2^63-1", func(t *testing.T) {
			record := decodeValid(t, validMap().set(field, uint64(math.MaxInt64)).encode())
			assert.EqualValues(t, math.MaxInt64, countOf(&record, field))
		})
	}
	for _, field := range measureFields {
		const finite = "a finite number, 0 or more"
		reject("NaN", field, math.NaN(), RejectError{Reason: ReasonMalformed, Got: "NaN", Want: finite})
		reject("+Inf", field, math.Inf(1), RejectError{Reason: ReasonMalformed, Got: "+Inf", Want: finite})
		reject("-Inf", field, math.Inf(-1), RejectError{Reason: ReasonMalformed, Got: "-Inf", Want: finite})
		reject("NaN float32", field, float32(math.NaN()), RejectError{Reason: ReasonMalformed, Got: "NaN", Want: finite})
		reject("-0.5", field, -0.5, RejectError{Reason: ReasonMalformed, Got: "-0.5", Want: finite})
		reject("-1", field, -1, RejectError{Reason: ReasonMalformed, Got: "-1", Want: finite})
		reject("2^63", field, uint64(1<<63), outside)
	}
}

func TestDecodeRejectsMissingInts(t *testing.T) {
	for _, field := range countFields {
		if field == "counter_id" {
			continue // its absence has rules of its own
		}
		for name, message := range map[string]wireMap{"version 1": validMap(), "unversioned": validMap().without("version").without("counter_id")} {
			t.Run(name+"/"+field, func(t *testing.T) {
				want := RejectError{ReasonMalformed, field, "nothing", "the key to be there"}
				assert.Equal(t, want, *decodeRejected(t, message.without(field).encode()))
			})
		}
	}
}

func TestDecodeRejectsKnownKeyTwice(t *testing.T) {
	fields := []string{"version"}
	for _, more := range [][]string{countFields, measureFields, textFields, groupFields} {
		fields = append(fields, more...)
	}
	for _, field := range fields {
		t.Run(field, func(t *testing.T) {
			message := validMap().set("timing_scope", "model_step_cuda").twice(field)
			want := RejectError{ReasonMalformed, field, "the key twice", "each known key once"}
			assert.Equal(t, want, *decodeRejected(t, message.encode()))
		})
	}
}

// Whatever an engine puts into a message, its error is one short line of plain
// characters.
func TestRejectErrorIsOneShortLine(t *testing.T) {
	hostile := "\n\x1b[31m\u202e\u2028\"" + strings.Repeat("é", 5000)
	for name, message := range map[string]wireMap{
		"unknown key":              validMap().add("", hostile, []byte{1}),
		"unknown key in a group":   validMap().add("queued_requests", hostile, []byte{1}),
		"short unknown key":        validMap().add("", hostile[:12], []byte{1}),
		"plain long key":           validMap().add("", strings.Repeat("k", 5000), []byte{1}),
		"right-to-left key":        validMap().add("", "a\u202eb", []byte{1}),
		"nested key":               validMap().add("", "x", wireMap{{hostile + "\xff", 1}}),
		"worker_id":                validMap().set("worker_id", hostile),
		"worker_id not UTF-8":      validMap().set("worker_id", hostile+"\xff"),
		"string for an int":        validMap().set("dp_rank", hostile),
		"string for a map":         validMap().set("queued_requests", hostile),
		"largest float for an int": validMap().set("dp_rank", math.MaxFloat64),
	} {
		t.Run(name, func(t *testing.T) {
			assertShortLine(t, decodeRejected(t, message.encode()))
		})
	}
}

func assertShortLine(t testing.TB, rejected *RejectError) {
	text := rejected.Error()
	assert.Less(t, len(text), 600)
	assert.Equal(t, -1, strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", text)
}

// decodeRejected decodes a payload that must be refused.
func decodeRejected(t testing.TB, payload []byte) *RejectError {
	t.Helper()
	record, err := NewDecoder(true).Decode(payload, sequenceFrame)
	require.Error(t, err)
	assert.Equal(t, Record{}, record)
	var rejected *RejectError
	require.True(t, errors.As(err, &rejected), "%T", err)
	return rejected
}

func heartbeatMap() wireMap {
	message := validMap()
	for _, field := range countFields[2:] {
		message = message.set(field, 0)
	}
	for _, field := range measureFields {
		message = message.set(field, 0.0)
	}
	return message
}

// nest is n arrays one in the other.
func nest(n int) any {
	var value any = []any{}
	for range n - 1 {
		value = []any{value}
	}
	return value
}

func nestMaps(n int) any {
	var value any = wireMap{}
	for range n - 1 {
		value = wireMap{{"m", value}}
	}
	return value
}

// wide is a map of n keys.
func wide(n int) wireMap {
	m := make(wireMap, n)
	for i := range m {
		m[i] = wirePair{"key" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676)), i}
	}
	return m
}

// countOf and measureOf find a dotted field in a record, by the names alone.
func countOf(record *Record, field string) int64 {
	switch field {
	case "dp_rank":
		return record.DPRank
	case "counter_id":
		return record.CounterID
	}
	group, key := groupOf(record, field)
	return map[string]int64{
		"num_prefill_requests":  group.NumPrefillRequests,
		"sum_prefill_tokens":    group.SumPrefillTokens,
		"sum_prefill_kv_tokens": group.SumPrefillKVTokens,
		"num_decode_requests":   group.NumDecodeRequests,
		"sum_decode_kv_tokens":  group.SumDecodeKVTokens,
	}[key]
}

func measureOf(record *Record, field string) float64 {
	if field == "wall_time" {
		return record.WallTime
	}
	group, key := groupOf(record, field)
	return map[string]float64{
		"var_prefill_length":   group.VarPrefillLength,
		"var_decode_kv_tokens": group.VarDecodeKVTokens,
	}[key]
}

func groupOf(record *Record, field string) (Requests, string) {
	group, key := splitField(field)
	if group == "scheduled_requests" {
		return record.Scheduled, key
	}
	return record.Queued, key
}
