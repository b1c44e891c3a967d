// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"cmp"
	"slices"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// sampler keeps the newest record of each key until the end of an interval. It
// is a plain value: no lock, no clock, no goroutine.
//
// Newest means the last arrival, not the highest counter. An arrival with the
// counter that was written last is ignored, so that it never takes the place
// of a newer one that waits. Any other counter is a change, a lower one too.
type sampler struct {
	maxKeys int
	keys    map[sampleKey]*sample
	// recent is the key heard last, oldest the one heard longest ago.
	recent, oldest *sample
	// pending is the number of records that wait; bytes counts their text and
	// the text of all keys.
	pending int
	bytes   int64
	order   []*sample
}

// sampleKey is whose newest record is kept.
type sampleKey struct {
	fpm.Source
	WorkerID string
	DPRank   int64
}

type sample struct {
	key     sampleKey
	waits   bool
	event   []byte
	counter int64
	// written is the counter of the last record handed on, once there was one.
	written    int64
	wasWritten bool

	newer, older *sample
}

func newSampler(maxKeys int) *sampler {
	return &sampler{maxKeys: maxKeys, keys: map[sampleKey]*sample{}}
}

// offer takes a record; event is copied. superseded says that a record, this
// one or the one that waited, will not be written; evicted that the record of
// another key was lost, because max_keys are known.
func (s *sampler) offer(key sampleKey, counter int64, event []byte) (superseded, evicted bool) {
	entry := s.keys[key]
	if entry == nil {
		if len(s.keys) >= s.maxKeys {
			evicted = s.evict()
		}
		entry = &sample{key: key}
		s.keys[key] = entry
		s.bytes += key.size()
	} else {
		s.unlink(entry)
	}
	s.link(entry)
	if entry.wasWritten && entry.written == counter {
		return true, evicted
	}
	superseded = entry.waits
	s.settle(entry)
	entry.waits, entry.counter = true, counter
	entry.event = append(entry.event, event...)
	s.pending++
	s.bytes += int64(len(entry.event))
	return superseded, evicted
}

// tick hands on every record that waits, in the order of the keys. hand must
// not keep the event.
func (s *sampler) tick(hand func(key *sampleKey, event []byte)) {
	s.order = s.order[:0]
	for _, entry := range s.keys {
		if entry.waits {
			s.order = append(s.order, entry)
		}
	}
	slices.SortFunc(s.order, func(a, b *sample) int { return a.key.compare(&b.key) })
	for _, entry := range s.order {
		hand(&entry.key, entry.event)
		entry.written, entry.wasWritten = entry.counter, true
		s.settle(entry)
	}
	clear(s.order)
}

// settle ends an entry's wait. A usual buffer is kept for the key's next
// record.
func (s *sampler) settle(entry *sample) {
	const keepEvent = 4096
	if entry.waits {
		s.pending--
		s.bytes -= int64(len(entry.event))
	}
	entry.waits = false
	entry.event = entry.event[:0]
	if cap(entry.event) > keepEvent {
		entry.event = nil
	}
}

// evict forgets the key heard longest ago; lost says that its record waited.
func (s *sampler) evict() (lost bool) {
	entry := s.oldest
	if entry == nil {
		return false
	}
	lost = entry.waits
	s.settle(entry)
	s.unlink(entry)
	delete(s.keys, entry.key)
	s.bytes -= entry.key.size()
	return lost
}

func (s *sampler) link(entry *sample) {
	entry.newer, entry.older = nil, s.recent
	if s.recent != nil {
		s.recent.newer = entry
	} else {
		s.oldest = entry
	}
	s.recent = entry
}

func (s *sampler) unlink(entry *sample) {
	if entry.newer != nil {
		entry.newer.older = entry.older
	} else {
		s.recent = entry.older
	}
	if entry.older != nil {
		entry.older.newer = entry.newer
	} else {
		s.oldest = entry.newer
	}
}

func (k *sampleKey) size() int64 {
	return int64(len(k.Namespace) + len(k.Component) + len(k.ProducerID) + len(k.WorkerID))
}

// compare orders strings by bytes and ranks by number.
func (k *sampleKey) compare(other *sampleKey) int {
	return cmp.Or(
		cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Component, other.Component),
		cmp.Compare(k.ProducerID, other.ProducerID), cmp.Compare(k.WorkerID, other.WorkerID),
		cmp.Compare(k.DPRank, other.DPRank),
	)
}
