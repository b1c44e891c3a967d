// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"math"
	"strconv"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// integer reads an int of any width that fits pdata.
func (w *walker) integer() (int64, *RejectError) {
	if rejected := w.expect(kindInt); rejected != nil {
		return 0, rejected
	}
	code := w.code()
	switch {
	case msgpcode.IsFixedNum(code):
		return int64(int8(code)), nil
	case code <= msgpcode.Uint64:
		value, rejected := w.unsigned(1 << (code - msgpcode.Uint8))
		if rejected == nil && value > math.MaxInt64 {
			rejected = outOfRange("", value)
		}
		return int64(value), rejected
	default:
		size := 1 << (code - msgpcode.Int8)
		value, rejected := w.unsigned(size)
		unused := 64 - 8*size
		return int64(value<<unused) >> unused, rejected
	}
}

// count reads an int that may not be negative.
func (w *walker) count() (int64, *RejectError) {
	value, rejected := w.integer()
	if rejected == nil && value < 0 {
		rejected = unexpected(strconv.FormatInt(value, 10), "0 or more")
	}
	return value, rejected
}

// float reads a float of either width. The caller has seen that one comes.
func (w *walker) float() (float64, *RejectError) {
	if w.code() == msgpcode.Float {
		bits, rejected := w.unsigned(4)
		return float64(math.Float32frombits(uint32(bits))), rejected
	}
	bits, rejected := w.unsigned(8)
	return math.Float64frombits(bits), rejected
}

// boolean reads a boolean. The caller has seen that one comes.
func (w *walker) boolean() bool { return w.code() == msgpcode.True }

// measure reads a finite number that may not be negative: publishers put ints
// into fields that are declared float.
func (w *walker) measure() (float64, *RejectError) {
	got, rejected := w.peek()
	if rejected != nil {
		return 0, rejected
	}
	var value float64
	switch got {
	case kindInt:
		var whole int64
		whole, rejected = w.integer()
		value = float64(whole)
	case kindFloat:
		value, rejected = w.float()
	default:
		return 0, unexpected(w.describe(got), "a number")
	}
	if rejected != nil {
		return 0, rejected
	}
	if math.IsNaN(value) || math.IsInf(value, 0) || value < 0 {
		return 0, unexpected(formatShort(value), "a finite number, 0 or more")
	}
	return value, nil
}

func formatShort(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }
