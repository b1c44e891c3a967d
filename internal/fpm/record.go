// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import "bytes"

// Record is one forward pass of one data-parallel rank, or a heartbeat, in the
// terms of Dynamo's ForwardPassMetrics version 1.
//
// Invariants of a Record that Decode returned (TestRecordInvariants): every
// count is in 0…2⁶³−1, every duration and variance is finite and not
// negative, and Payload walks without an error.
type Record struct {
	// WorkerID is the engine's own name for itself; Dynamo leaves it empty by
	// default.
	WorkerID string
	// DPRank is the data-parallel rank that ran the pass.
	DPRank int64
	// CounterID is the publisher's sequence number: it counts the messages of
	// one rank since its publisher started, and means nothing across ranks.
	CounterID int64
	// TimingScope says what WallTime measures (native vLLM only).
	TimingScope string
	// HasTimingScope tells an absent timing_scope from an empty one.
	HasTimingScope bool
	// WallTime is the duration of the pass in seconds; 0 in heartbeats and in
	// passes that were not timed.
	WallTime float64
	// Scheduled is the work of this pass.
	Scheduled Requests
	// Queued is the work that waits. Its SumPrefillKVTokens is always 0: the
	// wire has no such field.
	Queued Requests
	// Unversioned marks a payload of the first releases, which has no version.
	// When it has no counter_id either, CounterID came from the sequence frame.
	Unversioned         bool
	counterFromSequence bool
	// canonical says that the payload is just the fields above in the order in
	// which Dynamo's struct has them, timing_scope present or not, with no other
	// key, and each measure a float: the body can be written from the fields.
	canonical bool
	// Payload is the msgpack map the record was decoded from. Decode keeps the
	// caller's slice, it does not copy; see Detach.
	Payload []byte
}

// Detach lets the record do without the slice that Decode was given: Payload
// becomes a copy where the body is made from it, and nil else. What AppendLog
// writes is the same as before.
func (r *Record) Detach() {
	if r.canonical {
		r.Payload = nil
		return
	}
	r.Payload = bytes.Clone(r.Payload)
}

// Requests is one of the two groups of a record. Absent variances read 0.
type Requests struct {
	NumPrefillRequests int64
	// SumPrefillTokens counts tokens computed in this pass for scheduled work,
	// whole prompts for queued work: the two must not be added.
	SumPrefillTokens int64
	// VarPrefillLength is the population variance of full prompt lengths, in
	// tokens squared.
	VarPrefillLength   float64
	SumPrefillKVTokens int64
	NumDecodeRequests  int64
	SumDecodeKVTokens  int64
	VarDecodeKVTokens  float64
}

// Idle reports that the group describes no work at all.
func (g Requests) Idle() bool { return g == Requests{} }

// Heartbeat reports a message that only says "alive": no duration and no work.
// Engines send it by clock, so that it may come in the middle of a long pass.
func (r *Record) Heartbeat() bool {
	return r.WallTime == 0 && r.Scheduled.Idle() && r.Queued.Idle()
}

// The wire's names of groups and fields, as msgpack and JSON keys.
const (
	keyVersion     = "version"
	keyWorkerID    = "worker_id"
	keyDPRank      = "dp_rank"
	keyCounterID   = "counter_id"
	keyTimingScope = "timing_scope"
	keyWallTime    = "wall_time"
	keyScheduled   = "scheduled_requests"
	keyQueued      = "queued_requests"

	keyNumPrefillRequests = "num_prefill_requests"
	keySumPrefillTokens   = "sum_prefill_tokens"
	keyVarPrefillLength   = "var_prefill_length"
	keySumPrefillKVTokens = "sum_prefill_kv_tokens"
	keyNumDecodeRequests  = "num_decode_requests"
	keySumDecodeKVTokens  = "sum_decode_kv_tokens"
	keyVarDecodeKVTokens  = "var_decode_kv_tokens"
)

// Version is the payload version this package reads and writes.
const Version = 1
