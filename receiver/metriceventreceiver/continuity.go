// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import "time"

const (
	// gapSettles is how long a gap may still close: when a producer connects
	// anew, the end of its old connection may be read after the start of the new
	// one.
	gapSettles = 2 * time.Second
	// maxGaps is how many gaps may be open at once; beyond it the oldest is lost
	// at once.
	maxGaps = 64
)

// continuity follows the two numbers by which one producer lets itself be
// checked. It has no clock and no lock.
//
// Invariant (TestContinuityAddsUp): once no gap is open, the events since the
// base are those in messages plus lost; neither lost nor dropped ever falls.
type continuity struct {
	heard bool
	// next is the seq that follows on the latest message.
	next int64
	gaps []gap
	// settled is the number of events in gaps that did not close.
	settled int64
	// base and total are dropped_total at first and now.
	base, total int64
}

// gap is a range of events, from first up to and without end, of which missing
// did not come.
type gap struct {
	first, end, missing int64
	since               time.Time
}

// message takes note of a message with its seq and number of events. It is
// false when the message is older than the latest, and in no gap: such a
// producer does not count as agreed.
func (c *continuity) message(seq, events, droppedTotal int64, now time.Time) bool {
	c.settle(now)
	if !c.heard {
		c.heard, c.next = true, seq
		if seq > 0 {
			c.base = droppedTotal
		}
	}
	c.total = max(c.total, droppedTotal)
	if seq < c.next {
		return c.fill(seq, events)
	}
	if seq > c.next {
		if len(c.gaps) == maxGaps {
			c.settled += c.gaps[0].missing
			c.gaps = c.gaps[1:]
		}
		c.gaps = append(c.gaps, gap{first: c.next, end: seq, missing: seq - c.next, since: now})
	}
	c.next = seq + events
	return true
}

// fill closes a gap as far as a late message does.
func (c *continuity) fill(seq, events int64) bool {
	for i := range c.gaps {
		g := &c.gaps[i]
		if seq >= g.first && seq < g.end {
			g.missing -= min(events, g.missing)
			return true
		}
	}
	return false
}

// settle gives up gaps that had their time to close.
func (c *continuity) settle(now time.Time) {
	for len(c.gaps) > 0 && now.Sub(c.gaps[0].since) >= gapSettles {
		c.settled += c.gaps[0].missing
		c.gaps = c.gaps[1:]
	}
}

// lost is the number of events that were handed to the socket and did not come.
func (c *continuity) lost(now time.Time) int64 {
	c.settle(now)
	return c.settled
}

// dropped is the number of events that did not come to the producer's socket:
// since its start when it was heard from the start, else since it was first
// heard.
func (c *continuity) dropped() int64 { return c.total - c.base }
