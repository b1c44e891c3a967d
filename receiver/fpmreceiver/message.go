// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// message is an accepted message on its way to the pipes. All queues share it,
// and none changes it.
type message struct {
	rank     *rank
	worker   *worker
	record   fpm.Record
	sequence int64
	// payloadBytes is what the message counts against queue_bytes.
	payloadBytes int
	// time is the observation time, strictly after every point before it of the
	// rank's series.
	time pcommon.Timestamp
	// began is when the rank's series began; another value means other series.
	began        pcommon.Timestamp
	counterStart pcommon.Timestamp
	// lost is the rank's running total, this message's gap included.
	lost fpm.Lost
}

// pass is the forward pass that the message tells of.
func (m *message) pass() fpm.Pass {
	return fpm.Pass{Record: &m.record, Time: m.time, CounterStart: m.counterStart}
}

func (m *message) size() int64 { return int64(m.payloadBytes) }

// rankKey tells the ranks of one endpoint apart.
type rankKey struct {
	workerID string
	dpRank   int64
}

// rank is what is remembered of one (endpoint, worker_id, dp_rank). The
// endpoint's lock guards it, but for the atomics, and for points, which is the
// metrics pipe's.
type rank struct {
	key      rankKey
	endpoint *endpoint

	// Its name, see identities.
	worker    *worker
	claim     *claim
	contested bool
	// heardUntil is when it will not have been heard for stale_after, in
	// nanoseconds of the receiver's clock.
	heardUntil atomic.Int64

	continuity continuity
	lastHeard  time.Time
	// last is the latest time that any point of its series got.
	last pcommon.Timestamp
	// began is when its series began; 0 when they begin with the next message.
	began        pcommon.Timestamp
	counterStart pcommon.Timestamp
	lost         fpm.Lost

	// waiting counts the accepted messages that the metrics pipeline has neither
	// delivered nor dropped.
	waiting atomic.Int64
	// valued: its gauges have a value at the consumer of metrics, or hold one.
	valued atomic.Bool
	points rankPoints
}

// admit judges a message by its counter and gives it its times. There is no
// message when it is a duplicate. The message has a copy of the record.
func (r *rank) admit(record *fpm.Record, sequence int64, at time.Time) (*message, step) {
	s := r.continuity.next(record.CounterID)
	r.lastHeard = at
	if s.duplicate {
		return nil, s
	}
	start, now := r.take(pcommon.NewTimestampFromTime(at))
	if r.began == 0 {
		r.began, r.counterStart, r.lost = start, start, fpm.Lost{Start: start}
	}
	if s.rebase {
		r.counterStart = start
	}
	if total := r.lost.Total + s.lost; total >= 0 {
		r.lost.Total = total
	} else { // over 2⁶³−1: the series starts anew
		r.lost = fpm.Lost{Total: s.lost, Start: start}
	}
	m := &message{
		rank: r, worker: r.worker, record: *record, sequence: sequence, payloadBytes: len(record.Payload),
		time: now, began: r.began, counterStart: r.counterStart, lost: r.lost,
	}
	m.record.Detach()
	return m, s
}

// take takes the time for the rank's next points. start, between the points
// before and now, is for a series that begins with them.
func (r *rank) take(clock pcommon.Timestamp) (start, now pcommon.Timestamp) {
	now = fpm.NextTime(r.last, clock)
	start = fpm.StartBefore(r.last, now)
	r.last = now
	if !r.contested {
		r.claim.last.Store(int64(now))
	}
	return start, now
}

// idle reports that the rank was not heard for at least d, and that nothing of
// it waits for the metrics pipeline.
func (r *rank) idle(now time.Time, d time.Duration) bool {
	return now.Sub(r.lastHeard) >= d && r.waiting.Load() == 0
}

// ended reports that nothing of the rank waits for the metrics pipeline, and
// that its gauges have no value there and hold none. Only a message can change that.
func (r *rank) ended() bool { return r.waiting.Load() == 0 && !r.valued.Load() }
