// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observation

import "math"

// Sum adds doubles with a compensation for the bits that a plain addition loses (Neumaier's variant of Kahan's sum), so
// that months of small observations still add up to within a few units in the last place.
type Sum struct{ high, low float64 }

// Add adds v, which is finite.
func (s *Sum) Add(v float64) {
	t := s.high + v
	if math.Abs(s.high) >= math.Abs(v) {
		s.low += (s.high - t) + v
	} else {
		s.low += (v - t) + s.high
	}
	s.high = t
}

// Value returns the sum, never -0.
func (s Sum) Value() float64 { return s.high + s.low }

func (s Sum) overflowsWith(v float64) bool {
	s.Add(v)
	return math.IsInf(s.high, 0) || math.IsInf(s.Value(), 0)
}
