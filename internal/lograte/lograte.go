// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package lograte decides which log lines about bad input and drops are shown:
// at most one for a source and reason in ten seconds. The shown line names the
// latest offender; the number of those not shown since goes with it.
package lograte

import (
	"sync"
	"time"
)

// Interval is the least time between two lines of one source and reason.
const Interval = 10 * time.Second

// maxKeys bounds what a limiter remembers. Beyond it all further keys share one
// slot: they may be shown less often, never more.
const maxKeys = 4096

// Key names what a line is about.
type Key struct {
	Source string
	Reason string
}

// Limiter is safe for concurrent use. Its zero value is ready.
type Limiter struct {
	mu    sync.Mutex
	lines map[Key]*line
}

type line struct {
	shown  time.Time
	hidden int
}

// Allow reports whether a line may be shown now, and if so how many of its kind
// were not shown since the one before.
func (l *Limiter) Allow(key Key, now time.Time) (show bool, hidden int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines == nil {
		l.lines = make(map[Key]*line)
	}
	state := l.lines[key]
	if state == nil {
		if len(l.lines) >= maxKeys {
			key = Key{}
			state = l.lines[key]
		}
		if state == nil {
			l.lines[key] = &line{shown: now}
			return true, 0
		}
	}
	if now.Sub(state.shown) < Interval {
		state.hidden++
		return false, 0
	}
	hidden = state.hidden
	*state = line{shown: now}
	return true, hidden
}
