// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/xpdata"

	"github.com/otelcol-fpm/otelcol-fpm/internal/msgpack"
)

// BodyWriter writes records as log bodies: the payload as a map, keys in wire
// order, unknown keys kept, ints as ints and floats as doubles. It reuses its
// buffers and belongs to one goroutine. The zero BodyWriter is ready for use and
// must not be copied after that.
//
// A body takes up to 50 times the memory of its payload (an array of empty
// maps): who gathers bodies bounds the bytes of their payloads.
type BodyWriter struct {
	walk        walker
	root, group xpdata.MapBuilder
}

// NewBodyWriter makes a writer.
func NewBodyWriter() *BodyWriter { return &BodyWriter{} }

// Fill writes the record's payload into dst, which should be empty. The record
// must come from Decode, which has walked the same bytes without an error: none
// is looked at here. The keys that an unversioned payload lacks are put in
// their canonical places: version first, counter_id after dp_rank.
func (b *BodyWriter) Fill(dst pcommon.Map, record *Record) {
	if record.canonical {
		b.fillCanonical(dst, record)
		return
	}
	w := &b.walk
	w.Reset(record.Payload)
	n, _ := w.mapLen()
	dst.EnsureCapacity(n + 2)
	if record.Unversioned {
		dst.PutInt(keyVersion, Version)
	}
	for ; n > 0; n-- {
		key, _ := w.key()
		b.value(put(dst, key))
		if record.counterFromSequence && string(key) == keyDPRank {
			dst.PutInt(keyCounterID, record.CounterID)
		}
	}
}

func (b *BodyWriter) value(dst pcommon.Value) {
	w := &b.walk
	got, _ := w.peek()
	switch got {
	case msgpack.Bool:
		dst.SetBool(w.Bool())
	case msgpack.Int:
		value, _ := w.integer()
		dst.SetInt(value)
	case msgpack.Float:
		value, _ := w.Float()
		dst.SetDouble(value)
	case msgpack.String:
		value, _ := w.text()
		dst.SetStr(string(value))
	case msgpack.Array:
		n, _ := w.arrayLen()
		slice := dst.SetEmptySlice()
		for ; n > 0; n-- {
			b.value(slice.AppendEmpty())
		}
	case msgpack.Map:
		n, _ := w.mapLen()
		nested := dst.SetEmptyMap()
		nested.EnsureCapacity(n)
		for ; n > 0; n-- {
			key, _ := w.key()
			b.value(put(nested, key))
		}
	default: // nil: an empty value
		w.Nil()
	}
}

// put makes room for a key. Of a key that comes twice (only unknown ones may)
// the last value wins, in the first one's place.
func put(dst pcommon.Map, key []byte) pcommon.Value {
	return dst.PutEmpty(internKey(key))
}

// internKey gives the known keys without an allocation. A switch over constants
// costs less than a map here.
func internKey(key []byte) string {
	switch string(key) {
	case keyVersion:
		return keyVersion
	case keyWorkerID:
		return keyWorkerID
	case keyDPRank:
		return keyDPRank
	case keyCounterID:
		return keyCounterID
	case keyTimingScope:
		return keyTimingScope
	case keyWallTime:
		return keyWallTime
	case keyScheduled:
		return keyScheduled
	case keyQueued:
		return keyQueued
	case keyNumPrefillRequests:
		return keyNumPrefillRequests
	case keySumPrefillTokens:
		return keySumPrefillTokens
	case keyVarPrefillLength:
		return keyVarPrefillLength
	case keySumPrefillKVTokens:
		return keySumPrefillKVTokens
	case keyNumDecodeRequests:
		return keyNumDecodeRequests
	case keySumDecodeKVTokens:
		return keySumDecodeKVTokens
	case keyVarDecodeKVTokens:
		return keyVarDecodeKVTokens
	}
	return string(key)
}
