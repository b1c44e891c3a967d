// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-fpm/otelcol-fpm/internal/msgpack"
)

// Checked is what ValidateBody found in a log body. Its zero value belongs to
// no body.
type Checked struct {
	WorkerID  string
	DPRank    int64
	CounterID int64

	// absent are the variances that the row has to add, by group.
	absentScheduled, absentQueued int
}

// ValidateBody checks a log body as Dynamo's trace sink checks a payload
// before it writes a row, in the same order. It differs in three points: an
// absent var_* is allowed and noted, integers end at 2⁶³−1, and what JSON text
// cannot hold (bytes, text that is not UTF-8, more than 32 levels) is refused
// under unknown keys too. Errors are of type *RejectError.
func ValidateBody(body pcommon.Value) (Checked, error) {
	var checked Checked
	if body.Type() != pcommon.ValueTypeMap {
		return Checked{}, malformed("body", describe(body), msgpack.Map.String())
	}
	if rejected := checked.root(body.Map()); rejected != nil {
		return Checked{}, rejected
	}
	return checked, nil
}

func (c *Checked) root(body pcommon.Map) *RejectError {
	var (
		seen                                                         int
		version, workerID, dpRank, counterID, wallTime, sched, queue pcommon.Value
	)
	for key, value := range body.All() {
		bit := 0
		switch key {
		case keyVersion:
			bit, version = sawVersion, value
		case keyWorkerID:
			bit, workerID = sawWorkerID, value
		case keyDPRank:
			bit, dpRank = sawDPRank, value
		case keyCounterID:
			bit, counterID = sawCounterID, value
		case keyWallTime:
			bit, wallTime = sawWallTime, value
		case keyScheduled:
			bit, sched = sawScheduled, value
		case keyQueued:
			bit, queue = sawQueued, value
		default:
			if rejected := checkUnknown(key, value, 1); rejected != nil {
				return rejected
			}
		}
		if seen&bit != 0 {
			return twice(key)
		}
		seen |= bit
	}
	if seen != allRoot&^sawTimingScope {
		return missingRoot(seen)
	}

	if value, rejected := checkInt(keyVersion, version); rejected != nil {
		return rejected
	} else if value != Version {
		return &RejectError{
			Reason: ReasonUnsupportedVersion, Field: keyVersion,
			Got: strconv.FormatInt(value, 10), Want: "1",
		}
	}
	if rejected := checkMeasure(keyWallTime, wallTime); rejected != nil {
		return rejected
	}
	var rejected *RejectError
	if c.absentScheduled, rejected = checkGroup(keyScheduled, sched); rejected != nil {
		return rejected
	}
	if c.absentQueued, rejected = checkGroup(keyQueued, queue); rejected != nil {
		return rejected
	}
	if workerID.Type() != pcommon.ValueTypeStr {
		return malformed(keyWorkerID, describe(workerID), msgpack.String.String())
	}
	c.WorkerID = workerID.Str()
	if rejected = checkText(keyWorkerID, c.WorkerID); rejected != nil {
		return rejected
	}
	if c.DPRank, rejected = checkCount(keyDPRank, dpRank); rejected != nil {
		return rejected
	}
	c.CounterID, rejected = checkCount(keyCounterID, counterID)
	return rejected
}

// missingRoot names the first root key that is not there.
func missingRoot(seen int) *RejectError {
	for _, field := range [...]struct {
		bit  int
		name string
	}{
		{sawVersion, keyVersion},
		{sawWallTime, keyWallTime},
		{sawScheduled, keyScheduled},
		{sawQueued, keyQueued},
		{sawWorkerID, keyWorkerID},
		{sawDPRank, keyDPRank},
	} {
		if seen&field.bit == 0 {
			return missing(field.name)
		}
	}
	return missing(keyCounterID)
}

const groupVariances = sawVarPrefillLength | sawVarDecodeKVTokens

// checkGroup checks one of the two groups and returns the bits of the
// variances that it lacks.
func checkGroup(name string, value pcommon.Value) (absent int, rejected *RejectError) {
	if value.Type() != pcommon.ValueTypeMap {
		return 0, malformed(name, describe(value), msgpack.Map.String())
	}
	seen := 0
	for key, value := range value.Map().All() {
		bit := 0
		switch key {
		case keyNumPrefillRequests:
			bit = sawNumPrefillRequests
		case keySumPrefillTokens:
			bit = sawSumPrefillTokens
		case keyVarPrefillLength:
			bit = sawVarPrefillLength
		case keyNumDecodeRequests:
			bit = sawNumDecodeRequests
		case keySumDecodeKVTokens:
			bit = sawSumDecodeKVTokens
		case keyVarDecodeKVTokens:
			bit = sawVarDecodeKVTokens
		case keySumPrefillKVTokens:
			if name == keyScheduled {
				bit = sawSumPrefillKVTokens
			}
		}
		switch {
		case bit == 0:
			rejected = checkUnknown(key, value, 2)
		case seen&bit != 0:
			rejected = twice(key)
		case bit&groupVariances != 0:
			rejected = checkMeasure(key, value)
		default:
			_, rejected = checkCount(key, value)
		}
		if rejected != nil {
			rejected.Field = name + "." + rejected.Field
			return 0, rejected
		}
		seen |= bit
	}
	if rejected = missingCount(name, seen); rejected != nil {
		rejected.Field = name + "." + rejected.Field
		return 0, rejected
	}
	return groupVariances &^ seen, nil
}

// ValidateRecord checks the numbers of a record that did not come from Decode,
// by the rules of ValidateBody. Errors are of type *RejectError.
func ValidateRecord(record *Record) error {
	for i := range Metrics[:Gauges] {
		metric := &Metrics[i]
		var rejected *RejectError
		if count := metric.Count(record); count != nil {
			rejected = checkNotNegative(metric.Field, *count)
		} else {
			rejected = checkFinite(metric.Field, *metric.Value(record))
		}
		if rejected != nil {
			return rejected
		}
	}
	for _, rejected := range [...]*RejectError{
		checkFinite(keyWallTime, record.WallTime),
		checkText(keyWorkerID, record.WorkerID),
		checkText(keyTimingScope, record.TimingScope),
		checkNotNegative(keyDPRank, record.DPRank),
		checkNotNegative(keyCounterID, record.CounterID),
	} {
		if rejected != nil {
			return rejected
		}
	}
	return nil
}
