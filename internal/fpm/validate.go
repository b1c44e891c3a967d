// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
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
		return Checked{}, malformed("body", describe(body), kindMap.String())
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
	const all = sawVersion | sawWorkerID | sawDPRank | sawCounterID | sawWallTime | sawScheduled | sawQueued
	if seen != all {
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
		return malformed(keyWorkerID, describe(workerID), kindString.String())
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
		return 0, malformed(name, describe(value), kindMap.String())
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

// checkUnknown checks a key that is none of version 1, and everything below
// it. depth is the level of the map that holds the key, the root map being 1.
func checkUnknown(key string, value pcommon.Value, depth int) *RejectError {
	if !utf8.ValidString(key) {
		return malformed(fieldName([]byte(key)), "a key that is not UTF-8", "UTF-8 text")
	}
	if rejected := checkValue(value, depth+1); rejected != nil {
		rejected.Field = fieldName([]byte(key))
		return rejected
	}
	return nil
}

// checkValue leaves the field to its caller.
func checkValue(value pcommon.Value, depth int) *RejectError {
	switch value.Type() {
	case pcommon.ValueTypeStr:
		return checkText("", value.Str())
	case pcommon.ValueTypeBytes:
		return malformed("", describe(value), "nil, a boolean, a number, a string, an array or a map")
	case pcommon.ValueTypeSlice:
		if depth > maxDepth {
			return tooDeep("")
		}
		for _, element := range value.Slice().All() {
			if rejected := checkValue(element, depth+1); rejected != nil {
				return rejected
			}
		}
	case pcommon.ValueTypeMap:
		if depth > maxDepth {
			return tooDeep("")
		}
		for key, element := range value.Map().All() {
			if rejected := checkText("", key); rejected != nil {
				return rejected
			}
			if rejected := checkValue(element, depth+1); rejected != nil {
				return rejected
			}
		}
	}
	return nil
}

func checkText(field, text string) *RejectError {
	if !utf8.ValidString(text) {
		return malformed(field, quoteShort([]byte(text)), "UTF-8 text")
	}
	return nil
}

func checkInt(field string, value pcommon.Value) (int64, *RejectError) {
	if value.Type() != pcommon.ValueTypeInt {
		return 0, malformed(field, describe(value), kindInt.String())
	}
	return value.Int(), nil
}

func checkCount(field string, value pcommon.Value) (int64, *RejectError) {
	number, rejected := checkInt(field, value)
	if rejected == nil && number < 0 {
		rejected = malformed(field, strconv.FormatInt(number, 10), "0 or more")
	}
	return number, rejected
}

func checkMeasure(field string, value pcommon.Value) *RejectError {
	switch value.Type() {
	case pcommon.ValueTypeInt:
		_, rejected := checkCount(field, value)
		return rejected
	case pcommon.ValueTypeDouble:
		return checkFinite(field, value.Double())
	default:
		return malformed(field, describe(value), "a number")
	}
}

func checkFinite(field string, value float64) *RejectError {
	if math.IsNaN(value) || math.IsInf(value, 0) || value < 0 {
		return malformed(field, formatShort(value), "a finite number, 0 or more")
	}
	return nil
}

func twice(key string) *RejectError { return malformed(key, "the key twice", "each known key once") }

// describe says what a value is, for an error.
func describe(value pcommon.Value) string {
	switch value.Type() {
	case pcommon.ValueTypeStr:
		return "the string " + quoteShort([]byte(value.Str()))
	case pcommon.ValueTypeBool:
		return fmt.Sprintf("the boolean %t", value.Bool())
	case pcommon.ValueTypeDouble:
		return "a float (" + formatShort(value.Double()) + ")"
	case pcommon.ValueTypeInt:
		return "the integer " + strconv.FormatInt(value.Int(), 10)
	case pcommon.ValueTypeBytes:
		return kindBin.String()
	case pcommon.ValueTypeSlice:
		return kindArray.String()
	case pcommon.ValueTypeMap:
		return kindMap.String()
	default:
		return kindNil.String()
	}
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

func checkNotNegative(field string, value int64) *RejectError {
	if value < 0 {
		return malformed(field, strconv.FormatInt(value, 10), "0 or more")
	}
	return nil
}
