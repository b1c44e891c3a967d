// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package load

import "time"

// Step is what a rank does next: a forward pass, or nothing for a while.
type Step struct {
	// Idle is greater than 0 when there is no work; Pass is then zero.
	Idle time.Duration
	Pass Pass
}

// Pass is one forward pass in the terms of the FPM record.
type Pass struct {
	// WallTime is the duration in seconds.
	WallTime  float64
	Scheduled Requests
	Queued    Requests
}

// Requests describes scheduled or queued work. The wire has no
// SumPrefillKVTokens of queued work; it is 0 there.
type Requests struct {
	NumPrefillRequests int
	SumPrefillTokens   int
	VarPrefillLength   float64
	SumPrefillKVTokens int
	NumDecodeRequests  int
	SumDecodeKVTokens  int
	VarDecodeKVTokens  float64
}

// Costs of a pass in seconds. They are chosen to give 5 to 60 ms with the
// profiles there are (TestWallTimeStaysBelievable).
const (
	costPass            = 0.0055
	costPrefillToken    = 16e-6
	costPrefillKVToken  = 0.3e-6
	costDecodeRequest   = 25e-6
	costDecodeKVToken   = 0.05e-6
	wallTimeNoise       = 0.03 // relative, both ways
	wallTimeGranularity = 1e7  // the engine's timer: 100 ns
)

// cost is the duration of a pass without noise, in seconds.
func cost(scheduled Requests) float64 {
	return costPass +
		costPrefillToken*float64(scheduled.SumPrefillTokens) +
		costPrefillKVToken*float64(scheduled.SumPrefillKVTokens) +
		costDecodeRequest*float64(scheduled.NumDecodeRequests) +
		costDecodeKVToken*float64(scheduled.SumDecodeKVTokens)
}

// variance adds up a population variance (Welford's method).
type variance struct {
	n        int
	mean, m2 float64
}

func (v *variance) add(x int) {
	v.n++
	d := float64(x) - v.mean
	v.mean += d / float64(v.n)
	v.m2 += d * (float64(x) - v.mean)
}

func (v *variance) value() float64 {
	if v.n == 0 {
		return 0
	}
	return v.m2 / float64(v.n)
}
