// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Totals are what forward passes of one rank add up to, passes that follow each
// other in the same series: the token sums and the durations. Make them with
// NewTotals. They belong to one goroutine.
//
// Invariant (TestTotalsAddUp): points made of several passes at once say the
// same as the points of each pass, added up.
type Totals struct {
	form                        *HistogramForm
	step, tokenLatency          durations
	prefillTokens, decodeTokens int64
	// last is the time of the last pass, 0 when there is none.
	last pcommon.Timestamp
}

// NewTotals makes Totals of nothing yet.
func NewTotals(form *HistogramForm) *Totals { return &Totals{form: form} }

// Empty reports that there is nothing to write.
func (t *Totals) Empty() bool { return t.last == 0 }

// Add adds a forward pass. It is false, and nothing is added, when what is there
// has to be written first: a sum would leave its range, or an exponential
// histogram its size. A single pass always fits. overflowed is the number of
// observations left out because value × weight is no finite number.
func (t *Totals) Add(pass Pass) (fits bool, overflowed int) {
	scheduled := &pass.Record.Scheduled
	prefill, decode := scheduled.SumPrefillTokens, scheduled.NumDecodeRequests
	if prefill > math.MaxInt64-t.prefillTokens || decode > math.MaxInt64-t.decodeTokens {
		return false, 0
	}
	if duration := pass.Record.WallTime; duration > 0 {
		step := t.form.oneDuration(duration, pass.Time)
		tokens := step.times(uint64(decode))
		if math.IsInf(tokens.sum, 0) {
			tokens.weight, tokens.sum, overflowed = 0, 0, 1
		}
		if !t.step.fits(&step, t.form.size) || !t.tokenLatency.fits(&tokens, t.form.size) {
			return false, 0
		}
		t.step.add(&step)
		t.tokenLatency.add(&tokens)
	}
	t.prefillTokens += prefill
	t.decodeTokens += decode
	t.last = pass.Time
	return true, overflowed
}

// CopyTo makes dst, of the same form, the same as t. They share nothing.
func (t *Totals) CopyTo(dst *Totals) {
	t.step.copyTo(&dst.step)
	t.tokenLatency.copyTo(&dst.tokenLatency)
	dst.form, dst.prefillTokens, dst.decodeTokens, dst.last = t.form, t.prefillTokens, t.decodeTokens, t.last
}

// Clear makes them Totals of nothing.
func (t *Totals) Clear() {
	t.step.clear()
	t.tokenLatency.clear()
	t.prefillTokens, t.decodeTokens, t.last = 0, 0, 0
}
