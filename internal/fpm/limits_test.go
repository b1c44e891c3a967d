// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// fullMap has every kind of value, each in a long form too.
func fullMap() wireMap {
	return validMap().
		set("timing_scope", "a timing scope that needs a length byte of its own").
		add("scheduled_requests", "extend_lengths", []any{1, 200, 70000, int64(1) << 40, -1, -200, -70000, -(int64(1) << 40)}).
		add("", "outer", wireMap{{"a", nil}, {"b", true}, {"c", false}, {"d", float32(1)}, {"e", 1.0}, {"f", wireMap{}}, {"g", []any{}}}).
		add("", "array16", raw{0xdc, 0, 1, 0xc0}).
		add("", "array32", raw{0xdd, 0, 0, 0, 1, 0xc0}).
		add("", "map16", raw{0xde, 0, 1, 0xa1, 'k', 0xc0}).
		add("", "map32", raw{0xdf, 0, 0, 0, 1, 0xa1, 'k', 0xc0}).
		add("", "str16", raw{0xda, 0, 1, 'v'}).
		add("", "str32", raw{0xdb, 0, 0, 0, 1, 'v'})
}

func TestDecodeCutPayload(t *testing.T) {
	payload := fullMap().encode()
	decodeValid(t, payload)
	for n := range payload {
		// The rest of the slice's array must not be read either.
		rejected := decodeRejected(t, payload[:n:n])
		require.Equal(t, ReasonMalformed, rejected.Reason, "cut after %d bytes", n)
		require.Contains(t, rejected.Got, "cut short", "cut after %d bytes", n)
	}
}

// One wrong byte anywhere makes an error, or a message that is read as the
// generic decoder of the msgpack library reads it.
func TestDecodeWrongByte(t *testing.T) {
	payload := fullMap().encode()
	decoder := NewDecoder(true)
	writer := NewBodyWriter()
	accepted := 0
	for i, right := range payload {
		for wrong := range 256 {
			payload[i] = byte(wrong)
			record, err := decoder.Decode(payload, sequenceFrame)
			if err != nil {
				assertRejection(t, err)
				continue
			}
			if accepted++; accepted%4 != 0 {
				continue // the comparison is slow
			}
			body := pcommon.NewMap()
			writer.Fill(body, &record)
			assertInvariants(t, &record)
			assertBodyIsPayload(t, &record, orderedBody(body))
			assertRecordIsBody(t, &record, orderedBody(body))
		}
		payload[i] = right
	}
	assert.Greater(t, accepted, 1000)
}

// A length in a header is a claim: nothing is allocated for it.
func TestDecodeAnnouncedLengths(t *testing.T) {
	huge := []byte{0xff, 0xff, 0xff, 0xff}
	tests := map[string]struct {
		message any
		field   string
		got     string
	}{
		"root map32":      {raw(append([]byte{0xdf}, huge...)), "payload", "a map of 4294967295 keys"},
		"root map16":      {raw{0xde, 0xff, 0xff}, "payload", "a map of 65535 keys"},
		"group map32":     {validMap().set("scheduled_requests", raw(append([]byte{0xdf}, huge...))), "scheduled_requests", "a map of 4294967295 keys"},
		"unknown map32":   {validMap().add("", "x", raw(append([]byte{0xdf}, huge...))), "x", "a map of 4294967295 keys"},
		"unknown array32": {validMap().add("", "x", raw(append([]byte{0xdd}, huge...))), "x", "cut short"},
		"unknown str32":   {validMap().add("", "x", raw(append([]byte{0xdb}, huge...))), "x", "cut short"},
		"unknown bin32":   {validMap().add("", "x", raw(append([]byte{0xc6}, huge...))), "x", "binary"},
		"unknown ext32":   {validMap().add("", "x", raw(append([]byte{0xc9}, huge...))), "x", "an extension"},
		"root key str32":  {append(validMap(), wirePair{raw(append([]byte{0xdb}, huge...)), 1}), "payload", "cut short"},
		"worker_id str32": {validMap().set("worker_id", raw(append([]byte{0xdb}, huge...))), "worker_id", "cut short"},
		"dp_rank str32":   {validMap().set("dp_rank", raw(append([]byte{0xdb}, huge...))), "dp_rank", "a string"},
		"map of 1024 keys and none": {
			validMap().add("", "x", raw{0xde, 4, 0}), "x", "cut short",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			payload := encode(test.message)
			decoder := NewDecoder(true)
			_, err := decoder.Decode(payload, sequenceFrame)
			rejected := err.(*RejectError)
			assert.Equal(t, ReasonMalformed, rejected.Reason)
			assert.Equal(t, test.field, rejected.Field)
			assert.Contains(t, rejected.Got, test.got)

			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range 100 {
				_, _ = decoder.Decode(payload, sequenceFrame)
			}
			runtime.ReadMemStats(&after)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100*4096))
		})
	}
}

func TestDecodeAllocations(t *testing.T) {
	for name, message := range map[string]wireMap{
		"version 1":    validMap(),
		"timing_scope": validMap().add("", "timing_scope", "model_step_cuda"),
		"unknown keys": fullMap(),
		"heartbeat":    heartbeatMap(),
	} {
		t.Run(name, func(t *testing.T) {
			payload := message.encode()
			decoder := NewDecoder(true)
			assert.Zero(t, testing.AllocsPerRun(100, func() {
				if _, err := decoder.Decode(payload, sequenceFrame); err != nil {
					t.Fatal(err)
				}
			}))
		})
	}
}
