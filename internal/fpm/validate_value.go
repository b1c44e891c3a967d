// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-fpm/otelcol-fpm/internal/msgpack"
)

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
		return 0, malformed(field, describe(value), msgpack.Int.String())
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
		return msgpack.Bin.String()
	case pcommon.ValueTypeSlice:
		return msgpack.Array.String()
	case pcommon.ValueTypeMap:
		return msgpack.Map.String()
	default:
		return msgpack.Nil.String()
	}
}

func checkNotNegative(field string, value int64) *RejectError {
	if value < 0 {
		return malformed(field, strconv.FormatInt(value, 10), "0 or more")
	}
	return nil
}
