// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// heldGauges is what gauge_interval holds back of a rank: the gauges,
// fpm.messages and fpm.messages.lost say how things are, so that a newer message
// makes an older one superfluous. What adds up is never held.
//
// Invariant (TestHeldGaugesAreSaid): the newest message of a rank, and the last
// one of each series and of each publisher, has its gauges sent, at the latest
// gauge_interval after those that were sent before.
type heldGauges struct {
	// sent is the time of the last message whose gauges were sent, 0 before the
	// first.
	sent pcommon.Timestamp
	// newest is the message whose gauges wait, nil when none do.
	newest *message
}

// due tells whether gauges may be sent at a time. Without an interval they
// always may, also when the clock was stepped back.
func (h *heldGauges) due(at pcommon.Timestamp, interval time.Duration) bool {
	return h.sent == 0 || interval == 0 || at >= h.sent+pcommon.Timestamp(interval)
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

// gauges adds the gauges of a message, or holds them.
func (p *metricsPipe) gauges(workers *workerSet, state *seriesState, m *message) {
	if state.held.due(m.time, p.gaugeInterval) {
		p.say(workers, state, m)
	} else {
		state.held.hold(m)
	}
}

// sayBefore adds the gauges that are held when m is not of the same series any
// more, or its counters start over.
func (p *metricsPipe) sayBefore(workers *workerSet, state *seriesState, m *message) {
	newest := state.held.newest
	if newest == nil {
		return
	}
	if newest.began != m.began || newest.counterStart != m.counterStart || newest.lost.Start != m.lost.Start ||
		state.attributes != m.record.Attributes() {
		p.say(workers, state, newest)
	}
}

// release adds the gauges of a rank that were held for long enough.
func (p *metricsPipe) release(workers *workerSet, r *rank, now time.Time) {
	held := r.points.committed.held
	if r.points.touched {
		held = r.points.next.held
	}
	if held.newest != nil && held.due(pcommon.NewTimestampFromTime(now), p.gaugeInterval) {
		p.say(workers, p.touch(r), held.newest)
	}
}

// say adds the gauges of a rank's newest message.
func (p *metricsPipe) say(workers *workerSet, state *seriesState, m *message) {
	state.held = heldGauges{sent: m.time}
	worker := workers.of(m.worker)
	worker.Sampled(m.pass())
	if p.receiver.config.GaugeInterval > 0 {
		worker.Lost(state.attributes, m.lost, m.time)
	}
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
