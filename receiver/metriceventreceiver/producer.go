// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// producer is what is remembered of one engine process.
type producer struct {
	all         *producers
	key         producerKey
	id          string
	rawResource string           // of its first message
	resource    pcommon.Resource // read-only

	mu         sync.Mutex // guards all below, and the events' way into the queue
	lastHeard  time.Time
	continuity continuity
	accepted   int64
	metrics    map[string]*metric
	scratch    []byte
	gone       bool // forgotten: whoever waited for it looks for another
}

// metric is one metric of one producer. Its operation is the one that the
// built-in catalogue has, or else the one it was first seen with, as long as it
// has a series.
type metric struct {
	producer    *producer
	name        string
	operation   operation
	description description
	series      map[string]*series
}

// series is one metric with one set of labels.
type series struct {
	metric     *metric
	attributes pcommon.Map // read-only
	lastHeard  time.Time
	// waiting counts the accepted events that were neither delivered nor dropped.
	waiting atomic.Int32
	// points is the delivery's.
	points seriesPoints
}

// admit finds or makes the series of an event.
func (p *producer) admit(e *event, now time.Time) (*series, *rejection) {
	m := p.metrics[string(e.metric)]
	if m == nil {
		// Exporters hide a name that two producers use with two kinds, from all of them.
		if entry := p.all.catalog.builtIn[string(e.metric)]; entry != nil && entry.operation != e.operation {
			return nil, &rejection{rejectedKind, "operation", e.operation, entry.operation.String() + ", as the catalogue has this metric"}
		}
		name := string(e.metric)
		m = &metric{
			producer: p, name: name, operation: e.operation,
			description: p.all.catalog.describe(name), series: make(map[string]*series),
		}
	}
	if m.operation != e.operation {
		return nil, &rejection{rejectedKind, "operation", e.operation, m.operation.String() + ", as when this producer's metric was first seen"}
	}
	p.scratch = appendLabels(p.scratch[:0], e.labels)
	s := m.series[string(p.scratch)]
	if s == nil {
		if p.all.series.Add(1) > p.all.maxSeries {
			p.all.series.Add(-1)
			return nil, &rejection{rejectedSeriesLimit, "labels", fmt.Sprintf("a set of %d not seen before", len(e.labels)), fmt.Sprintf("at most %d series (max_series)", p.all.maxSeries)}
		}
		s = &series{metric: m, attributes: attributesOf(e.labels)}
		m.series[string(p.scratch)] = s
		p.metrics[m.name] = m
	}
	s.lastHeard = now
	s.waiting.Add(1)
	return s, nil
}

// appendLabels appends what tells sets of labels apart.
func appendLabels(key []byte, labels []label) []byte {
	for _, l := range labels {
		key = binary.AppendUvarint(key, uint64(len(l.name)))
		key = append(key, l.name...)
		key = binary.AppendUvarint(key, uint64(len(l.value)))
		key = append(key, l.value...)
	}
	return key
}

func attributesOf(labels []label) pcommon.Map {
	attributes := pcommon.NewMap()
	attributes.EnsureCapacity(len(labels))
	for _, l := range labels {
		attributes.PutStr(string(l.name), string(l.value))
	}
	return attributes
}

// evict forgets series that were not heard for ttl, and metrics without series.
func (p *producer) evict(now time.Time, ttl time.Duration) {
	for name, m := range p.metrics {
		for key, s := range m.series {
			if now.Sub(s.lastHeard) >= ttl && s.waiting.Load() == 0 {
				delete(m.series, key)
				p.all.series.Add(-1)
			}
		}
		if len(m.series) == 0 {
			delete(p.metrics, name)
		}
	}
}

// forget gives up the producer and all its series. It is false when events still
// wait.
func (p *producer) forget() bool {
	count := 0
	for _, m := range p.metrics {
		for _, s := range m.series {
			if s.waiting.Load() != 0 {
				return false
			}
		}
		count += len(m.series)
	}
	p.all.series.Add(int64(-count))
	p.gone = true
	return true
}
