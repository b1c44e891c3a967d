// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
	"github.com/otelcol-fpm/otelcol-fpm/internal/zmtp"
)

// endpoint is one rank's address. As zmtp.Handler it takes what the
// subscription brings, decodes it, follows its counters and queues it. Its
// methods do not block.
type endpoint struct {
	receiver *fpmReceiver
	decoder  fpm.Decoder // the subscription's

	mu        sync.Mutex
	latest    *rank // that was heard, nearly always the only one; nil when there is none
	liveness  liveness
	ranks     map[rankKey]*rank
	unreached bool // said once that nobody answers

	engine   *engine
	address  address
	connects atomic.Int64
}

var _ zmtp.Handler = (*endpoint)(nil)

func newEndpoint(receiver *fpmReceiver, engine *engine, address address) *endpoint {
	return &endpoint{
		receiver: receiver,
		engine:   engine,
		address:  address,
		decoder:  *fpm.NewDecoder(receiver.config.AcceptUnversioned),
		liveness: liveness{staleAfter: receiver.config.StaleAfter},
		ranks:    make(map[rankKey]*rank),
	}
}

// Connected implements zmtp.Handler.
func (e *endpoint) Connected() {
	e.connects.Add(1)
	e.mu.Lock()
	said := e.unreached
	e.unreached = false
	e.liveness.connect(time.Now())
	for _, r := range e.ranks {
		r.continuity.connected()
	}
	e.mu.Unlock()
	if said {
		e.receiver.logger.Info("Connected", zap.Stringer("endpoint", e.address))
	}
}

// Disconnected implements zmtp.Handler.
func (e *endpoint) Disconnected(err error) {
	e.mu.Lock()
	e.liveness.disconnect(time.Now())
	first := !e.unreached
	e.unreached = true
	e.mu.Unlock()

	handshake, refused := errors.AsType[*zmtp.HandshakeError](err)
	_, oversize := errors.AsType[*zmtp.OversizeError](err)
	switch {
	case refused && handshake.PeerSocketType == "ROUTER":
		e.warn("router", "This is the engine's self-benchmark port (base + dp_size), not a rank: lower dp_size", zap.Error(err))
	case refused:
		e.warn("handshake", "The peer takes connections, but does not answer as a publisher of forward pass metrics", zap.Error(err))
	case oversize:
		e.receiver.ledger.rejected(rejectedOversize)
		e.warn(rejectedOversize, "Connection closed: the peer announced more than is allowed; raise max_message_bytes if it is an engine", zap.Error(err))
	case first:
		e.receiver.logger.Info("No connection; trying again until the engine is there",
			zap.Stringer("endpoint", e.address), zap.Error(err))
	default:
		e.receiver.logger.Debug("No connection", zap.Stringer("endpoint", e.address), zap.Error(err))
	}
}

// Message implements zmtp.Handler. What a message rarely needs is in functions of
// its own, whose stack frames a quiet connection does not keep room for.
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
	m, s, ok := e.admit(&record, sequence, at)
	switch {
	case !ok:
		e.tooManyRanks(&record)
		return
	case s.duplicate:
		e.receiver.ledger.duplicate()
		return
	}
	e.receiver.ledger.accepted(s, sequence != record.CounterID)
	if s.interleaved {
		e.interleaved(&record)
	}
	e.receiver.push(m)
}

func (e *endpoint) tooManyRanks(record *fpm.Record) {
	e.receiver.ledger.rejected(rejectedRankLimit)
	e.warn(rejectedRankLimit, "Message rejected: its rank would be one more than max_ranks",
		zap.String("worker_id", record.WorkerID), zap.Int64("dp_rank", record.DPRank), zap.Int("max_ranks", e.receiver.config.MaxRanks))
}

func (e *endpoint) interleaved(record *fpm.Record) {
	e.receiver.logger.Warn("Two publishers speak through one endpoint with the same worker_id and dp_rank: their counters interleave, so losses cannot be counted",
		zap.Stringer("endpoint", e.address), zap.String("worker_id", record.WorkerID), zap.Int64("dp_rank", record.DPRank))
}

// admit finds the message's rank and judges it. ok is false when the rank is
// one too many.
func (e *endpoint) admit(record *fpm.Record, sequence int64, at time.Time) (m *message, s step, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.liveness.message(at)
	r := e.rank(rankKey{record.WorkerID, record.DPRank}, at)
	if r == nil {
		return nil, step{}, false
	}
	m, s = r.admit(record, sequence, at)
	if m != nil && e.receiver.metrics != nil {
		r.waiting.Add(1)
	}
	return m, s, true
}

// rank finds or makes a rank that was heard at a time, and sees to its name. It
// is nil when there would be too many.
func (e *endpoint) rank(key rankKey, at time.Time) *rank {
	now := e.receiver.since(at)
	heardUntil := now + int64(e.receiver.config.StaleAfter)
	r := e.latest
	if r == nil || r.key != key {
		r = e.ranks[key]
	}
	switch {
	case r == nil:
		if e.receiver.ranks.Add(1) > int64(e.receiver.config.MaxRanks) {
			e.receiver.ranks.Add(-1)
			return nil
		}
		r = &rank{key: key, endpoint: e, continuity: newContinuity()}
		e.ranks[key], e.latest = r, r
	case r.settled(now):
		e.latest = r
		r.heardUntil.Store(heardUntil)
		return r
	}
	was := r.contested
	e.receiver.identities.name(r, now, heardUntil)
	if r.contested && !was {
		e.contested(r)
	}
	return r
}

func (e *endpoint) contested(r *rank) {
	e.warn("identity", "The same worker and rank is heard on another endpoint too; its series get a name of their own here",
		zap.String("worker_id", r.key.workerID), zap.Int64("dp_rank", r.key.dpRank),
		zap.String("service.instance.id", r.worker.key.instance))
}

// end takes the time for the points that end the gauges of a rank. It is 0 when
// the rank was heard within staleAfter, or messages of it still wait.
func (e *endpoint) end(r *rank, now time.Time, staleAfter time.Duration) pcommon.Timestamp {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !r.idle(now, staleAfter) {
		return 0
	}
	_, at := r.take(pcommon.NewTimestampFromTime(now))
	return at
}

// evict forgets ranks that were idle for ttl, once their series have ended.
func (e *endpoint) evict(now time.Time, ttl time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for key, r := range e.ranks {
		if r.idle(now, ttl) && r.ended() {
			delete(e.ranks, key)
			if e.latest == r {
				e.latest = nil
			}
			e.receiver.ranks.Add(-1)
			e.receiver.identities.release(r)
		}
	}
}

func (e *endpoint) reject(err error) {
	reason := fpm.ReasonMalformed
	if rejected, ok := errors.AsType[*fpm.RejectError](err); ok {
		reason = rejected.Reason
	}
	e.receiver.ledger.rejected(string(reason))
	e.warn(string(reason), "Message rejected", zap.Error(err))
}

// warn logs at most one line an endpoint, reason and ten seconds.
func (e *endpoint) warn(reason, text string, fields ...zap.Field) {
	e.receiver.warn(e.address.String(), reason, text, append(fields, zap.Stringer("endpoint", e.address))...)
}

// state is the endpoint's state now.
func (e *endpoint) state(now time.Time) state {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.liveness.at(now)
}
