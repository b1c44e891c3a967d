// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
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
	// time is the observation time, strictly after that of the rank's message
	// before.
	time         pcommon.Timestamp
	counterStart pcommon.Timestamp
	// lost is the rank's running total, this message's gap included.
	lost fpm.Lost
}

// size is what the message counts against queue_bytes: its payload.
func (m *message) size() int64 { return int64(len(m.record.Payload)) }

// rankKey tells the ranks of one endpoint apart.
type rankKey struct {
	workerID string
	dpRank   int64
}

// rank is what is remembered of one (endpoint, worker_id, dp_rank). The first
// group of fields belongs to the endpoint and its lock, points to the metrics
// pipe alone.
type rank struct {
	key       rankKey
	endpoint  *endpoint
	worker    *worker
	claim     *claim
	contested bool

	continuity continuity
	lastHeard  time.Time
	lastTime   pcommon.Timestamp
	// floor is the time of the points that ended the gauges, after which the
	// next message must come.
	floor        pcommon.Timestamp
	counterStart pcommon.Timestamp
	lost         fpm.Lost

	points rankPoints
}

// admit judges a message by its counter and gives it its times. ok is false
// for a duplicate.
func (r *rank) admit(record fpm.Record, sequence int64, at time.Time) (m *message, s step) {
	s = r.continuity.next(record.CounterID)
	r.lastHeard = at
	if s.duplicate {
		return nil, s
	}
	now := nextTime(max(r.lastTime, r.floor), pcommon.NewTimestampFromTime(at))
	if r.counterStart == 0 {
		r.counterStart = startBefore(0, now)
		r.lost.Start = r.counterStart
	}
	if s.rebase {
		r.counterStart = startBefore(r.lastTime, now)
	}
	if total := r.lost.Total + s.lost; total >= 0 {
		r.lost.Total = total
	} else { // over 2⁶³−1: the series starts anew
		r.lost = fpm.Lost{Total: s.lost, Start: startBefore(r.lastTime, now)}
	}
	r.lastTime = now
	return &message{
		rank: r, worker: r.worker, record: record, sequence: sequence,
		time: now, counterStart: r.counterStart, lost: r.lost,
	}, s
}

// silent reports that the rank was not heard for staleAfter, and that delivered
// is the time of its last message: then nothing of it waits in a queue. at is
// the time for the points that end its gauges.
func (r *rank) silent(now time.Time, staleAfter time.Duration, delivered pcommon.Timestamp) (at pcommon.Timestamp, silent bool) {
	r.endpoint.mu.Lock()
	defer r.endpoint.mu.Unlock()
	if now.Sub(r.lastHeard) < staleAfter || r.lastTime != delivered {
		return 0, false
	}
	r.floor = max(pcommon.NewTimestampFromTime(now), r.floor+1, r.lastTime+spacing)
	return r.floor, true
}
