// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import "time"

// lastLook is how long a peer that is about to be given up is read once more. Bytes may lie in the kernel unseen when this
// process itself was stopped, or its handler slow; they count as come.
const lastLook = 50 * time.Millisecond

// verdict is what liveness has to say when the socket's read deadline has passed.
type verdict int

const (
	verdictWait    verdict = iota // nothing is due: read on until the new deadline
	verdictPing                   // silent for staleAfter: send a PING, read on until the new deadline
	verdictSilent                 // the PING was not answered by any byte: give up
	verdictStalled                // a message began and was not whole within staleAfter: give up
)

// liveness decides when a silent peer is asked for a sign of life and when a peer is given up. Its owner tells it what
// came, sets the socket's read deadline to what start and expire return, and asks expire only once that has passed.
//
// Invariant (TestDeadlineIsNeverLate): whatever comes in between, the deadline last returned is at most lastLook later than
// the moment at which something is due. So a message needs no deadline call of its own.
type liveness struct {
	lastMessage  time.Time // when the handshake ended or the last whole message came
	messageStart time.Time // when the first byte of the message under way came; zero between messages
	awaiting     bool      // no byte has come since lastPing
	looking      bool      // in the last look

	lastPing   time.Time // zero before the first
	staleAfter time.Duration
}

// start begins the life of a connection at the end of its handshake and returns the first deadline.
func (l *liveness) start(now time.Time) time.Time {
	l.lastMessage = now
	return now.Add(l.staleAfter)
}

// started tells whether start was called. Before, the deadline of the handshake is the only one.
func (l *liveness) started() bool { return !l.lastMessage.IsZero() }

// heard takes note that any byte came.
func (l *liveness) heard() { l.awaiting = false }

// begin takes note that the first byte of a message came at that time; a message under way goes on.
func (l *liveness) begin(at time.Time) {
	if l.messageStart.IsZero() {
		l.messageStart = at
		l.looking = false
	}
}

// end takes note that the last byte of a message came at that time.
func (l *liveness) end(at time.Time) {
	l.lastMessage = at
	l.messageStart = time.Time{}
	l.looking = false
}

// expire says what to do at a deadline, and the next one (zero when the peer is given up).
func (l *liveness) expire(now time.Time) (verdict, time.Time) {
	if !l.messageStart.IsZero() {
		return l.lastChance(now, l.messageStart.Add(l.staleAfter), verdictStalled)
	}
	since := l.lastMessage
	if l.lastPing.After(since) {
		since = l.lastPing
	}
	due := since.Add(l.staleAfter)
	if l.awaiting {
		return l.lastChance(now, due, verdictSilent)
	}
	if now.Before(due) {
		return verdictWait, due
	}
	l.lastPing = now
	l.awaiting = true
	l.looking = false
	return verdictPing, now.Add(l.staleAfter)
}

// lastChance gives a peer up only when the last look after due has brought nothing that helps.
func (l *liveness) lastChance(now, due time.Time, giveUp verdict) (verdict, time.Time) {
	switch {
	case now.Before(due):
		return verdictWait, due
	case !l.looking:
		l.looking = true
		return verdictWait, now.Add(min(lastLook, l.staleAfter))
	default:
		return giveUp, time.Time{}
	}
}
