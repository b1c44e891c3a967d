// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/observation"
)

// batch is the work on one call of ConsumeMetrics. It is used again for later calls, so that steady work allocates
// nothing for itself.
type batch struct {
	p      *gaugeDedup
	now    time.Duration
	owners owners
	slots  slots
	ledger ledger
	ahead  ahead
	held   []bool // of the points of one gauge, which are not emitted

	gauges       []gaugeUndo
	sums         fold[observation.Increment, observation.Counter, *observation.Increment, *observation.Counter, pmetric.NumberDataPoint]
	histograms   fold[observation.HistogramPoint, observation.Histogram, *observation.HistogramPoint, *observation.Histogram, pmetric.HistogramDataPoint]
	exponentials fold[observation.ExponentialPoint, observation.Exponential, *observation.ExponentialPoint, *observation.Exponential, pmetric.ExponentialHistogramDataPoint]
}

func newBatch(p *gaugeDedup) *batch {
	b := &batch{p: p, ledger: newLedger()}
	b.sums.pdata = sumPoints{}
	b.sums.delta = p.cfg.Sums.Temporality == TemporalityDelta
	b.histograms.pdata = histogramPoints{}
	b.histograms.delta = p.cfg.Histograms.Temporality == TemporalityDelta
	b.exponentials.pdata = exponentialPoints{maxSize: p.cfg.Histograms.MaxSize}
	b.exponentials.delta = b.histograms.delta
	return b
}

// settle makes what the batch did final.
func (b *batch) settle() {
	for i := range b.gauges {
		if u := &b.gauges[i]; u.cleared {
			b.release(u.owner)
		}
	}
	b.sums.settle(b)
	b.histograms.settle(b)
	b.exponentials.settle(b)
}

// undo takes back what the batch did.
func (b *batch) undo() {
	for i := len(b.gauges) - 1; i >= 0; i-- {
		b.gauges[i].undo(b)
	}
	b.sums.undo(b)
	b.histograms.undo(b)
	b.exponentials.undo(b)
}

func (b *batch) reset() {
	b.owners.reset()
	b.slots.reset()
	b.ledger.reset()
	clear(b.gauges)
	b.gauges = b.gauges[:0]
	b.sums.reset()
	b.histograms.reset()
	b.exponentials.reset()
}
