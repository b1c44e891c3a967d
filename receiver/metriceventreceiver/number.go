// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"math"
	"strconv"
)

// number is an int or a float as it came on the wire: an int stays an int.
type number struct {
	bits  uint64
	float bool
}

func intNumber(value int64) number { return number{bits: uint64(value)} }

func floatNumber(value float64) number { return number{bits: math.Float64bits(value), float: true} }

// int64 is the value of an int.
func (n number) int64() int64 { return int64(n.bits) }

// float64 is the value of a float, or of an int to the nearest float.
func (n number) float64() float64 {
	if n.float {
		return math.Float64frombits(n.bits)
	}
	return float64(int64(n.bits))
}

// String is the number as text.
func (n number) String() string {
	if n.float {
		return strconv.FormatFloat(n.float64(), 'g', -1, 64)
	}
	return strconv.FormatInt(n.int64(), 10)
}

func finite(value float64) bool { return !math.IsNaN(value) && !math.IsInf(value, 0) }
