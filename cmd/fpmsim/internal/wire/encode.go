// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire writes the FPM message as engines do: a msgpack map with string
// keys in the declared order of ForwardPassMetrics version 1
// (dynamo.common.forward_pass_metrics), ints in their smallest form, floats
// always as float64. The bytes are those of msgspec's encoder.
package wire

import (
	"encoding/binary"
	"math"

	"github.com/otelcol-fpm/otelcol-fpm/cmd/fpmsim/internal/load"
)

// Message is a forward pass with the identity its publisher gives it. The zero
// Pass makes it a heartbeat.
type Message struct {
	WorkerID string
	DPRank   int
	// CounterID equals the sequence number of the message.
	CounterID uint64
	Pass      load.Pass
}

// AppendMessage appends the payload of a message to b.
func AppendMessage(b []byte, m *Message) []byte {
	b = append(b, 0x87) // fixmap of 7
	b = appendUint(appendString(b, "version"), 1)
	b = appendString(appendString(b, "worker_id"), m.WorkerID)
	b = appendCount(appendString(b, "dp_rank"), m.DPRank)
	b = appendUint(appendString(b, "counter_id"), m.CounterID)
	b = appendFloat(appendString(b, "wall_time"), m.Pass.WallTime)
	b = append(appendString(b, "scheduled_requests"), 0x87)
	b = appendPrefill(b, &m.Pass.Scheduled)
	b = appendCount(appendString(b, "sum_prefill_kv_tokens"), m.Pass.Scheduled.SumPrefillKVTokens)
	b = appendDecode(b, &m.Pass.Scheduled)
	b = append(appendString(b, "queued_requests"), 0x86)
	b = appendPrefill(b, &m.Pass.Queued)
	return appendDecode(b, &m.Pass.Queued)
}

func appendPrefill(b []byte, g *load.Requests) []byte {
	b = appendCount(appendString(b, "num_prefill_requests"), g.NumPrefillRequests)
	b = appendCount(appendString(b, "sum_prefill_tokens"), g.SumPrefillTokens)
	return appendFloat(appendString(b, "var_prefill_length"), g.VarPrefillLength)
}

func appendDecode(b []byte, g *load.Requests) []byte {
	b = appendCount(appendString(b, "num_decode_requests"), g.NumDecodeRequests)
	b = appendCount(appendString(b, "sum_decode_kv_tokens"), g.SumDecodeKVTokens)
	return appendFloat(appendString(b, "var_decode_kv_tokens"), g.VarDecodeKVTokens)
}

// appendCount writes a count, which is never negative.
func appendCount(b []byte, n int) []byte { return appendUint(b, uint64(n)) }

func appendUint(b []byte, n uint64) []byte {
	switch {
	case n < 0x80:
		return append(b, byte(n))
	case n <= math.MaxUint8:
		return append(b, 0xcc, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, 0xcd), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, 0xce), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(b, 0xcf), n)
	}
}

func appendFloat(b []byte, f float64) []byte {
	return binary.BigEndian.AppendUint64(append(b, 0xcb), math.Float64bits(f))
}

func appendString(b []byte, s string) []byte {
	switch n := len(s); {
	case n < 32:
		b = append(b, 0xa0|byte(n))
	case n <= math.MaxUint8:
		b = append(b, 0xd9, byte(n))
	case n <= math.MaxUint16:
		b = binary.BigEndian.AppendUint16(append(b, 0xda), uint16(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 0xdb), uint32(n))
	}
	return append(b, s...)
}
