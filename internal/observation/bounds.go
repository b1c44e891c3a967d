// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observation

import (
	"encoding/binary"
	"math"
	"unique"
)

// Bounds is a list of bucket bounds, kept once however many series have it. The zero Bounds is the empty list.
type Bounds struct{ list unique.Handle[string] }

var noBounds = unique.Make("")

// MakeBounds keeps the list; the argument stays the caller's.
func MakeBounds(list []float64) Bounds {
	if len(list) == 0 {
		return Bounds{}
	}
	text := make([]byte, 0, 8*len(list))
	for _, b := range list {
		text = binary.LittleEndian.AppendUint64(text, math.Float64bits(b))
	}
	return Bounds{list: unique.Make(string(text))}
}

func (b Bounds) text() string {
	if b == (Bounds{}) {
		return noBounds.Value()
	}
	return b.list.Value()
}

func boundAt(text string, i int) float64 {
	var bits uint64
	for j := range 8 {
		bits |= uint64(text[8*i+j]) << (8 * j)
	}
	return math.Float64frombits(bits)
}

// Equal tells whether the bounds are numerically those of the list.
func (b Bounds) Equal(list []float64) bool {
	text := b.text()
	if len(text) != 8*len(list) {
		return false
	}
	for i, v := range list {
		if boundAt(text, i) != v {
			return false
		}
	}
	return true
}

// AppendTo appends the bounds to the list.
func (b Bounds) AppendTo(list []float64) []float64 {
	text := b.text()
	for i := range len(text) / 8 {
		list = append(list, boundAt(text, i))
	}
	return list
}

func checkBounds(list []float64) *Rejection {
	for i, b := range list {
		if math.IsNaN(b) || i > 0 && b <= list[i-1] {
			return reject(BadBounds, "explicit_bounds", list, "numbers that strictly increase")
		}
	}
	return nil
}
