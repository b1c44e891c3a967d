// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/observation"
)

// slots find, before the points are judged, which of several points of one series only one is to go on:
//
//   - gauge points of one tick of the resolution: the last one. A NoRecordedValue point takes part, but always goes on.
//   - cumulative monotonic sum points of one start time: the newest one, of equally new ones the last.
//
// Points are numbered in the order of the batch, which is the order in which superseded is asked.
type slots struct {
	best  map[observation.Key]contender // by slotKey
	lost  []bool                        // by number
	asked int
}

// slotKey gives the key of a series' slot: of a tick, or of a start time.
func slotKey(resource, series observation.Key, at uint64) observation.Key {
	return pair(pair(resource, series), bitsKey(at))
}

type contender struct {
	number int
	time   uint64
}

// keepSlots is the size up to which the map is used again: as many slots as a batch of a thousand ranks has, in 3 MiB.
const keepSlots = 1 << 16

func (s *slots) reset() {
	if len(s.best) > keepSlots {
		s.best = nil
	}
	clear(s.best)
	s.lost, s.asked = s.lost[:0], 0
}

// superseded tells whether the next point has lost its slot.
func (s *slots) superseded() bool {
	s.asked++
	return s.lost[s.asked-1]
}

func (s *slots) choose(b *batch, md pmetric.Metrics) {
	for i, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			s.chooseOf(b, b.owners.byEntry[i], sm)
		}
	}
}

func (s *slots) chooseOf(b *batch, resource observation.Key, sm pmetric.ScopeMetrics) {
	var scope observation.Key // made for the first metric that needs it
	for _, m := range sm.Metrics().All() {
		t := b.treatment(m)
		if t != thinSum && (t != judgeGauge || b.p.cfg.Resolution == 0) {
			continue
		}
		if scope == (observation.Key{}) {
			scope = scopeKey(sm.Scope())
		}
		if t == thinSum {
			s.chooseSums(resource, metricKey(scope, m), m.Sum())
		} else {
			s.chooseGauges(uint64(b.p.cfg.Resolution), resource, metricKey(scope, m), m.Gauge())
		}
	}
}

func (s *slots) chooseGauges(tick uint64, resource, metric observation.Key, g pmetric.Gauge) {
	for _, dp := range g.DataPoints().All() {
		// All are equally new: the last one wins.
		s.contend(slotKey(resource, seriesKey(metric, dp.Attributes()), uint64(dp.Timestamp())/tick), 0)
	}
}

func (s *slots) chooseSums(resource, metric observation.Key, sum pmetric.Sum) {
	for _, dp := range sum.DataPoints().All() {
		if dp.Flags().NoRecordedValue() {
			s.lost = append(s.lost, false)
			continue
		}
		s.contend(slotKey(resource, seriesKey(metric, dp.Attributes()), uint64(dp.StartTimestamp())), uint64(dp.Timestamp()))
	}
}

func (s *slots) contend(at observation.Key, time uint64) {
	c := contender{number: len(s.lost), time: time}
	s.lost = append(s.lost, false)
	if s.best == nil {
		s.best = map[observation.Key]contender{}
	}
	best, taken := s.best[at]
	switch {
	case !taken:
		s.best[at] = c
	case c.time >= best.time:
		s.lost[best.number] = true
		s.best[at] = c
	default:
		s.lost[c.number] = true
	}
}
