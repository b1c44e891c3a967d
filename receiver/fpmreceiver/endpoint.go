// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
	"github.com/otelcol-fpm/otelcol-fpm/internal/zmtp"
)

// endpoint is one rank's address. As zmtp.Handler it takes what the
// subscription brings, decodes it, follows its counters and queues it. Its
// methods do not block.
type endpoint struct {
	receiver *fpmReceiver
	engine   *engine
	address  address
	decoder  *fpm.Decoder

	connects atomic.Int64
	// liveUntil is when the endpoint will have been silent for stale_after, in
	// nanoseconds of the receiver's clock; 0 without a connection.
	liveUntil atomic.Int64

	mu        sync.Mutex
	liveness  liveness
	ranks     map[rankKey]*rank
	unreached bool // said once that nobody answers
}

var _ zmtp.Handler = (*endpoint)(nil)

func newEndpoint(receiver *fpmReceiver, engine *engine, address address) *endpoint {
	return &endpoint{
		receiver: receiver,
		engine:   engine,
		address:  address,
		decoder:  fpm.NewDecoder(receiver.config.AcceptUnversioned),
		liveness: liveness{staleAfter: receiver.config.StaleAfter},
		ranks:    make(map[rankKey]*rank),
	}
}

// Connected implements zmtp.Handler.
func (e *endpoint) Connected() {
	e.connects.Add(1)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unreached = false
	e.liveness.connect(time.Now())
	for _, r := range e.ranks {
		r.continuity.connected()
	}
}

// Disconnected implements zmtp.Handler.
func (e *endpoint) Disconnected(err error) {
	e.mu.Lock()
	e.liveness.disconnect(time.Now())
	e.liveUntil.Store(0)
	first := !e.unreached
	e.unreached = true
	e.mu.Unlock()

	var oversize *zmtp.OversizeError
	if errors.As(err, &oversize) {
		e.receiver.ledger.rejected.add(rejectedOversize, 1)
		e.warn(rejectedOversize, "Connection closed: a message over the limit was announced; raise max_message_bytes if the peer is an engine", zap.Error(err))
		return
	}
	var handshake *zmtp.HandshakeError
	switch {
	case errors.As(err, &handshake) && handshake.PeerSocketType == "ROUTER":
		e.warn("router", "This is the engine's self-benchmark port (base + dp_size), not a rank: lower dp_size", zap.Error(err))
	case errors.As(err, &handshake):
		e.warn("handshake", "The peer does not speak ZMTP as a publisher of forward pass metrics does", zap.Error(err))
	case first:
		e.receiver.logger.Info("No connection; trying again until the engine is there",
			zap.Stringer("endpoint", e.address), zap.Error(err))
	default:
		e.receiver.logger.Debug("No connection", zap.Stringer("endpoint", e.address), zap.Error(err))
	}
}

// Message implements zmtp.Handler.
func (e *endpoint) Message(frames [][]byte, at time.Time) {
	sequence, payload, err := fpm.OpenEnvelope(frames)
	if err != nil {
		e.reject(err)
		return
	}
	record, err := e.decoder.Decode(payload, sequence)
	if err != nil {
		e.reject(err)
		return
	}
	ledger := &e.receiver.ledger
	m, s, ok := e.admit(record, sequence, at)
	switch {
	case !ok:
		ledger.rejected.add(rejectedRankLimit, 1)
		e.warn(rejectedRankLimit, "Message rejected: this rank would be one more than max_ranks",
			zap.String("worker_id", record.WorkerID), zap.Int64("dp_rank", record.DPRank), zap.Int("max_ranks", e.receiver.config.MaxRanks))
		return
	case s.duplicate:
		ledger.duplicate.Add(1)
		return
	}
	ledger.accepted.Add(1)
	ledger.lost.Add(s.lost)
	if sequence != record.CounterID {
		ledger.sequenceMismatch.Add(1)
	}
	if s.restart {
		ledger.restarts.Add(1)
	}
	if s.interleaved {
		e.receiver.logger.Warn("Two publishers speak through one endpoint with the same worker_id and dp_rank: their counters interleave, so losses cannot be counted",
			zap.Stringer("endpoint", e.address), zap.String("worker_id", record.WorkerID), zap.Int64("dp_rank", record.DPRank))
	}
	e.receiver.queue(m)
}

// admit finds the message's rank and judges it. ok is false when the rank is
// one too many.
func (e *endpoint) admit(record fpm.Record, sequence int64, at time.Time) (m *message, s step, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.liveness.message(at)
	e.liveUntil.Store(e.receiver.since(at) + int64(e.receiver.config.StaleAfter))
	key := rankKey{record.WorkerID, record.DPRank}
	r := e.ranks[key]
	if r == nil {
		if e.receiver.ranks.Add(1) > int64(e.receiver.config.MaxRanks) {
			e.receiver.ranks.Add(-1)
			return nil, step{}, false
		}
		r = &rank{key: key, endpoint: e, continuity: newContinuity()}
		e.ranks[key] = r
		e.identify(r)
	} else if !r.settled() {
		e.identify(r)
	}
	m, s = r.admit(record, sequence, at)
	return m, s, true
}

func (e *endpoint) identify(r *rank) {
	e.receiver.identities.resolve(r)
	if r.contested {
		e.warn("identity", "The same worker and rank is heard on a second endpoint; its series get a name of their own here",
			zap.String("worker_id", r.key.workerID), zap.Int64("dp_rank", r.key.dpRank),
			zap.String("service.instance.id", r.worker.key.instance))
	}
}

func (e *endpoint) reject(err error) {
	reason := fpm.ReasonMalformed
	var rejected *fpm.RejectError
	if errors.As(err, &rejected) {
		reason = rejected.Reason
	}
	e.receiver.ledger.rejected.add(string(reason), 1)
	e.warn(string(reason), "Message rejected", zap.Error(err))
}

// warn logs at most one line an endpoint, reason and ten seconds.
func (e *endpoint) warn(reason, text string, fields ...zap.Field) {
	e.receiver.warn(e.address.String(), reason, text, append(fields, zap.Stringer("endpoint", e.address))...)
}

// live reports that the endpoint is connected and was heard within stale_after.
func (e *endpoint) live() bool { return e.receiver.since(time.Now()) < e.liveUntil.Load() }

// state is the endpoint's state now.
func (e *endpoint) state(now time.Time) state {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.liveness.at(now)
}

// evict forgets ranks that were idle for longer than ttl.
func (e *endpoint) evict(now time.Time, ttl time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for key, r := range e.ranks {
		if now.Sub(r.lastHeard) > ttl {
			delete(e.ranks, key)
			e.receiver.ranks.Add(-1)
			e.receiver.identities.release(r)
		}
	}
}
