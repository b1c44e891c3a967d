// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"fmt"
	"strconv"

	"github.com/otelcol-fpm/otelcol-fpm/internal/msgpack"
)

// Decoder turns payloads into records. It reuses its buffers and remembers the
// last worker_id, so it belongs to one goroutine; make one for each endpoint.
// The zero Decoder is ready for use and must not be copied after that.
type Decoder struct {
	// AcceptUnversioned takes payloads without version and counter_id, as the
	// first Dynamo and SGLang releases send them, for version 1.
	AcceptUnversioned bool

	walk     walker
	workerID string
	scope    string
	// canonical is what Record.canonical will be, as far as the payload was read.
	canonical bool
}

// NewDecoder makes a decoder; see Decoder.AcceptUnversioned.
func NewDecoder(acceptUnversioned bool) *Decoder {
	return &Decoder{AcceptUnversioned: acceptUnversioned}
}

// Bits of the root keys and of the group fields that were seen, in canonical
// order: a key's bit is larger than those of all keys before it.
const (
	sawVersion = 1 << iota
	sawWorkerID
	sawDPRank
	sawCounterID
	sawTimingScope
	sawWallTime
	sawScheduled
	sawQueued

	allRoot = 1<<iota - 1
)

const (
	sawNumPrefillRequests = 1 << iota
	sawSumPrefillTokens
	sawVarPrefillLength
	sawSumPrefillKVTokens
	sawNumDecodeRequests
	sawSumDecodeKVTokens
	sawVarDecodeKVTokens
)

// Decode checks a payload and reads the known fields. sequence is the number
// of the sequence frame; it becomes the counter of an unversioned payload.
// The record keeps payload: the caller must not change it before Record.Detach.
// Errors are of type *RejectError.
func (d *Decoder) Decode(payload []byte, sequence int64) (Record, error) {
	record := Record{Payload: payload}
	d.walk.Reset(payload)
	defer d.walk.Reset(nil) // the payload is the caller's, and may be large
	d.canonical = true
	seen, rejected := d.root(&record)
	if rejected == nil && d.walk.Left() > 0 {
		rejected = malformed("payload", fmt.Sprintf("%d bytes after the map", d.walk.Left()), "one msgpack map")
	}
	if rejected == nil {
		rejected = d.complete(&record, seen, sequence)
	}
	if rejected != nil {
		if rejected.Field == "" {
			rejected.Field = "payload"
		}
		return Record{}, rejected
	}
	record.canonical = d.canonical && seen|sawTimingScope == allRoot
	return record, nil
}

func (d *Decoder) root(record *Record) (seen int, rejected *RejectError) {
	w := &d.walk
	n, rejected := w.mapLen()
	for ; n > 0 && rejected == nil; n-- {
		var key []byte
		if key, rejected = w.key(); rejected != nil {
			break
		}
		bit := 0
		switch string(key) {
		case keyVersion:
			bit = sawVersion
			rejected = d.version()
		case keyWorkerID:
			bit = sawWorkerID
			record.WorkerID, rejected = d.remember(&d.workerID)
		case keyDPRank:
			bit = sawDPRank
			record.DPRank, rejected = w.count()
		case keyCounterID:
			bit = sawCounterID
			record.CounterID, rejected = w.count()
		case keyTimingScope:
			bit = sawTimingScope
			record.HasTimingScope = true
			record.TimingScope, rejected = d.remember(&d.scope)
		case keyWallTime:
			bit = sawWallTime
			record.WallTime, rejected = d.measure()
		case keyScheduled:
			bit = sawScheduled
			rejected = d.group(&record.Scheduled, keyScheduled)
		case keyQueued:
			bit = sawQueued
			rejected = d.group(&record.Queued, keyQueued)
		default:
			rejected = w.skip(2)
		}
		if rejected == nil && seen&bit != 0 {
			rejected = unexpected("the key twice", "each known key once")
		}
		if rejected != nil {
			rejected.under(fieldName(key))
		}
		d.canonical = d.canonical && bit > seen
		seen |= bit
	}
	return seen, rejected
}

// measure reads a duration or a variance. Publishers may send a whole one as an
// integer, and its body keeps that.
func (d *Decoder) measure() (float64, *RejectError) {
	if d.walk.Peek() != msgpack.Float {
		d.canonical = false
	}
	return d.walk.measure()
}

// version reads the version and refuses any other than 1 at once: a later
// version may have changed everything that follows.
func (d *Decoder) version() *RejectError {
	value, rejected := d.walk.integer()
	if rejected == nil && value != Version {
		rejected = &RejectError{
			Reason: ReasonUnsupportedVersion,
			Got:    strconv.FormatInt(value, 10),
			Want:   "1",
		}
	}
	return rejected
}

// remember reads a string that is nearly always the same as in the message
// before, and then costs no allocation.
func (d *Decoder) remember(last *string) (string, *RejectError) {
	text, rejected := d.walk.text()
	if rejected != nil {
		return "", rejected
	}
	if len(text) > maxIdentityBytes {
		return "", unexpected(fmt.Sprintf("%d bytes", len(text)), fmt.Sprintf("at most %d bytes", maxIdentityBytes))
	}
	if string(text) != *last {
		*last = string(text)
	}
	return *last, nil
}

func (d *Decoder) group(group *Requests, name string) *RejectError {
	w := &d.walk
	seen := 0
	n, rejected := w.mapLen()
	for ; n > 0 && rejected == nil; n-- {
		var key []byte
		if key, rejected = w.key(); rejected != nil {
			return rejected
		}
		bit := 0
		switch string(key) {
		case keyNumPrefillRequests:
			bit = sawNumPrefillRequests
			group.NumPrefillRequests, rejected = w.count()
		case keySumPrefillTokens:
			bit = sawSumPrefillTokens
			group.SumPrefillTokens, rejected = w.count()
		case keyVarPrefillLength:
			bit = sawVarPrefillLength
			group.VarPrefillLength, rejected = d.measure()
		case keyNumDecodeRequests:
			bit = sawNumDecodeRequests
			group.NumDecodeRequests, rejected = w.count()
		case keySumDecodeKVTokens:
			bit = sawSumDecodeKVTokens
			group.SumDecodeKVTokens, rejected = w.count()
		case keyVarDecodeKVTokens:
			bit = sawVarDecodeKVTokens
			group.VarDecodeKVTokens, rejected = d.measure()
		case keySumPrefillKVTokens:
			if name == keyScheduled {
				bit = sawSumPrefillKVTokens
				group.SumPrefillKVTokens, rejected = w.count()
				break
			}
			fallthrough // not a field of the queued group: unknown, kept
		default:
			rejected = w.skip(3)
		}
		if rejected == nil && seen&bit != 0 {
			rejected = unexpected("the key twice", "each known key once")
		}
		if rejected != nil {
			rejected.under(fieldName(key))
		}
		d.canonical = d.canonical && bit > seen
		seen |= bit
	}
	if rejected == nil {
		rejected = missingCount(name, seen)
	}
	d.canonical = d.canonical && seen&groupVariances == groupVariances
	return rejected
}

// missingCount names the first count that a group lacks. Variances may be
// absent: the public example row has none.
func missingCount(group string, seen int) *RejectError {
	for _, field := range [...]struct {
		bit  int
		name string
	}{
		{sawNumPrefillRequests, keyNumPrefillRequests},
		{sawSumPrefillTokens, keySumPrefillTokens},
		{sawSumPrefillKVTokens, keySumPrefillKVTokens},
		{sawNumDecodeRequests, keyNumDecodeRequests},
		{sawSumDecodeKVTokens, keySumDecodeKVTokens},
	} {
		if seen&field.bit == 0 && (field.bit != sawSumPrefillKVTokens || group == keyScheduled) {
			return missing(field.name)
		}
	}
	return nil
}

func missing(field string) *RejectError { return malformed(field, "nothing", "the key to be there") }

// complete decides on the root keys that are not there.
func (d *Decoder) complete(record *Record, seen int, sequence int64) *RejectError {
	for _, field := range [...]struct {
		bit  int
		name string
	}{
		{sawScheduled, keyScheduled},
		{sawQueued, keyQueued},
		{sawWorkerID, keyWorkerID},
		{sawDPRank, keyDPRank},
		{sawWallTime, keyWallTime},
	} {
		if seen&field.bit == 0 {
			return missing(field.name)
		}
	}
	if seen&sawVersion == 0 {
		if !d.AcceptUnversioned {
			return &RejectError{
				Reason: ReasonUnsupportedVersion, Field: keyVersion,
				Got: "nothing", Want: "1 (accept_unversioned takes payloads of the first releases)",
			}
		}
		record.Unversioned = true
		if seen&sawCounterID == 0 {
			record.CounterID = sequence
			record.counterFromSequence = true
		}
		return nil
	}
	if seen&sawCounterID == 0 {
		return missing(keyCounterID)
	}
	return nil
}
