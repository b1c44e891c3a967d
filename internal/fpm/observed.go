// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Observed is what forward passes of one rank add up to, passes that follow each
// other in the same series: the token sums and the durations. Its zero value is
// not of use. It belongs to one goroutine.
//
// Invariant (TestObservedAddsUp): points made of several passes at once say the
// same as the points of each pass, added up.
type Observed struct {
	form                        *HistogramForm
	step, tokenLatency          durations
	prefillTokens, decodeTokens int64
	// last is the time of the last pass, 0 when there is none.
	last pcommon.Timestamp
}

// NewObserved makes an Observed of nothing yet.
func NewObserved(form *HistogramForm) *Observed { return &Observed{form: form} }

// Empty reports that there is nothing to write.
func (o *Observed) Empty() bool { return o.last == 0 }

// Add adds a forward pass. It is false, and nothing is added, when what is there
// has to be written first: a sum would leave its range, or an exponential
// histogram its size. A single pass always fits. overflowed is the number of
// observations left out because value × weight is no finite number.
func (o *Observed) Add(pass Pass) (fits bool, overflowed int) {
	scheduled := &pass.Record.Scheduled
	prefill, decode := scheduled.SumPrefillTokens, scheduled.NumDecodeRequests
	if prefill > math.MaxInt64-o.prefillTokens || decode > math.MaxInt64-o.decodeTokens {
		return false, 0
	}
	if duration := pass.Record.WallTime; duration > 0 {
		step := o.form.observation(duration, 1, pass.Time)
		tokens := o.form.observation(duration, uint64(decode), pass.Time)
		if math.IsInf(tokens.sum, 0) {
			tokens.weight, tokens.sum, overflowed = 0, 0, 1
		}
		if !o.step.fits(&step, o.form.size) || !o.tokenLatency.fits(&tokens, o.form.size) {
			return false, 0
		}
		o.step.add(&step)
		o.tokenLatency.add(&tokens)
	}
	o.prefillTokens += prefill
	o.decodeTokens += decode
	o.last = pass.Time
	return true, overflowed
}

func (o *Observed) clear() {
	o.step.clear()
	o.tokenLatency.clear()
	o.prefillTokens, o.decodeTokens, o.last = 0, 0, 0
}
