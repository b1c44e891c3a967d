// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import "time"

// messageHandler takes messages one after the other.
type messageHandler interface {
	// message takes a message, as Recv has it; the frames are its own until it returns. It is false when no more are to come,
	// and this one was not taken either.
	message(frames [][]byte, at time.Time) bool
}

// serve hands all messages to h until it wants no more, which is no error, or until an error, which is one of Recv. With a
// Poller h is called where that runs, while serve waits.
func (c *Conn) serve(h messageHandler) error {
	g := c.guard
	g.handler = h
	polled, _ := g.Conn.(*polledConn)
	for {
		if polled != nil && g.betweenMessages() {
			polled.lend(g)
		}
		frames, at, err := c.Recv()
		if err != nil {
			return err
		}
		if !h.message(frames, at) {
			return nil
		}
	}
}

// betweenMessages tells whether nothing of the next message has come.
func (g *guard) betweenMessages() bool { return g.r == g.w && !g.framer.more }

// messagesAtOnce is how many messages of one connection are handled before others have their turn. A read may bring tens of
// thousands of empty ones.
const messagesAtOnce = 256

// handle implements lender for a guard between messages. It stops at a message that is not whole or has more frames than
// usual, at a command, at what is wrong, and after messagesAtOnce: message deals with the rest.
//
// Invariant (TestLentMessagesAreThoseOfRecv): all that comes of b is the same as if Recv had got all of it.
func (g *guard) handle(b []byte, at time.Time, list *frameList) (taken int) {
	g.live.heard()
	for n := 0; taken < len(b) && n < messagesAtOnce; n++ {
		frames, size, after := g.usual(b[taken:], list)
		if size == 0 || !g.handler.message(frames, at) {
			break
		}
		g.framer = after
		g.live.end(at)
		taken += size
	}
	return taken
}

// usual takes the message at the start of b apart, without copying it, and returns its length and what the framer is after
// it. The length is 0 when it is not whole, or not usual.
func (g *guard) usual(b []byte, list *frameList) (frames [][]byte, size int, after framer) {
	after = g.framer
	frames = list[:0]
	for len(frames) < usualFrames {
		h, ok, err := after.next(b[size:])
		if err != nil || !ok || h.command || h.size > int64(len(b)-size-h.headerLen) {
			break
		}
		body := b[size+h.headerLen:][:h.size]
		frames = append(frames, body[:len(body):len(body)])
		size += h.headerLen + len(body)
		if !h.more {
			return frames, size, after
		}
	}
	return nil, 0, after
}
