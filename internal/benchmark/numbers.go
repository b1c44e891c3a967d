// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"math"
	"slices"
	"strconv"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"
)

// Tolerances of the merger, relative and absolute.
const (
	relTolerance = 1e-9
	absTolerance = 1e-12
)

// isClose compares two durations as Python's math.isclose does.
func isClose(a, b, rel, abs float64) bool {
	return math.Abs(a-b) <= max(rel*max(math.Abs(a), math.Abs(b)), abs)
}

// upperMedian is the middle value, of an even number the upper one. values must
// not be empty; they are sorted.
func upperMedian(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

func formatSeconds(seconds float64) string { return strconv.FormatFloat(seconds, 'g', -1, 64) }

func isText(value document.Value) bool {
	text, _ := value.Text()
	return text != ""
}

// atLeast reports whether value is an integer of least or more.
func atLeast(value document.Value, least int64) bool {
	number, ok := value.Int()
	return ok && number >= least
}

// isInt reports whether value is this very integer.
func isInt(value document.Value, want int64) bool {
	number, ok := value.Int()
	return ok && number == want
}

func oneOf(value document.Value, allowed ...string) bool {
	text, ok := value.Text()
	return ok && slices.Contains(allowed, text)
}

// isRange reports whether value is the list 0 … size−1.
func isRange(value document.Value, size int) bool {
	count := 0
	for i, item := range value.Items() {
		if !isInt(item, int64(i)) {
			return false
		}
		count++
	}
	return value.Kind() == document.Array && count == size
}
