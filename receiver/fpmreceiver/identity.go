// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// worker is one resource: an engine process as it names itself. Its ranks may
// be heard on several endpoints of the engine.
type worker struct {
	key      workerKey
	resource pcommon.Resource // read-only
	ranks    int              // that refer to it; guarded by identities.mu
}

type workerKey struct {
	engine   *engine
	workerID string
	instance string
}

// claim is the right to a plain name, that of a worker's rank. The rank that
// was heard first has it, and keeps it until it is gone and another one asks.
type claim struct {
	key   claimKey
	owner atomic.Pointer[rank]
	// last is the latest time of a point under the plain name.
	last  atomic.Int64
	ranks int // that refer to it; guarded by identities.mu
}

type claimKey struct {
	namespace, component, instance string
	dpRank                         int64
}

// identities are the names in a receiver: workers and claims, as long as a rank
// refers to them.
//
// Invariant (TestNoTwoEndpointsShareASeries): at any time at most one rank
// sends points under a name, and their times strictly increase, whoever sends
// them: the same worker and rank on a second endpoint has another name there.
type identities struct {
	mu      sync.Mutex
	workers map[workerKey]*worker
	claims  map[claimKey]*claim
	// floor is the latest time of a point of any rank that was forgotten.
	floor pcommon.Timestamp
}

func newIdentities() *identities {
	return &identities{workers: make(map[workerKey]*worker), claims: make(map[claimKey]*claim)}
}

// settled reports that a message at now needs no new name for its rank. It is
// all that a message costs here, as a rule. Who comes back after stale_after
// asks for its name under the lock, where nobody can take it at the same moment.
func (r *rank) settled(now int64) bool {
	return r.contested || r.claim.owner.Load() == r && now < r.heardUntil.Load()
}

// gone reports that the rank was not heard for stale_after, and that its series
// have ended: their name is free.
func (r *rank) gone(now int64) bool {
	return now >= r.heardUntil.Load() && r.ended()
}

// name gives a rank its name, when it is new or was not heard for stale_after.
// A name that is contested stays so: it is as good, and a second change would
// cut the series once more.
func (ids *identities) name(r *rank, now, heardUntil int64) {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	own := r.endpoint.engine
	instance := r.key.workerID
	if instance == "" {
		instance = own.instance
	}
	if r.claim == nil {
		r.claim = ids.claim(claimKey{own.namespace, own.component, instance, r.key.dpRank})
		r.last = ids.floor
	}
	r.heardUntil.Store(heardUntil)
	owner := r.claim.owner.Load()
	if owner == r {
		return
	}
	r.contested = owner != nil && !owner.gone(now)
	if r.contested {
		instance += "@" + r.endpoint.address.dial()
	} else {
		r.claim.owner.Store(r)
		r.last = max(r.last, pcommon.Timestamp(r.claim.last.Load()))
	}
	r.began = 0
	ids.join(r, workerKey{own, r.key.workerID, instance})
}

// release forgets what only this rank refers to.
func (ids *identities) release(r *rank) {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	ids.floor = max(ids.floor, r.last)
	ids.leave(r)
	r.claim.owner.CompareAndSwap(r, nil)
	if r.claim.ranks--; r.claim.ranks == 0 {
		delete(ids.claims, r.claim.key)
	}
}

func (ids *identities) claim(key claimKey) *claim {
	c := ids.claims[key]
	if c == nil {
		c = &claim{key: key}
		ids.claims[key] = c
	}
	c.ranks++
	return c
}

func (ids *identities) join(r *rank, key workerKey) {
	ids.leave(r)
	w := ids.workers[key]
	if w == nil {
		w = &worker{key: key, resource: key.engine.workerResource(key.workerID, key.instance)}
		ids.workers[key] = w
	}
	w.ranks++
	r.worker = w
}

func (ids *identities) leave(r *rank) {
	if r.worker == nil {
		return
	}
	if r.worker.ranks--; r.worker.ranks == 0 {
		delete(ids.workers, r.worker.key)
	}
	r.worker = nil
}
