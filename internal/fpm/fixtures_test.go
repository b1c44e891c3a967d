// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Payloads made by the engines' own encoder: testdata/wire/generate.py.
func TestFixtures(t *testing.T) {
	busy := Requests{
		NumPrefillRequests: 2, SumPrefillTokens: 2048, VarPrefillLength: 65536.25, SumPrefillKVTokens: 512,
		NumDecodeRequests: 96, SumDecodeKVTokens: 181344, VarDecodeKVTokens: 1234567.875,
	}
	waiting := Requests{
		NumPrefillRequests: 5, SumPrefillTokens: 70000, VarPrefillLength: 0.1,
		NumDecodeRequests: 1, SumDecodeKVTokens: 4097,
	}
	tests := map[string]Record{
		"dynamo_vllm_v1": {
			WorkerID: "7587888132451209482", DPRank: 1, CounterID: 123456, WallTime: 0.021337,
			Scheduled: busy, Queued: waiting,
		},
		"sglang_v1": {
			CounterID: 200, WallTime: 0.012500000186264515,
			Scheduled: Requests{NumDecodeRequests: 64, SumDecodeKVTokens: 70000, VarDecodeKVTokens: 3.5},
		},
		"vllm_native": {
			WorkerID: "vllm-4f0c6c1e9d2b4b0f8a3e5d7c9b1a2f3e", DPRank: 300, CounterID: 1 << 32,
			TimingScope: "model_step_cuda", HasTimingScope: true, WallTime: 1e-5,
			Scheduled: busy, Queued: waiting,
		},
		"unversioned": {
			DPRank: 2, CounterID: sequenceFrame, WallTime: 0.5, Scheduled: busy, Queued: waiting,
			Unversioned: true, counterFromSequence: true,
		},
		"additive": {
			WorkerID: "w", CounterID: 7, WallTime: 0.03,
			Scheduled: Requests{
				NumPrefillRequests: 1, SumPrefillTokens: 1000,
				NumDecodeRequests: 2, SumDecodeKVTokens: 700, VarDecodeKVTokens: 2500,
			},
		},
		"heartbeat": {WorkerID: "w", DPRank: 3, CounterID: math.MaxInt64},
		"int_in_float_fields": {
			WorkerID: "w", CounterID: 8, WallTime: 1,
			Scheduled: Requests{NumPrefillRequests: 1, SumPrefillTokens: 10},
			Queued:    Requests{NumDecodeRequests: 2, SumDecodeKVTokens: 600, VarDecodeKVTokens: 10000},
		},
	}
	files, err := filepath.Glob("testdata/wire/*.hex")
	require.NoError(t, err)
	require.Len(t, files, len(tests))
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			payload := fixture(t, name)
			record := decodeValid(t, payload)
			assert.Equal(t, name == "heartbeat", record.Heartbeat())
			want.Payload = payload
			want.canonical = name != "unversioned" && name != "additive" && name != "int_in_float_fields"
			assert.Equal(t, want, record)

			meant, err := os.ReadFile("testdata/wire/" + name + ".json")
			require.NoError(t, err)
			body := orderedJSON(t, meant)
			if name == "unversioned" {
				body = ordered{
					{"version", int64(1)}, body[0], body[1], {"counter_id", int64(sequenceFrame)}, body[2], body[3], body[4],
				}
			}
			assert.Equal(t, body, filledBody(record))
		})
	}
}

// fixture reads a payload of testdata/wire.
func fixture(t testing.TB, name string) []byte {
	text, err := os.ReadFile("testdata/wire/" + name + ".hex")
	require.NoError(t, err)
	payload, err := hex.DecodeString(strings.ReplaceAll(string(text), "\n", ""))
	require.NoError(t, err)
	return payload
}

// orderedJSON reads JSON in which floats have a dot and ints have none.
func orderedJSON(t testing.TB, text []byte) ordered {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	next := func() json.Token {
		token, err := decoder.Token()
		require.NoError(t, err)
		return token
	}
	var value func(json.Token) any
	value = func(token json.Token) any {
		switch token := token.(type) {
		case json.Number:
			if strings.ContainsAny(token.String(), ".e") {
				number, err := token.Float64()
				require.NoError(t, err)
				return toDouble(number)
			}
			number, err := strconv.ParseInt(token.String(), 10, 64)
			require.NoError(t, err)
			return number
		case json.Delim:
			if token == '[' {
				array := []any{}
				for decoder.More() {
					array = append(array, value(next()))
				}
				next()
				return array
			}
			result := ordered{}
			for decoder.More() {
				key := next().(string)
				result = append(result, orderedPair{key, value(next())})
			}
			next()
			return result
		default:
			return token
		}
	}
	return value(next()).(ordered)
}
