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
	code, err := w.decoder.PeekCode()
	if err != nil {
		return 0, w.broken(err)
	}
	if got := kindOf(code); got != kindInt {
		return 0, unexpected(w.describe(got), kindInt.String())
	}
	if code == msgpcode.Uint64 {
		value, err := w.decoder.DecodeUint64()
		if err != nil {
			return 0, w.broken(err)
		}
		if value > math.MaxInt64 {
			return 0, outOfRange("", value)
		}
		return int64(value), nil
	}
	value, err := w.decoder.DecodeInt64()
	if err != nil {
		return 0, w.broken(err)
	}
	return value, nil
}

// count reads an int that may not be negative.
func (w *walker) count() (int64, *RejectError) {
	value, rejected := w.integer()
	if rejected == nil && value < 0 {
		rejected = unexpected(strconv.FormatInt(value, 10), "0 or more")
	}
	return value, rejected
}

// float reads a float of either width. The caller has seen that one comes: an
// int would be converted.
func (w *walker) float() (float64, *RejectError) {
	value, err := w.decoder.DecodeFloat64()
	if err != nil {
		return 0, w.broken(err)
	}
	return value, nil
}

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
