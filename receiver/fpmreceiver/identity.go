// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// engine is one configured engine: what the workers heard on its endpoints have
// in common.
type engine struct {
	base       address
	namespace  string
	component  string
	instance   string // names workers that do not name themselves, and the endpoints
	attributes map[string]any
}

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

// claim is held by the endpoint on which a worker's rank is heard under its
// plain name. The same worker and rank on a second live endpoint gets another
// name there, or the two would overwrite each other's series.
type claim struct {
	key   claimKey
	owner atomic.Pointer[endpoint]
	ranks int // that refer to it; guarded by identities.mu
}

type claimKey struct {
	namespace, component, instance string
	dpRank                         int64
}

// identities are the workers and claims of a receiver, as long as a rank refers
// to them.
type identities struct {
	mu      sync.Mutex
	workers map[workerKey]*worker
	claims  map[claimKey]*claim
}

func newIdentities() *identities {
	return &identities{workers: make(map[workerKey]*worker), claims: make(map[claimKey]*claim)}
}

// resolve gives a rank its worker. The rank may have one already; then it is
// exchanged.
func (ids *identities) resolve(r *rank) {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	own := r.endpoint.engine
	instance := r.key.workerID
	if instance == "" {
		instance = own.instance
	}
	if r.claim == nil {
		key := claimKey{own.namespace, own.component, instance, r.key.dpRank}
		if ids.claims[key] == nil {
			ids.claims[key] = &claim{key: key}
		}
		r.claim = ids.claims[key]
		r.claim.ranks++
	}
	owner := r.claim.owner.Load()
	r.contested = owner != nil && owner != r.endpoint && owner.live()
	if r.contested {
		instance += "@" + r.endpoint.address.dial()
	} else {
		r.claim.owner.Store(r.endpoint)
	}

	key := workerKey{own, r.key.workerID, instance}
	if r.worker != nil && r.worker.key == key {
		return
	}
	ids.leave(r)
	if ids.workers[key] == nil {
		ids.workers[key] = newWorker(key)
	}
	r.worker = ids.workers[key]
	r.worker.ranks++
}

// settled reports that the rank's name is still right: it holds the claim, or
// the endpoint that holds it is live.
func (r *rank) settled() bool {
	owner := r.claim.owner.Load()
	if r.contested {
		return owner.live()
	}
	return owner == r.endpoint
}

// release forgets what only this rank refers to.
func (ids *identities) release(r *rank) {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	ids.leave(r)
	if r.claim == nil {
		return
	}
	if r.claim.ranks--; r.claim.ranks == 0 {
		delete(ids.claims, r.claim.key)
	}
	r.claim = nil
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

func newWorker(key workerKey) *worker {
	w := &worker{key: key, resource: pcommon.NewResource()}
	attributes := w.resource.Attributes()
	key.engine.identify(attributes, key.instance)
	attributes.PutStr(fpm.AttrWorkerID, key.workerID)
	key.engine.adorn(attributes)
	return w
}

// endpointResource describes the engine's endpoints, not a worker.
func (e *engine) endpointResource(dst pcommon.Resource) {
	e.identify(dst.Attributes(), e.instance)
	e.adorn(dst.Attributes())
}

func (e *engine) identify(dst pcommon.Map, instance string) {
	dst.PutStr(fpm.AttrServiceNamespace, e.namespace)
	dst.PutStr(fpm.AttrServiceName, e.component)
	dst.PutStr(fpm.AttrServiceInstanceID, instance)
	if e.base.network == "tcp" {
		dst.PutStr(fpm.AttrServerAddress, e.base.host)
		dst.PutInt(fpm.AttrServerPort, int64(e.base.port))
	}
}

// adorn puts the configured attributes, which may override all others.
func (e *engine) adorn(dst pcommon.Map) {
	for key, value := range e.attributes {
		// Validate let only scalars through, which FromRaw takes.
		_ = dst.PutEmpty(key).FromRaw(value)
	}
}
