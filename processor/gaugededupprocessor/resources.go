// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/observation"
)

// resource is the state of the series of one resource. It belongs to whoever has the turn.
type resource struct {
	turn chan struct{}
	series
}

type series struct {
	gauges       observation.Gauges
	sums         map[observation.Key]*folded[observation.Counter]
	histograms   map[observation.Key]*folded[observation.Histogram]
	exponentials map[observation.Key]*folded[observation.Exponential]
}

type owner = observation.Resource[resource]

// owners are the resources of a batch.
type owners struct {
	byEntry []observation.Key // key of each ResourceMetrics, in the order of the batch
	keys    []observation.Key // sorted, each once
	taken   []*owner          // as keys
}

func (o *owners) reset() {
	clear(o.taken)
	o.byEntry, o.keys, o.taken = o.byEntry[:0], o.keys[:0], o.taken[:0]
}

// of returns the resource of the i-th ResourceMetrics.
func (o *owners) of(i int) *owner {
	at, _ := slices.BinarySearchFunc(o.keys, o.byEntry[i], observation.Key.Compare)
	return o.taken[at]
}

// take waits for the turn of all resources of the batch, one after the other in the order of their keys, so that two
// batches never wait for each other. Batches of different resources do not wait at all.
func (b *batch) take(ctx context.Context, md pmetric.Metrics) error {
	o := &b.owners
	for i := range md.ResourceMetrics().Len() {
		o.byEntry = append(o.byEntry, mapKey(md.ResourceMetrics().At(i).Resource().Attributes()))
	}
	o.keys = append(o.keys, o.byEntry...)
	slices.SortFunc(o.keys, observation.Key.Compare)
	o.keys = slices.Compact(o.keys)

	b.p.mu.Lock()
	for _, key := range o.keys {
		r := b.p.table.Pin(key)
		if r.State.turn == nil {
			r.State.turn = make(chan struct{}, 1)
		}
		o.taken = append(o.taken, r)
	}
	b.p.mu.Unlock()

	for i, r := range o.taken {
		select {
		case r.State.turn <- struct{}{}:
			continue
		default:
		}
		select {
		case r.State.turn <- struct{}{}:
		case <-ctx.Done():
			b.pass(o.taken[:i])
			return ctx.Err()
		}
	}
	return nil
}

// leave passes all turns on.
func (b *batch) leave() { b.pass(b.owners.taken) }

// pass passes the given turns on, and unpins all resources.
func (b *batch) pass(turns []*owner) {
	for _, r := range turns {
		<-r.State.turn
	}
	b.p.mu.Lock()
	for _, r := range b.owners.taken {
		b.p.table.Unpin(r)
	}
	b.p.mu.Unlock()
}

// see notes the time of the batch, and forgets what expired by then.
func (b *batch) see(now time.Duration) {
	b.now = now
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	for _, r := range b.owners.taken {
		if expired := b.p.table.See(r, now); expired > 0 {
			r.State.series = series{}
			b.ledger.evictions += expired
		}
	}
	b.ledger.evictions += b.p.table.Evict(now)
}

func (b *batch) reserve(r *owner) bool {
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	return b.p.table.Reserve(r)
}

func (b *batch) release(r *owner) {
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	b.p.table.Release(r, 1)
}
