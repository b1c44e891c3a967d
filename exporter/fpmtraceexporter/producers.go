// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"time"
)

// producers are the producers of one exporter: at most max_open_producers open
// ones and as many that are closing. The exporter's lock guards them.
type producers struct {
	open map[string]*producer
	// closing are the last ones of their id that have not ended, ending is the
	// number of all that have not.
	closing map[string]*producer
	ending  int
	// recent was used last, oldest longest ago.
	recent, oldest *producer
}

func (ps *producers) init() {
	ps.open = map[string]*producer{}
	ps.closing = map[string]*producer{}
}

// alikeIDs are two producer ids that sanitize alike.
type alikeIDs struct{ id, other, name string }

// producer finds or opens the producer of an id; nil when there are too many.
// mu is held.
func (e *traceExporter) producer(id string, t *tally) *producer {
	ps := &e.producers
	if p := ps.open[id]; p != nil {
		ps.touch(p)
		return p
	}
	if len(ps.open) >= e.cfg.MaxOpenProducers {
		if ps.ending >= e.cfg.MaxOpenProducers {
			return nil
		}
		ps.close(ps.oldest)
	}
	p := &producer{
		id: id, began: time.Now(),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	p.lane.producer = p
	if before := ps.closing[id]; before != nil {
		p.after = before.done
	} else {
		e.openWriter(p, t)
	}
	ps.open[id] = p
	ps.link(p)
	go e.runProducer(p)
	return p
}

// openWriter gives a producer its files' name; mu is held.
func (e *traceExporter) openWriter(p *producer, t *tally) {
	writer, other := e.segments.Open(p.id)
	p.writer = writer
	if other != "" {
		t.alike = append(t.alike, alikeIDs{id: p.id, other: other, name: writer.Name()})
	}
}

// close tells an open producer to end.
func (ps *producers) close(p *producer) {
	delete(ps.open, p.id)
	ps.unlink(p)
	ps.closing[p.id] = p
	ps.ending++
	close(p.stop)
}

// closeAll closes all open producers and returns those that have not ended.
func (ps *producers) closeAll() []*producer {
	for ps.oldest != nil {
		ps.close(ps.oldest)
	}
	all := make([]*producer, 0, len(ps.closing))
	for _, p := range ps.closing {
		all = append(all, p)
	}
	return all
}

// ended forgets a closed producer.
func (ps *producers) ended(p *producer) {
	ps.ending--
	if ps.closing[p.id] == p {
		delete(ps.closing, p.id)
	}
}

func (ps *producers) touch(p *producer) {
	if ps.recent != p {
		ps.unlink(p)
		ps.link(p)
	}
}

func (ps *producers) link(p *producer) {
	p.newer, p.older = nil, ps.recent
	if ps.recent != nil {
		ps.recent.newer = p
	} else {
		ps.oldest = p
	}
	ps.recent = p
}

func (ps *producers) unlink(p *producer) {
	if p.newer != nil {
		p.newer.older = p.older
	} else {
		ps.recent = p.older
	}
	if p.older != nil {
		p.older.newer = p.newer
	} else {
		ps.oldest = p.newer
	}
}
