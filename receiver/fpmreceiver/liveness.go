// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import "time"

// state is one of the four cases an operator must be able to tell apart.
type state int

const (
	// stateConnecting: no connection.
	stateConnecting state = iota
	// stateSilent: connected, and nothing heard yet: the engine was not opted in,
	// or benchmarks itself.
	stateSilent
	// stateLive: heard within stale_after.
	stateLive
	// stateStale: heard, but not within stale_after.
	stateStale
)

var stateNames = [...]string{"connecting", "silent", "live", "stale"}

func (s state) String() string { return stateNames[s] }

// redialGrace is how long a silent or stale endpoint keeps its state without a
// connection: a redial that succeeds meanwhile is no change.
const redialGrace = time.Second

// liveness is the state machine of one endpoint. Times come in as arguments
// and are compared on the monotonic clock.
type liveness struct {
	// heard is when the latest message came; zero before the first one of this
	// connection, or of a state that was carried over.
	heard     time.Time
	connected bool
	// parted is when the connection ended, before is the state it had then.
	parted time.Time
	before state

	staleAfter time.Duration
}

func (l *liveness) at(now time.Time) state {
	switch {
	case !l.connected:
		if carried(l.before) && now.Sub(l.parted) <= redialGrace {
			return l.before
		}
		return stateConnecting
	case l.heard.IsZero():
		return stateSilent
	case now.Sub(l.heard) >= l.staleAfter:
		return stateStale
	default:
		return stateLive
	}
}

func carried(s state) bool { return s == stateSilent || s == stateStale }

func (l *liveness) connect(now time.Time) {
	if l.connected {
		return
	}
	// A stale endpoint whose redial came in time stays stale until a message
	// comes; any other begins anew as silent.
	if l.at(now) != stateStale {
		l.heard = time.Time{}
	}
	l.connected = true
}

func (l *liveness) disconnect(now time.Time) {
	if !l.connected {
		return
	}
	l.before = l.at(now)
	l.parted = now
	l.connected = false
}

func (l *liveness) message(now time.Time) { l.heard = now }
