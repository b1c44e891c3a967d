// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"math"
	"strconv"

	"github.com/otelcol-fpm/otelcol-fpm/internal/msgpack"
)

// integer reads an int of any width that fits pdata.
func (w *walker) integer() (int64, *RejectError) {
	if rejected := w.expect(msgpack.Int); rejected != nil {
		return 0, rejected
	}
	value, err := w.Int()
	if err != nil {
		return 0, w.failed(err)
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

// measure reads a finite number that may not be negative: publishers put ints
// into fields that are declared float.
func (w *walker) measure() (float64, *RejectError) {
	got, rejected := w.peek()
	if rejected != nil {
		return 0, rejected
	}
	var value float64
	switch got {
	case msgpack.Int:
		var whole int64
		whole, rejected = w.integer()
		value = float64(whole)
	case msgpack.Float:
		var err error
		if value, err = w.Float(); err != nil {
			return 0, w.failed(err)
		}
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
