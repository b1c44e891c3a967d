// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// workerKey is what makes a resource.
type workerKey struct {
	fpm.Source
	workerID string
}

// rankKey is what makes the series of one data-parallel rank.
type rankKey struct {
	workerKey
	fpm.RankAttributes
}

// rank is what is remembered of the rows of one rank.
type rank struct {
	key rankKey
	// counter is that of the last row; gapless says that the row is of a trace
	// that leaves none out, so that a gap behind it is a loss.
	counter int64
	gapless bool
	heard   bool

	// last is the time of the latest point.
	last         pcommon.Timestamp
	began        pcommon.Timestamp
	counterStart pcommon.Timestamp
	lost         fpm.Lost

	// links are those of the points that the consumer of metrics has; next, while
	// touched, those it will have when it takes the batch at hand.
	links, next fpm.Links
	touched     bool
}

// entry is a row with what its rank makes of it.
type entry struct {
	fpm.Row
	rank *rank
	// own is the row's own time, time the one that its points get.
	own, time    pcommon.Timestamp
	began        pcommon.Timestamp
	counterStart pcommon.Timestamp
	lost         fpm.Lost
	// to are the signals that have not had the row yet.
	to [signalCount]bool
}

// sampled reports that rows around this one may have been left out on purpose.
func (e *entry) sampled() bool { return e.CaptureMode == fpm.CaptureSampled }

// admit gives a row its times. back is how far its own time lies before that of
// the last point.
func (r *rank) admit(row fpm.Row, own pcommon.Timestamp) (e entry, back pcommon.Timestamp) {
	now := fpm.NextTime(r.last, own)
	start := fpm.StartBefore(r.last, now)
	if r.last > own {
		back = r.last - own
	}
	r.last = now
	counter := row.Record.CounterID
	if !r.heard {
		r.began, r.counterStart, r.lost = start, start, fpm.Lost{Start: start}
	}
	e = entry{Row: row, rank: r, own: own, time: now}
	gapless := !e.sampled()
	switch {
	case !r.heard:
	case counter < r.counter: // the publisher has started over
		r.counterStart = start
	case gapless && r.gapless && counter > r.counter:
		r.lose(counter-r.counter-1, start)
	}
	r.heard, r.counter, r.gapless = true, counter, gapless
	e.began, e.counterStart, e.lost = r.began, r.counterStart, r.lost
	return e, back
}

// lose adds to the losses. A total over 2⁶³−1 begins the series anew.
func (r *rank) lose(messages int64, start pcommon.Timestamp) {
	if total := r.lost.Total + messages; total >= 0 {
		r.lost.Total = total
	} else {
		r.lost = fpm.Lost{Total: messages, Start: start}
	}
}

// maxRanks bounds how many ranks are remembered at least; twice as many at
// most.
const maxRanks = 16384

// ranks remembers the ranks that were heard last. One that is forgotten begins
// its series anew when it is heard again.
type ranks struct {
	limit           int
	latest, earlier map[rankKey]*rank
	// last is the rank of the row before, as it mostly is the next one's.
	last *rank
}

func newRanks() *ranks { return &ranks{limit: maxRanks, latest: map[rankKey]*rank{}} }

func (rs *ranks) of(key rankKey) *rank {
	if rs.last != nil && rs.last.key == key {
		return rs.last
	}
	r := rs.latest[key]
	if r == nil {
		if len(rs.latest) >= rs.limit {
			rs.earlier, rs.latest = rs.latest, make(map[rankKey]*rank)
		}
		if r = rs.earlier[key]; r == nil {
			r = &rank{key: key}
		}
		rs.latest[key] = r
	}
	rs.last = r
	return r
}
