// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Schema names the row format. It is the one of Dynamo's own trace files.
const Schema = "dynamo.fpm.trace.v1"

// The capture modes a row can name.
const (
	CaptureSampled = "sampled"
	CaptureFull    = "full"
)

// Envelope is what a row says around its record.
type Envelope struct {
	Source
	// CaptureMode is CaptureSampled or CaptureFull.
	CaptureMode string
	// ObservedAt is the observation time in milliseconds since 1970 UTC.
	ObservedAt int64
}

// AppendRow appends one row of a trace: an event (see AppendEvent) under the
// time at which it was written, in milliseconds since its writer began, and a
// newline. The row has no other newline: JSON text escapes them.
//
// A row is put together in two steps because its event is made when the record
// arrives, but its timestamp only when its turn has come.
func AppendRow(dst []byte, timestamp int64, event []byte) []byte {
	dst = append(dst, `{"timestamp":`...)
	dst = strconv.AppendInt(dst, timestamp, 10)
	dst = append(dst, `,"event":`...)
	dst = append(dst, event...)
	return append(dst, "}\n"...)
}

// AppendEvent appends the event object of a row for a log body: keys in the
// body's order, unknown keys kept, absent variances as 0.0 in their canonical
// places. checked is what ValidateBody said of the same body.
func AppendEvent(dst []byte, envelope *Envelope, body pcommon.Map, checked *Checked) []byte {
	dst = appendEnvelope(dst, envelope)
	first := true
	for key, value := range body.All() {
		dst = appendKey(dst, key, first)
		first = false
		switch key {
		case keyScheduled:
			dst = appendGroup(dst, value.Map(), checked.absentScheduled)
		case keyQueued:
			dst = appendGroup(dst, value.Map(), checked.absentQueued)
		default:
			dst = appendValue(dst, value)
		}
	}
	return append(dst, "}}"...)
}

// AppendRecordEvent is AppendEvent for a record: the canonical version 1 keys
// in canonical order.
func AppendRecordEvent(dst []byte, envelope *Envelope, record *Record) []byte {
	dst = appendEnvelope(dst, envelope)
	dst = append(dst, `"version":1,"worker_id":`...)
	dst = appendString(dst, record.WorkerID)
	dst = appendIntField(dst, `,"dp_rank":`, record.DPRank)
	dst = appendIntField(dst, `,"counter_id":`, record.CounterID)
	if record.HasTimingScope {
		dst = append(dst, `,"timing_scope":`...)
		dst = appendString(dst, record.TimingScope)
	}
	dst = appendFloatField(dst, `,"wall_time":`, record.WallTime)
	dst = append(dst, `,"scheduled_requests":{`...)
	dst = appendRequests(dst, &record.Scheduled, true)
	dst = append(dst, `},"queued_requests":{`...)
	dst = appendRequests(dst, &record.Queued, false)
	return append(dst, "}}}"...)
}

func appendRequests(dst []byte, group *Requests, scheduled bool) []byte {
	dst = appendIntField(dst, `"num_prefill_requests":`, group.NumPrefillRequests)
	dst = appendIntField(dst, `,"sum_prefill_tokens":`, group.SumPrefillTokens)
	dst = appendFloatField(dst, `,"var_prefill_length":`, group.VarPrefillLength)
	if scheduled {
		dst = appendIntField(dst, `,"sum_prefill_kv_tokens":`, group.SumPrefillKVTokens)
	}
	dst = appendIntField(dst, `,"num_decode_requests":`, group.NumDecodeRequests)
	dst = appendIntField(dst, `,"sum_decode_kv_tokens":`, group.SumDecodeKVTokens)
	return appendFloatField(dst, `,"var_decode_kv_tokens":`, group.VarDecodeKVTokens)
}

func appendIntField(dst []byte, prefix string, value int64) []byte {
	return strconv.AppendInt(append(dst, prefix...), value, 10)
}

func appendFloatField(dst []byte, prefix string, value float64) []byte {
	return appendFloat(append(dst, prefix...), value)
}

// appendEnvelope appends the event up to the opening brace of its record.
func appendEnvelope(dst []byte, envelope *Envelope) []byte {
	dst = append(dst, `{"schema":"`+Schema+`","source":{"namespace":`...)
	dst = appendString(dst, envelope.Namespace)
	dst = append(dst, `,"component":`...)
	dst = appendString(dst, envelope.Component)
	dst = append(dst, `,"producer_id":`...)
	dst = appendString(dst, envelope.ProducerID)
	dst = append(dst, `},"capture_mode":`...)
	dst = appendString(dst, envelope.CaptureMode)
	dst = append(dst, `,"observed_at_unix_ms":`...)
	dst = strconv.AppendInt(dst, envelope.ObservedAt, 10)
	return append(dst, `,"fpm":{`...)
}

// appendGroup appends one of the two groups. The canonical place of an absent
// variance is behind the sum it belongs to; validation has made sure that the
// sums are there.
func appendGroup(dst []byte, group pcommon.Map, absent int) []byte {
	dst = append(dst, '{')
	first := true
	for key, value := range group.All() {
		dst = appendKey(dst, key, first)
		first = false
		dst = appendValue(dst, value)
		if absent == 0 {
			continue
		}
		switch {
		case key == keySumPrefillTokens && absent&sawVarPrefillLength != 0:
			dst = append(dst, `,"`+keyVarPrefillLength+`":0.0`...)
		case key == keySumDecodeKVTokens && absent&sawVarDecodeKVTokens != 0:
			dst = append(dst, `,"`+keyVarDecodeKVTokens+`":0.0`...)
		}
	}
	return append(dst, '}')
}

func appendKey(dst []byte, key string, first bool) []byte {
	if !first {
		dst = append(dst, ',')
	}
	return append(appendString(dst, key), ':')
}

// appendValue appends any value that ValidateBody lets pass.
func appendValue(dst []byte, value pcommon.Value) []byte {
	switch value.Type() {
	case pcommon.ValueTypeStr:
		return appendString(dst, value.Str())
	case pcommon.ValueTypeInt:
		return strconv.AppendInt(dst, value.Int(), 10)
	case pcommon.ValueTypeDouble:
		return appendFloat(dst, value.Double())
	case pcommon.ValueTypeBool:
		return strconv.AppendBool(dst, value.Bool())
	case pcommon.ValueTypeMap:
		dst = append(dst, '{')
		first := true
		for key, element := range value.Map().All() {
			dst = appendKey(dst, key, first)
			first = false
			dst = appendValue(dst, element)
		}
		return append(dst, '}')
	case pcommon.ValueTypeSlice:
		dst = append(dst, '[')
		for i, element := range value.Slice().All() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, element)
		}
		return append(dst, ']')
	default:
		return append(dst, "null"...)
	}
}
