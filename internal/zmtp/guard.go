// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-zeromq/zmq4"
)

// The read buffer starts small and grows fourfold whenever one read has filled it, so that a thousand quiet connections
// cost 1 MiB and a thousand busy ones 64 MiB.
const (
	initialBufferBytes = 1 << 10
	maxBufferBytes     = 64 << 10
)

// stage is what the peer has to send next.
type stage int

const (
	stageGreeting stage = iota
	stageReady
	stageTraffic
)

// guard reads a connection. It is the net.Conn of go-zeromq's handshake, which gets only bytes that were checked; the
// messages behind it the guard takes apart itself: go-zeromq takes commands and messages for one another when libzmq puts
// a heartbeat between the frames of a message, its PONG leaves the context out, and reading a frame in pieces costs twice
// what it does here. A guard is used by one goroutine; only Close may be called by others.
//
// Invariant (TestGuardRefusesBeforeAllocation): a body is made room for only after the framer has accepted its header.
type guard struct {
	// What a message needs that the poller hands over comes first, close together: with a thousand connections each line of
	// memory is a miss.
	handler messageHandler // of serve
	framer  framer
	live    liveness

	net.Conn
	socketType zmq4.SocketType // ours
	stage      stage

	buf    []byte // buf[r:w] has come and is not passed on yet
	r, w   int
	filled bool // the last read filled buf: let it grow

	head []byte // checked bytes of the handshake to pass on

	frames frameList // of a usual message
	kept   frameList // the memory of these

	at  time.Time // when the last bytes left the socket
	err error     // the first error; every later Read returns it
}

func newGuard(nc net.Conn, cfg ConnConfig) *guard {
	return &guard{
		Conn:       nc,
		socketType: cfg.SocketType,
		framer:     framer{limits: cfg.Limits},
		live:       liveness{staleAfter: cfg.StaleAfter},
		buf:        make([]byte, initialBufferBytes),
	}
}

// Read passes checked bytes of the handshake on.
func (g *guard) Read(p []byte) (int, error) {
	for g.err == nil && len(g.head) == 0 {
		g.err = g.advance()
	}
	if g.err != nil {
		return 0, g.err
	}
	n := copy(p, g.head)
	g.head = g.head[n:]
	return n, nil
}

// Write serves the handshake, whose deadline is set on the connection as a whole.
func (g *guard) Write(p []byte) (int, error) {
	n, err := g.Conn.Write(p)
	if err != nil && g.err == nil {
		g.err = err
	}
	return n, err
}

// advance gets the next piece of the peer's handshake checked and ready in head.
func (g *guard) advance() error {
	switch g.stage {
	case stageGreeting:
		return g.advanceGreeting()
	case stageReady:
		return g.advanceReady()
	default:
		return &ProtocolError{Detail: "the handshake is over"} // go-zeromq never asks for more
	}
}

func (g *guard) advanceGreeting() error {
	for g.w-g.r < greetingLen {
		if err := g.fill(); err != nil {
			return err
		}
		if err := checkGreeting(g.buf[g.r:min(g.w, g.r+greetingLen)]); err != nil {
			return err
		}
	}
	g.head = g.take(greetingLen)
	g.stage = stageReady
	return nil
}

func (g *guard) advanceReady() error {
	h, err := g.nextHeader()
	if err != nil {
		// The headers of a handshake are no message's: what is wrong with them is wrong with READY.
		if oversize, ok := errors.AsType[*OversizeError](err); ok {
			return &HandshakeError{Reason: ReasonReady, Detail: "READY too large", Err: oversize}
		}
		if protocol, ok := errors.AsType[*ProtocolError](err); ok {
			return readyErrorf("%s", protocol.Detail)
		}
		return err
	}
	if !h.command {
		return readyErrorf("a message of the peer came before its READY")
	}
	body := make([]byte, h.size)
	if err := g.readFull(body); err != nil {
		return err
	}
	peer, err := checkReady(body, g.socketType)
	if err != nil {
		return err
	}
	g.head = readyFrame(peer)
	g.stage = stageTraffic
	return nil
}

// nextHeader waits for a whole header and has it checked. It is left in the buffer, except that of READY.
func (g *guard) nextHeader() (frameHeader, error) {
	for {
		b := g.buf[g.r:g.w]
		if len(b) > 0 && b[0]&flagCommand == 0 && g.stage == stageTraffic {
			g.live.begin(g.at)
		}
		h, ok, err := g.framer.next(b)
		if err != nil {
			return h, err
		}
		if ok {
			if g.stage == stageReady {
				g.take(h.headerLen)
			}
			return h, nil
		}
		if err := g.fill(); err != nil {
			if len(b) > 0 || g.framer.more {
				err = cutShort(err)
			}
			return h, err
		}
	}
}

// progress describes how far the handshake got.
func (g *guard) progress() string {
	switch g.stage {
	case stageGreeting:
		return fmt.Sprintf("%d of %d bytes of the peer's greeting came", g.w-g.r, greetingLen)
	case stageReady:
		return "the peer's greeting came, its READY did not"
	default:
		return "the peer's READY came"
	}
}
