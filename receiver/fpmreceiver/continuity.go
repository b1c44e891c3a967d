// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

// continuity follows the counter of one rank, as told by one endpoint: what a
// counter says of messages before it. It has no clock and no lock.
type continuity struct {
	last  int64
	heard bool
	// fresh: nothing was heard on this connection yet. A publisher repeats
	// nothing on a new connection, so a counter that does not go on has started
	// over.
	fresh bool
	// abandoned is the counter from which the latest one on this connection
	// fell back; -1 when none did.
	abandoned int64
	// interleaved: the counter jumped back up to where it fell from. Two
	// publishers speak through one endpoint, and counters mean nothing until the
	// next connection.
	interleaved bool
}

// step is what a counter means.
type step struct {
	// duplicate: the message was heard before and goes nowhere.
	duplicate bool
	// restart: the publisher counts anew.
	restart bool
	// rebase: the counter is lower than the one before, by a restart or by
	// interleaved publishers; a cumulative series must start anew.
	rebase bool
	// lost is how many messages are missing before this one.
	lost int64
	// interleaved is true once a connection, when two publishers are recognised.
	interleaved bool
}

func newContinuity() continuity { return continuity{abandoned: -1} }

// connected tells that a new connection begins. Counters go on, but a second
// publisher on the old connection is forgotten.
func (c *continuity) connected() {
	c.fresh = true
	c.abandoned = -1
	c.interleaved = false
}

// next judges the counter of the next message.
func (c *continuity) next(counter int64) step {
	last, heard, fresh := c.last, c.heard, c.fresh
	c.last, c.heard, c.fresh = counter, true, false
	switch {
	case !heard:
		return step{}
	case fresh && counter <= last:
		return step{restart: true, rebase: true}
	case counter == last:
		return step{duplicate: true}
	case c.interleaved:
		return step{rebase: counter < last}
	case counter < last:
		c.abandoned = last
		return step{restart: true, rebase: true}
	case c.backUp(counter, last):
		c.interleaved = true
		return step{interleaved: true}
	case c.abandoned >= 0 && counter > c.abandoned:
		c.abandoned = -1 // the new publisher has passed the old one's mark
	}
	return step{lost: counter - last - 1}
}

// backUp reports a jump back over the mark of the publisher before: the counter
// lies nearer to that mark than to the last counter.
func (c *continuity) backUp(counter, last int64) bool {
	return c.abandoned >= 0 && counter > c.abandoned && counter > last+1 &&
		counter-c.abandoned <= (counter-last)/2
}
