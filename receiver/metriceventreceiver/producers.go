// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// producers are the engine processes that were heard.
//
// Invariant (TestProducersAndSeriesAreBounded): there are at most maxProducers,
// and all of them together have at most maxSeries series.
type producers struct {
	maxProducers int
	maxSeries    int64
	catalog      *catalog
	attributes   map[string]any

	series atomic.Int64 // of all producers

	mu    sync.Mutex
	byKey map[producerKey]*producer
}

func newProducers(c *Config) *producers {
	return &producers{
		maxProducers: c.MaxProducers, maxSeries: int64(c.MaxSeries),
		catalog: newCatalog(c.Catalog), attributes: c.ResourceAttributes,
		byKey: make(map[producerKey]*producer),
	}
}

// get finds or makes the producer of a message, and locks it. It is nil when
// there would be too many.
func (ps *producers) get(m *message, now time.Time) *producer {
	for {
		p := ps.find(m, now)
		if p == nil {
			return nil
		}
		p.mu.Lock()
		if !p.gone {
			return p
		}
		p.mu.Unlock() // it was forgotten meanwhile
	}
}

func (ps *producers) find(m *message, now time.Time) *producer {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.byKey[m.producer]
	if p == nil && len(ps.byKey) < ps.maxProducers {
		id := m.producer.String()
		p = &producer{
			all: ps, key: m.producer, id: id, lastHeard: now,
			rawResource: string(m.resource), resource: ps.resource(id, m.resource),
			metrics: make(map[string]*metric),
		}
		ps.byKey[m.producer] = p
	}
	return p
}

const (
	attrServiceName       = "service.name"
	attrServiceInstanceID = "service.instance.id"

	defaultServiceName = "tokenspeed"
)

// resource describes a producer: by default, by the configuration, by what it
// says itself, each over the one before. Its identity it cannot change: two
// producers would share their series.
func (ps *producers) resource(id string, raw []byte) pcommon.Resource {
	attributes := map[string]any{attrServiceName: defaultServiceName}
	for name, value := range ps.attributes {
		attributes[name] = value
	}
	if len(raw) > 0 {
		var w walker
		w.Reset(raw)
		_ = eachAttribute(&w, func(name string, value any) { attributes[name] = value }) // was checked
	}
	attributes[attrServiceInstanceID] = id
	resource := pcommon.NewResource()
	_ = resource.Attributes().FromRaw(attributes) // takes scalars
	return resource
}

// evict forgets series and producers that were not heard for their time, and of
// which nothing waits for the pipeline.
func (ps *producers) evict(now time.Time, producerTTL, seriesTTL time.Duration) {
	for _, p := range ps.list() {
		p.mu.Lock()
		p.evict(now, seriesTTL)
		gone := now.Sub(p.lastHeard) >= producerTTL && p.forget()
		p.mu.Unlock()
		if gone {
			ps.mu.Lock()
			delete(ps.byKey, p.key)
			ps.mu.Unlock()
		}
	}
}

// list are the producers there are now.
func (ps *producers) list() []*producer {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	all := make([]*producer, 0, len(ps.byKey))
	for _, p := range ps.byKey {
		all = append(all, p)
	}
	return all
}

// count is the number of producers there are now.
func (ps *producers) count() int {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return len(ps.byKey)
}
