// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observation

import "math"

type numberKind uint8

const (
	noNumber numberKind = iota
	intNumber
	doubleNumber
)

// Number is a gauge value in a canonical form: two Numbers are == exactly when their values are numerically equal.
//
// Invariant CanonicalNumber: a double that is a whole number in the range of int64 is kept as that int (so 3 = 3.0,
// and int64 values above 2^53 are compared without rounding; -0.0 becomes 0), and all NaN are one value.
//
// The zero Number is no value; it differs from all others.
type Number struct {
	bits uint64
	kind numberKind
}

// Int returns the Number of an integer.
func Int(v int64) Number { return Number{bits: uint64(v), kind: intNumber} }

// Double returns the Number of a double.
func Double(v float64) Number {
	switch {
	case v != v:
		return Number{bits: math.Float64bits(math.NaN()), kind: doubleNumber}
	case v >= -(1<<63) && v < 1<<63 && v == math.Trunc(v):
		return Int(int64(v))
	default:
		return Number{bits: math.Float64bits(v), kind: doubleNumber}
	}
}
