// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"time"

	"go.uber.org/zap"
)

// accepted is an event that waits for the pipeline.
type accepted struct {
	series    *series
	timestamp int64
	value     number
	weight    uint64
}

// chunk are events of one message, in order; one batch's worth at most.
type chunk []accepted

// intake takes messages. It is safe for concurrent use, each connection with
// its own decoder.
type intake struct {
	producers *producers
	delivery  *delivery
	ledger    ledger
	log       *log
	endpoint  string
	maxEvents int
}

// message takes one message that left the socket at a time. It waits for
// nothing but other messages of the same producer.
func (in *intake) message(d *decoder, frames [][]byte, at time.Time) {
	defer d.release()
	m, rejected := d.open(frames)
	if rejected != nil {
		in.ledger.reject(rejected.reason, 1)
		in.log.warn(in.endpoint, rejected.reason.String(), "Message rejected", zap.String("endpoint", in.endpoint), zap.Error(rejected))
		return
	}
	p := in.producers.get(&m, at)
	if p == nil {
		in.ledger.reject(rejectedProducerLimit, m.events)
		in.log.warn(in.endpoint, rejectedProducerLimit.String(), "Events rejected: their producer would be one more than max_producers",
			zap.Stringer("producer", m.producer), zap.Int("events", m.events), zap.Int("max_producers", in.producers.maxProducers))
		return
	}
	defer p.mu.Unlock()
	p.lastHeard = at
	if !p.continuity.message(m.seq, int64(m.events), m.droppedTotal, at) {
		in.log.warn(p.id, "seq", "A message is older than the producer's latest; what was lost on the way cannot be counted right",
			zap.String("producer", p.id), zap.Int64("seq", m.seq))
	}
	if p.rawResource != string(m.resource) {
		in.log.warn(p.id, "resource", "The producer's resource is not what it was in its first message; the first one holds",
			zap.String("producer", p.id))
	}
	in.events(d, &m, p, at)
}

// events judges the events of a message and queues the good ones.
func (in *intake) events(d *decoder, m *message, p *producer, at time.Time) {
	var (
		rejections tally
		next       chunk
	)
	for left := m.events; left > 0; left-- {
		e, rejected := d.next()
		var s *series
		if rejected == nil {
			s, rejected = p.admit(&e, at)
		}
		if rejected != nil {
			rejections.add(rejected, &e)
			continue
		}
		if next == nil {
			next = make(chunk, 0, min(left, in.maxEvents))
		}
		if next = append(next, accepted{s, e.timestamp, e.value, e.weight}); len(next) == in.maxEvents {
			in.accept(p, next)
			next = nil
		}
	}
	if len(next) > 0 {
		in.accept(p, next)
	}
	for r := range reasonCount {
		if of := &rejections[r]; of.events > 0 {
			in.ledger.reject(r, of.events)
			in.log.warn(p.id, r.String(), "Events rejected", zap.String("producer", p.id), zap.Int("events", of.events),
				zap.String("metric", show(of.metric)), zap.Error(of.rejection))
		}
	}
}

// accept queues events. The queue is bounded in events: a chunk that was made for
// many and got few must not hold the room of many.
func (in *intake) accept(p *producer, c chunk) {
	if len(c) < cap(c)/2 {
		c = append(make(chunk, 0, len(c)), c...)
	}
	p.accepted += int64(len(c))
	in.ledger.accept(len(c))
	in.delivery.push(c)
}
