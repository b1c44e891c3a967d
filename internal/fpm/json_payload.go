// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// maxValues bounds the values in one row: as pdata a value takes up to 50 times
// the two bytes that it needs in JSON. It is what a message of receiver fpm can
// hold at its default limit.
const maxValues = 1 << 20

// transcoder turns the JSON text of a record into the msgpack payload that says
// the same: keys in the same order, integers as integers, numbers with a
// fraction or an exponent as float64. A Decoder then judges the payload, so that
// a record from a file passes the same checks as one from an engine.
type transcoder struct {
	scanner
	values int
}

// object appends the object that comes next. depth is its level; the record
// itself is level 1.
func (t *transcoder) object(dst []byte, depth int) ([]byte, *RejectError) {
	if depth > maxDepth {
		return dst, tooDeep("")
	}
	empty, rejected := t.opens('{', '}')
	if rejected != nil {
		return dst, rejected
	}
	header := len(dst)
	dst = append(dst, msgpcode.Map32, 0, 0, 0, 0)
	keys := uint32(0)
	for more := !empty; more; keys++ {
		key, rejected := t.key()
		if rejected != nil {
			return dst, rejected
		}
		start := len(dst)
		dst = appendText(dst, key)
		end := len(dst)
		if dst, rejected = t.value(dst, depth+1); rejected == nil {
			more, rejected = t.goesOn('}')
		}
		if rejected != nil {
			return dst, rejected.under(keyAt(dst[start:end]))
		}
	}
	binary.BigEndian.PutUint32(dst[header+1:], keys)
	return dst, nil
}

// keyAt gives back a key that appendText wrote, for an error.
func keyAt(written []byte) string {
	switch code := written[0]; {
	case msgpcode.IsFixedString(code):
		return fieldName(written[1:])
	case code == msgpcode.Str8:
		return fieldName(written[2:])
	default:
		return fieldName(written[5:])
	}
}

func (t *transcoder) array(dst []byte, depth int) ([]byte, *RejectError) {
	if depth > maxDepth {
		return dst, tooDeep("")
	}
	empty, rejected := t.opens('[', ']')
	if rejected != nil {
		return dst, rejected
	}
	header := len(dst)
	dst = append(dst, msgpcode.Array32, 0, 0, 0, 0)
	elements := uint32(0)
	for more := !empty; more; elements++ {
		if dst, rejected = t.value(dst, depth+1); rejected == nil {
			more, rejected = t.goesOn(']')
		}
		if rejected != nil {
			return dst, rejected
		}
	}
	binary.BigEndian.PutUint32(dst[header+1:], elements)
	return dst, nil
}

// value appends the value that comes next. depth is the level that it has if it
// is an object or an array.
func (t *transcoder) value(dst []byte, depth int) ([]byte, *RejectError) {
	if t.values++; t.values > maxValues {
		return dst, unexpected(fmt.Sprintf("more than %d values", maxValues), fmt.Sprintf("at most %d values in a row", maxValues))
	}
	switch c := t.next(); c {
	case '{':
		return t.object(dst, depth)
	case '[':
		return t.array(dst, depth)
	case '"':
		text, rejected := t.str()
		if rejected != nil {
			return dst, rejected
		}
		return appendText(dst, text), nil
	case 't':
		return append(dst, msgpcode.True), t.literal("true")
	case 'f':
		return append(dst, msgpcode.False), t.literal("false")
	case 'n':
		return append(dst, msgpcode.Nil), t.literal("null")
	default:
		if c == '-' || '0' <= c && c <= '9' {
			return t.numeric(dst)
		}
		return dst, t.unlike(aValue)
	}
}

func (t *transcoder) numeric(dst []byte) ([]byte, *RejectError) {
	text, integer, rejected := t.number()
	if rejected != nil {
		return dst, rejected
	}
	if integer {
		value, ok := parseInt(text)
		if !ok {
			return dst, intOutOfRange(text)
		}
		return appendInt(dst, value), nil
	}
	value, err := strconv.ParseFloat(string(text), 64)
	if err != nil { // the text is a number, so that it can only be too large
		return dst, unexpected(shortNumber(text), "a number that fits a float64")
	}
	return binary.BigEndian.AppendUint64(append(dst, msgpcode.Double), math.Float64bits(value)), nil
}

// parseInt reads the text of a JSON integer, unless it is outside of int64.
func parseInt(text []byte) (value int64, ok bool) {
	if len(text) <= 18 { // cannot overflow
		digits := text
		if text[0] == '-' {
			digits = text[1:]
		}
		for _, c := range digits {
			value = value*10 + int64(c-'0')
		}
		if text[0] == '-' {
			value = -value
		}
		return value, true
	}
	value, err := strconv.ParseInt(string(text), 10, 64)
	return value, err == nil
}

func intOutOfRange(text []byte) *RejectError {
	want := "at most 9223372036854775807"
	if text[0] == '-' {
		want = "at least -9223372036854775808"
	}
	return &RejectError{Reason: ReasonOutOfRange, Got: shortNumber(text), Want: want}
}

// shortNumber cuts the text of a number for an error.
func shortNumber(text []byte) string {
	const most = 40
	if len(text) > most {
		return fmt.Sprintf("%s… (%d characters)", text[:most], len(text))
	}
	return string(text)
}

// appendText appends a msgpack string.
func appendText(dst, text []byte) []byte {
	switch n := len(text); {
	case n < 32:
		dst = append(dst, msgpcode.FixedStrLow|byte(n))
	case n <= math.MaxUint8:
		dst = append(dst, msgpcode.Str8, byte(n))
	default:
		dst = binary.BigEndian.AppendUint32(append(dst, msgpcode.Str32), uint32(n))
	}
	return append(dst, text...)
}

// appendInt appends a msgpack integer.
func appendInt(dst []byte, value int64) []byte {
	switch {
	case value >= 0 && value <= math.MaxInt8:
		return append(dst, byte(value))
	case value >= 0 && value <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, msgpcode.Uint16), uint16(value))
	case value >= 0 && value <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, msgpcode.Uint32), uint32(value))
	default:
		return binary.BigEndian.AppendUint64(append(dst, msgpcode.Int64), uint64(value))
	}
}
