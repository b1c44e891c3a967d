// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/observation"
)

// judgeGauges removes the points that are not emitted.
func (b *batch) judgeGauges(at place) {
	at.metric.Gauge().DataPoints().RemoveIf(func(dp pmetric.NumberDataPoint) bool {
		superseded := b.p.cfg.Resolution > 0 && b.slots.superseded()
		if dp.Flags().NoRecordedValue() {
			b.clearGauge(at.owner, seriesKey(at.key, dp.Attributes()))
			b.ledger.points[passed]++
			return false
		}
		var value observation.Number
		switch dp.ValueType() {
		case pmetric.NumberDataPointValueTypeInt:
			value = observation.Int(dp.IntValue())
		case pmetric.NumberDataPointValueTypeDouble:
			value = observation.Double(dp.DoubleValue())
		default:
			b.ledger.points[passed]++
			return false
		}
		if superseded {
			b.ledger.points[suppressed]++
			return true
		}
		return !b.assign(at, seriesKey(at.key, dp.Attributes()), value)
	})
}

// assign tells whether the assignment is emitted.
func (b *batch) assign(at place, key observation.Key, value observation.Number) bool {
	state := &at.owner.State
	old := state.gauges.Get(key)
	d, next := b.p.refresh.Judge(old, value, b.now)
	switch d {
	case observation.Suppressed:
		b.ledger.points[suppressed]++
		return false
	case observation.First:
		if !b.reserve(at.owner) {
			b.passUntracked(at, untrackedGauge)
			return true
		}
	}
	b.gauges = append(b.gauges, gaugeUndo{owner: at.owner, key: key, old: old})
	state.gauges.Put(key, next)
	b.ledger.points[d]++
	return true
}

// clearGauge forgets the series: its next value is the first one.
func (b *batch) clearGauge(r *owner, key observation.Key) {
	if old := r.State.gauges.Get(key); old.Known() {
		b.gauges = append(b.gauges, gaugeUndo{owner: r, key: key, old: old, cleared: true})
		r.State.gauges.Delete(key)
	}
}

// gaugeUndo is what it takes to undo one change of a gauge's state. The room of a cleared series is given back only
// when the batch is settled, so that undo never finds the table full.
type gaugeUndo struct {
	owner   *owner
	key     observation.Key
	old     observation.Gauge
	cleared bool
}

func (u *gaugeUndo) undo(b *batch) {
	if u.old.Known() {
		u.owner.State.gauges.Put(u.key, u.old.Owed())
		return
	}
	u.owner.State.gauges.Delete(u.key)
	b.release(u.owner)
}
