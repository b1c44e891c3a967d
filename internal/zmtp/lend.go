// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"errors"
	"syscall"
	"time"
)

// A reader that waits for its next message lends the reading to the poller. What comes is then read into memory that all
// connections share and handled where the poller runs, and the reader's goroutine sleeps on: waking a thousand readers that
// find one message each costs more than their reads do, since stacks and buffers of theirs have left the caches.
//
// Invariant (TestOneReadsAtATime): turn is held by who reads, the reader but for the time in lend, and the poller from borrow
// to settle. All that is the reader's alone is the poller's meanwhile.

// lender is a reader, as the poller sees it.
type lender interface {
	// handle takes bytes that came at a time, whole messages at their start, and returns how many it took. It keeps neither
	// b nor the list, which is for frames. The rest the reader gets itself, as if it came then.
	handle(b []byte, at time.Time, list *frameList) (taken int)
}

// lend waits until there is something that only the reader does: bytes that it does not handle as a lender, the end, an error,
// a deadline that has passed. The next Read tells which.
func (c *polledConn) lend(l lender) {
	if !c.drained {
		return
	}
	c.lender = l
	c.turn.Unlock()
	<-c.ready
	c.turn.Lock()
	c.drained = false // the signal may have been for bytes that came since
}

// loan is what was read for a reader.
type loan struct {
	conn *polledConn
	b    []byte
	at   time.Time
	// full: there may be more.
	full bool
}

// borrow reads for the reader, once. The loan has no bytes when there are none. It is false when the reader has to be woken,
// since it did not lend the reading or there is something that only it does.
func (c *polledConn) borrow(room []byte) (l loan, ok bool) {
	if !c.turn.TryLock() {
		return l, false // the reader is at work, or about to look for more
	}
	if len(c.left) == 0 {
		n, err := c.receive(room)
		if n > 0 {
			return loan{conn: c, b: room[:n], at: time.Now(), full: n == len(room) || c.ended.Load()}, true
		}
		ok = errors.Is(err, syscall.EAGAIN) && !c.ended.Load()
	}
	c.turn.Unlock()
	return l, ok
}

// settle has what was read handled, and is false when the reader has to be woken for more.
func (l *loan) settle(list *frameList) bool {
	c := l.conn
	defer c.turn.Unlock()
	taken := c.lender.handle(l.b, l.at, list)
	c.left = append(c.left, l.b[taken:]...)
	return taken == len(l.b) && !l.full
}
