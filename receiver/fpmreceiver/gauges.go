// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"time"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// heldGauges is what gauge_interval holds back of a rank: the gauges,
// fpm.messages and fpm.messages.lost say how things are, so that a newer message
// makes an older one superfluous. What adds up is never held.
//
// Invariant (TestHeldGaugesAreSaid): the newest message of a rank, and the last
// one of each series and of each publisher, has its gauges sent: at the latest
// with the first batch after gauge_interval, and before its series ends.
type heldGauges struct {
	// sent is when gauges were last sent, by the clock that is never set; zero
	// before the first.
	sent time.Time
	// newest is the message whose gauges wait, nil when none do.
	newest *message
}

// due tells whether gauges may be sent now.
func (h *heldGauges) due(now time.Time, interval time.Duration) bool {
	return h.sent.IsZero() || now.Sub(h.sent) >= interval
}

// hold makes m the newest message. Its payload is of no use here, and one for
// each rank could be much.
func (h *heldGauges) hold(m *message) {
	if m.record.Payload != nil {
		bare := *m
		bare.record.Payload = nil
		m = &bare
	}
	h.newest = m
}

// gauges adds the gauges of a message, or holds them until release.
func (p *metricsPipe) gauges(workers *workerSet, state *seriesState, m *message) {
	if p.receiver.config.GaugeInterval > 0 {
		state.held.hold(m)
		return
	}
	workers.of(m.worker).Sampled(m.pass())
}

// sayBefore adds the gauges that are held when m, with its attributes, is not of
// the same series any more, or its counters start over.
func (p *metricsPipe) sayBefore(workers *workerSet, state *seriesState, m *message, attributes fpm.RankAttributes) {
	newest := state.held.newest
	if newest != nil && (newest.began != m.began || newest.counterStart != m.counterStart ||
		newest.lost.Start != m.lost.Start || state.attributes != attributes) {
		p.say(workers, state)
	}
}

// release adds the gauges that were held for long enough: of ranks of this batch,
// and of others that have a value at the consumer.
func (p *metricsPipe) release(workers *workerSet) {
	if p.receiver.config.GaugeInterval == 0 {
		return
	}
	for _, r := range p.touched {
		if state := &r.points.next; state.held.due(p.now, p.gaugeInterval) {
			p.say(workers, state)
		}
	}
	for r := range p.valued {
		if held := &r.points.committed.held; !r.points.touched && held.newest != nil && held.due(p.now, p.gaugeInterval) {
			p.say(workers, p.touch(r))
		}
	}
}

// say adds the gauges that are held, if there are any.
func (p *metricsPipe) say(workers *workerSet, state *seriesState) {
	m := state.held.newest
	if m == nil {
		return
	}
	state.held = heldGauges{sent: p.now}
	worker := workers.of(m.worker)
	worker.Sampled(m.pass())
	worker.Lost(state.attributes, m.lost, m.time)
}

// lost adds the total of each rank of the batch, unless it goes with the gauges.
func (p *metricsPipe) lost(workers *workerSet) {
	if p.receiver.config.GaugeInterval > 0 {
		return
	}
	for _, r := range p.touched {
		state := &r.points.next
		workers.of(state.worker).Lost(state.attributes, state.lost, state.last)
	}
}
