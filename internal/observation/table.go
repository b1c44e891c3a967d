// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observation

import "time"

// Table keeps resources by their Key, counts the series they own, and bounds both: the series by a maximum, the resources
// by forgetting those not seen for a time to live. R is what the user keeps for a resource.
//
// A user pins a resource while he works on it; a pinned resource stays. Times are of one monotonic clock.
//
// Invariant BoundedTable: never more than maxSeries series, and no resource that is neither pinned nor owns a series.
type Table[R any] struct {
	maxSeries int
	ttl       time.Duration
	series    int
	resources map[Key]*Resource[R]
	// The resources in a ring by the time they were last seen: ring.next is the oldest one.
	ring Resource[R]
}

// Resource is one entry of a Table.
type Resource[R any] struct {
	// State is the user's; its zero value is a resource without series.
	State R

	key        Key
	series     int
	pins       int
	seen       time.Duration
	next, prev *Resource[R]
}

// NewTable returns an empty Table.
func NewTable[R any](maxSeries int, ttl time.Duration) *Table[R] {
	t := &Table[R]{maxSeries: maxSeries, ttl: ttl, resources: map[Key]*Resource[R]{}}
	t.ring.next, t.ring.prev = &t.ring, &t.ring
	return t
}

// Series returns the number of series in the table.
func (t *Table[R]) Series() int { return t.series }

// Resources returns the number of resources in the table.
func (t *Table[R]) Resources() int { return len(t.resources) }

// Pin returns the resource of the key, made when absent, and keeps it until Unpin.
func (t *Table[R]) Pin(key Key) *Resource[R] {
	r := t.resources[key]
	if r == nil {
		r = &Resource[R]{key: key}
		t.resources[key] = r
	}
	r.pins++
	return r
}

// Unpin ends one Pin. A resource that owns no series is forgotten.
func (t *Table[R]) Unpin(r *Resource[R]) {
	r.pins--
	if r.pins == 0 && r.series == 0 {
		t.forget(r)
	}
}

// See notes that the pinned resource was seen. When its time to live had run out, its series are given up, and their
// number is returned: the caller then empties its State.
func (t *Table[R]) See(r *Resource[R], now time.Duration) (expired int) {
	if r.next != nil && now-r.seen >= t.ttl {
		expired = r.series
		t.Release(r, expired)
	}
	r.seen = now
	r.unlink()
	r.prev, r.next = t.ring.prev, &t.ring
	r.prev.next, r.next.prev = r, r
	return expired
}

// Reserve counts one more series of the pinned resource; it refuses when the table is full.
func (t *Table[R]) Reserve(r *Resource[R]) bool {
	if t.series >= t.maxSeries {
		return false
	}
	t.series++
	r.series++
	return true
}

// Release gives n series of the pinned resource back.
func (t *Table[R]) Release(r *Resource[R], n int) {
	t.series -= n
	r.series -= n
}

// Evict forgets all resources that were not seen for the time to live and are not pinned; it returns how many series
// they owned.
func (t *Table[R]) Evict(now time.Duration) (evicted int) {
	for r := t.ring.next; r != &t.ring && now-r.seen >= t.ttl; {
		next := r.next
		if r.pins == 0 {
			evicted += r.series
			t.Release(r, r.series)
			t.forget(r)
		}
		r = next
	}
	return evicted
}

func (t *Table[R]) forget(r *Resource[R]) {
	r.unlink()
	delete(t.resources, r.key)
}

func (r *Resource[R]) unlink() {
	if r.next != nil {
		r.prev.next, r.next.prev = r.next, r.prev
		r.next, r.prev = nil, nil
	}
}
