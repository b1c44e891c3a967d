// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"time"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// heldPoints is what gauge_interval holds back of a rank. Gauges, fpm.messages and
// fpm.messages.lost say how things are, so that a newer message makes an older one
// superfluous; durations and token sums are added up, in the rank's totals.
//
// Invariant (TestHeldPointsAreSaid): the newest message of a rank, and the last one
// of each series and of each publisher, has its gauges sent: at the latest with the
// first batch after gauge_interval, and before its series ends.
//
// Invariant (TestTotalsCountEachMessage): each message is in the points that go with
// the gauges, once, whatever was refused meanwhile.
type heldPoints struct {
	// sent is when points were last sent, by the clock that is never set; zero
	// before the first.
	sent time.Time
	// newest is the message whose gauges wait, nil when none do.
	newest *message
	// messages is how many the totals add up, the newest among them.
	messages int
}

// due tells whether points may be sent now.
func (h *heldPoints) due(now time.Time, interval time.Duration) bool {
	return h.sent.IsZero() || now.Sub(h.sent) >= interval
}

// add makes m the newest message. Its payload is of no use here, and one for
// each rank could be much.
func (h *heldPoints) add(m *message) {
	if m.record.Payload != nil {
		bare := *m
		bare.record.Payload = nil
		m = &bare
	}
	h.newest = m
	h.messages++
}

// holds tells whether points are held at all.
func (p *metricsPipe) holds() bool { return p.receiver.config.GaugeInterval > 0 }

// hold adds a message to what is held of its rank.
func (p *metricsPipe) hold(workers *workerSet, state *seriesState, m *message) {
	points := &m.rank.points
	fits, overflowed := points.nextTotals.Add(m.pass())
	if !fits {
		p.say(workers, m.rank)
		_, overflowed = points.nextTotals.Add(m.pass())
	}
	points.overflowed += overflowed
	state.held.add(m)
}

// sayBefore adds the points that are held when m, with its attributes, is not of
// the same series any more, or its counters start over.
func (p *metricsPipe) sayBefore(workers *workerSet, state *seriesState, m *message, attributes fpm.RankAttributes) {
	newest := state.held.newest
	if newest != nil && (newest.began != m.began || newest.counterStart != m.counterStart ||
		newest.lost.Start != m.lost.Start || state.attributes != attributes) {
		p.say(workers, m.rank)
	}
}

// release adds the points that were held for long enough: of ranks of this batch,
// and of others that hold some.
func (p *metricsPipe) release(workers *workerSet) {
	if !p.holds() {
		return
	}
	for _, r := range p.touched {
		if r.points.next.held.due(p.now, p.gaugeInterval) {
			p.say(workers, r)
		}
	}
	for r := range p.valued {
		if held := &r.points.committed.held; !r.points.touched && held.newest != nil && held.due(p.now, p.gaugeInterval) {
			p.touch(r)
			p.say(workers, r)
		}
	}
}

// say adds the points that are held of a rank, if there are any.
func (p *metricsPipe) say(workers *workerSet, r *rank) {
	state := &r.points.next
	m := state.held.newest
	if m == nil {
		return
	}
	state.held, state.valued = heldPoints{sent: p.now}, true
	r.points.written = true
	worker := workers.of(m.worker)
	worker.Write(r.points.nextTotals, state.attributes, &state.links)
	worker.Sampled(m.pass())
	worker.Lost(state.attributes, m.lost, m.time)
}
