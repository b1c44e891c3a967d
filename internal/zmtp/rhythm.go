// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import "time"

// skippedMoments is how many odd moments are left out once a look at one was worth nothing.
const skippedMoments = 16

// rhythm says when a Poller looks at its connections while messages come in quick succession: at moments that lie every
// apart, counted from 1970, so that all pollers of the process have them in common. Who sends faster than that is read at
// even moments only: each read costs the kernel an answer to the peer, and serves several messages then. Where one
// connection or none is left to read at odd moments, most of them are left out.
type rhythm struct {
	every  time.Duration
	moment int64     // of the last look
	came   time.Time // when a look last found anything
	skip   int       // odd moments to leave out
}

// look begins a look.
func (r *rhythm) look(now time.Time) { r.moment = now.UnixNano() / int64(r.every) }

// defers tells whether something that came to a connection can lie until the next moment. served is the moment at which it
// was last read.
func (r *rhythm) defers(served int64) bool { return r.odd(r.moment) && served == r.moment-1 }

// looked ends a look that began at now: so many connections are due, others deferred.
func (r *rhythm) looked(now time.Time, due, deferred int) {
	if due+deferred > 0 {
		r.came = now
	}
	if r.odd(r.moment) && due <= 1 {
		r.skip = skippedMoments
	}
}

// quick tells whether messages come in quick succession: one has come at most two moments before now.
func (r *rhythm) quick(now time.Time) bool { return now.Sub(r.came) <= 2*r.every }

// pause is how long it is from now until the next look.
func (r *rhythm) pause(now time.Time) time.Duration {
	next := r.every - time.Duration(now.UnixNano()%int64(r.every))
	if r.skip > 0 && r.odd(now.Add(next).UnixNano()/int64(r.every)) {
		r.skip--
		next += r.every
	}
	return next
}

func (*rhythm) odd(moment int64) bool { return moment%2 != 0 }
