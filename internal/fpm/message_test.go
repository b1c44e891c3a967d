// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// wireMap is a msgpack map in the making: ordered, with any keys, also twice.
type wireMap []wirePair

type wirePair struct{ key, value any }

// raw is msgpack as it stands.
type raw []byte

// validMap is a version 1 message without optional keys; every number in it is
// another one.
func validMap() wireMap {
	return wireMap{
		{"version", 1},
		{"worker_id", "worker-7"},
		{"dp_rank", 3},
		{"counter_id", 1234},
		{"wall_time", 0.025},
		{"scheduled_requests", wireMap{
			{"num_prefill_requests", 2},
			{"sum_prefill_tokens", 2048},
			{"var_prefill_length", 1.5},
			{"sum_prefill_kv_tokens", 300},
			{"num_decode_requests", 96},
			{"sum_decode_kv_tokens", 70000},
			{"var_decode_kv_tokens", 2.5},
		}},
		{"queued_requests", wireMap{
			{"num_prefill_requests", 5},
			{"sum_prefill_tokens", 6000},
			{"var_prefill_length", 3.5},
			{"num_decode_requests", 7},
			{"sum_decode_kv_tokens", 8000},
			{"var_decode_kv_tokens", 4.5},
		}},
	}
}

// validRecord is what validMap reads as.
func validRecord() Record {
	return Record{
		WorkerID: "worker-7", DPRank: 3, CounterID: 1234, WallTime: 0.025,
		Scheduled: Requests{
			NumPrefillRequests: 2, SumPrefillTokens: 2048, VarPrefillLength: 1.5, SumPrefillKVTokens: 300,
			NumDecodeRequests: 96, SumDecodeKVTokens: 70000, VarDecodeKVTokens: 2.5,
		},
		Queued: Requests{
			NumPrefillRequests: 5, SumPrefillTokens: 6000, VarPrefillLength: 3.5,
			NumDecodeRequests: 7, SumDecodeKVTokens: 8000, VarDecodeKVTokens: 4.5,
		},
	}
}

// The known fields by what they hold.
var (
	countFields = []string{
		"dp_rank",
		"counter_id",
		"scheduled_requests.num_prefill_requests",
		"scheduled_requests.sum_prefill_tokens",
		"scheduled_requests.sum_prefill_kv_tokens",
		"scheduled_requests.num_decode_requests",
		"scheduled_requests.sum_decode_kv_tokens",
		"queued_requests.num_prefill_requests",
		"queued_requests.sum_prefill_tokens",
		"queued_requests.num_decode_requests",
		"queued_requests.sum_decode_kv_tokens",
	}
	measureFields = []string{
		"wall_time",
		"scheduled_requests.var_prefill_length",
		"scheduled_requests.var_decode_kv_tokens",
		"queued_requests.var_prefill_length",
		"queued_requests.var_decode_kv_tokens",
	}
	textFields  = []string{"worker_id", "timing_scope"}
	groupFields = []string{"scheduled_requests", "queued_requests"}
)

// set returns a copy in which the dotted field has the value; a field that is
// not there comes last in its map.
func (m wireMap) set(field string, value any) wireMap {
	m = slices.Clone(m)
	group, rest, nested := strings.Cut(field, ".")
	for i, pair := range m {
		if pair.key == group {
			if nested {
				value = pair.value.(wireMap).set(rest, value)
			}
			m[i].value = value
			return m
		}
	}
	return append(m, wirePair{field, value})
}

// add returns a copy with one more pair at the end of a group, "" for the root.
func (m wireMap) add(group string, key, value any) wireMap {
	if group == "" {
		return append(slices.Clone(m), wirePair{key, value})
	}
	return m.set(group, append(slices.Clone(m.get(group).(wireMap)), wirePair{key, value}))
}

// twice returns a copy in which the dotted field comes a second time.
func (m wireMap) twice(field string) wireMap {
	group, key := splitField(field)
	return m.add(group, key, m.get(field))
}

func (m wireMap) get(field string) any {
	group, rest, nested := strings.Cut(field, ".")
	for _, pair := range m {
		if pair.key == group {
			if nested {
				return pair.value.(wireMap).get(rest)
			}
			return pair.value
		}
	}
	return nil
}

// without returns a copy that lacks the dotted field.
func (m wireMap) without(field string) wireMap {
	group, rest, nested := strings.Cut(field, ".")
	if nested {
		return m.set(group, m.get(group).(wireMap).without(rest))
	}
	return slices.DeleteFunc(slices.Clone(m), func(pair wirePair) bool { return pair.key == field })
}

func splitField(field string) (group, key string) {
	if group, key, nested := strings.Cut(field, "."); nested {
		return group, key
	}
	return "", field
}

func (m wireMap) encode() []byte { return encode(m) }

// encode writes a value as the engines do: ints in the smallest form.
func encode(value any) []byte {
	var buffer bytes.Buffer
	encoder := msgpack.NewEncoder(&buffer)
	encoder.UseCompactInts(true)
	encodeTo(&buffer, encoder, value)
	return buffer.Bytes()
}

func encodeTo(buffer *bytes.Buffer, encoder *msgpack.Encoder, value any) {
	var err error
	switch value := value.(type) {
	case wireMap:
		err = encoder.EncodeMapLen(len(value))
		for _, pair := range value {
			encodeTo(buffer, encoder, pair.key)
			encodeTo(buffer, encoder, pair.value)
		}
	case []any:
		err = encoder.EncodeArrayLen(len(value))
		for _, element := range value {
			encodeTo(buffer, encoder, element)
		}
	case raw:
		buffer.Write(value)
	default:
		err = encoder.Encode(value)
	}
	if err != nil {
		panic(err)
	}
}

// ordered is a map as it was written: in order, of a key that comes twice the
// last value in the first place. Values are nil, bool, int64, double, string,
// []any and ordered.
type ordered []orderedPair

type orderedPair struct {
	Key   string
	Value any
}

func (o ordered) keys() []string {
	keys := make([]string, len(o))
	for i, pair := range o {
		keys[i] = pair.Key
	}
	return keys
}

func (o ordered) get(key string) any {
	for _, pair := range o {
		if pair.Key == key {
			return pair.Value
		}
	}
	return nil
}

// double is a float that equals itself, NaN or not.
type double uint64

func (d double) String() string { return fmt.Sprintf("%v", math.Float64frombits(uint64(d))) }

func (o ordered) put(key string, value any) ordered {
	for i := range o {
		if o[i].Key == key {
			o[i].Value = value
			return o
		}
	}
	return append(o, orderedPair{key, value})
}

// reference reads a payload with the generic decoder of the msgpack library.
func reference(t testing.TB, payload []byte) ordered {
	decoder := msgpack.NewDecoder(bytes.NewReader(payload))
	decoder.SetMapDecoder(func(decoder *msgpack.Decoder) (any, error) {
		n, err := decoder.DecodeMapLen()
		result := ordered{}
		for ; n > 0 && err == nil; n-- {
			var (
				key   string
				value any
			)
			if key, err = decoder.DecodeString(); err == nil {
				value, err = decoder.DecodeInterface()
			}
			result = result.put(key, value)
		}
		return result, err
	})
	value, err := decoder.DecodeInterface()
	require.NoError(t, err)
	return normal(value).(ordered)
}

// normal widens numbers.
func normal(value any) any {
	switch value := value.(type) {
	case int8:
		return int64(value)
	case int16:
		return int64(value)
	case int32:
		return int64(value)
	case uint8:
		return int64(value)
	case uint16:
		return int64(value)
	case uint32:
		return int64(value)
	case uint64:
		return int64(value)
	case float32:
		return double(math.Float64bits(float64(value)))
	case float64:
		return double(math.Float64bits(value))
	case []any:
		for i := range value {
			value[i] = normal(value[i])
		}
		return value
	case ordered:
		for i := range value {
			value[i].Value = normal(value[i].Value)
		}
		return value
	}
	return value
}

// orderedBody reads a log body.
func orderedBody(body pcommon.Map) ordered {
	result := ordered{}
	for key, value := range body.All() {
		result = append(result, orderedPair{key, orderedValue(value)})
	}
	return result
}

func orderedValue(value pcommon.Value) any {
	switch value.Type() {
	case pcommon.ValueTypeInt:
		return value.Int()
	case pcommon.ValueTypeDouble:
		return double(math.Float64bits(value.Double()))
	case pcommon.ValueTypeMap:
		return orderedBody(value.Map())
	case pcommon.ValueTypeSlice:
		slice := make([]any, value.Slice().Len())
		for i := range slice {
			slice[i] = orderedValue(value.Slice().At(i))
		}
		return slice
	default:
		return value.AsRaw()
	}
}

// filledBody fills a body from a record.
func filledBody(record Record) ordered {
	body := pcommon.NewMap()
	NewBodyWriter().Fill(body, &record)
	return orderedBody(body)
}

// decodeValid decodes a payload that must be accepted.
func decodeValid(t testing.TB, payload []byte) Record {
	t.Helper()
	record, err := NewDecoder(true).Decode(payload, 99)
	require.NoError(t, err)
	return record
}
