// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/observation"
)

// judgeGauges removes the points that are not emitted.
func (b *batch) judgeGauges(at place) {
	points := at.metric.Gauge().DataPoints()
	b.held = b.held[:0]
	for from := 0; from < points.Len(); {
		n := b.ahead.look(b, at, points, from)
		for i := range n {
			held := b.holdsBack(at, points.At(from+i), b.ahead.keys[i], b.ahead.superseded[i])
			b.held = append(b.held, held)
		}
		from += n
	}
	next := 0
	points.RemoveIf(func(pmetric.NumberDataPoint) bool {
		next++
		return b.held[next-1]
	})
}

// holdsBack tells whether the point is not emitted.
func (b *batch) holdsBack(at place, dp pmetric.NumberDataPoint, key observation.Key, superseded bool) bool {
	if dp.Flags().NoRecordedValue() {
		b.clearGauge(at.owner, key)
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
	return !b.assign(at, key, value)
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
