// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

// continuity follows the counter of one rank, as told by one endpoint: what a
// counter says of messages before it. It has no clock and no lock.
type continuity struct {
	last  int64
	heard bool
	// abandoned is the last counter of the publisher before the latest restart
	// on this connection; -1 when there was none.
	abandoned int64
	// interleaved is set when the counter jumped back up to where it was before
	// a restart: two publishers speak through one endpoint. Then counters mean
	// nothing until the next connection, or until one publisher is left.
	interleaved bool
	// steady is how many counters in a row followed the one before.
	steady int
}

// steadyAgain is how many counters in a row end the state interleaved: two
// publishers at work do not leave each other so much room.
const steadyAgain = 100

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
	// interleaved is true once, when two publishers are recognised.
	interleaved bool
}

func newContinuity() continuity { return continuity{abandoned: -1} }

// connected tells that a new connection begins. Counters go on, but a jump back
// up can no longer come from a second publisher on the old connection.
func (c *continuity) connected() {
	c.abandoned = -1
	c.interleaved = false
}

// next judges the counter of the next message.
func (c *continuity) next(counter int64) step {
	last, heard := c.last, c.heard
	if heard && counter == last {
		return step{duplicate: true}
	}
	c.last, c.heard = counter, true
	if counter == last+1 {
		c.steady++
	} else {
		c.steady = 0
	}
	switch {
	case !heard:
		return step{}
	case c.interleaved && c.steady < steadyAgain:
		return step{rebase: counter < last}
	case c.interleaved:
		c.connected()
		return step{}
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
