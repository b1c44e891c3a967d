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
// cost 4 MiB and a thousand busy ones 64 MiB.
const (
	initialBufferBytes = 4 << 10
	maxBufferBytes     = 64 << 10
)

// stage is what the peer has to send next.
type stage int

const (
	stageGreeting stage = iota
	stageReady
	stageTraffic
)

// guard is the net.Conn that go-zeromq reads from. It passes on only bytes that it has checked, and no command but READY:
// go-zeromq takes commands and messages for one another when libzmq puts a heartbeat between the frames of a message, and
// its PONG leaves the context out. A guard is used by one goroutine; only Close may be called by others.
//
// Invariant (TestGuardRefusesBeforeAllocation): a header reaches go-zeromq only after the framer has accepted it.
type guard struct {
	net.Conn
	socketType zmq4.SocketType // ours
	stage      stage
	framer     framer
	live       liveness

	buf    []byte // buf[r:w] has come and is not passed on yet
	r, w   int
	filled bool // the last read filled buf: let it grow

	head  []byte      // checked bytes to pass on before any other
	frame frameHeader // the frame whose header was passed on last
	body  int64       // bytes of its body not passed on yet

	at      time.Time // when the last bytes left the socket
	before  time.Time // when the bytes before those did
	emptied bool      // the last read got less than it could take, after the handshake

	gatherTime time.Duration
	err        error // the first error; every later Read returns it
}

func newGuard(nc net.Conn, cfg ConnConfig) *guard {
	return &guard{
		Conn:       nc,
		socketType: cfg.SocketType,
		framer:     framer{limits: cfg.Limits},
		live:       liveness{staleAfter: cfg.StaleAfter},
		gatherTime: cfg.Gather,
		buf:        make([]byte, initialBufferBytes),
	}
}

// Read passes checked bytes on; never bytes of two frames at once.
func (g *guard) Read(p []byte) (int, error) {
	if g.err != nil {
		return 0, g.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	n, err := g.read(p)
	if err != nil {
		g.err = err
	}
	return n, err
}

// Write serves the handshake, whose deadline is set on the connection as a whole.
func (g *guard) Write(p []byte) (int, error) {
	n, err := g.Conn.Write(p)
	if err != nil && g.err == nil {
		g.err = err
	}
	return n, err
}

func (g *guard) read(p []byte) (int, error) {
	for len(g.head) == 0 && g.body == 0 {
		if err := g.advance(); err != nil {
			return 0, err
		}
	}
	if len(g.head) > 0 {
		n := copy(p, g.head)
		g.head = g.head[n:]
		return n, nil
	}
	if int64(len(p)) > g.body {
		p = p[:g.body]
	}
	n, err := g.readBody(p)
	g.body -= int64(n)
	return n, err
}

// readBody reads bytes of the current frame, past the buffer when it is empty and would not help.
func (g *guard) readBody(p []byte) (int, error) {
	if g.r == g.w {
		if len(p) >= len(g.buf) {
			n, err := g.readSocket(p)
			return n, cutShort(err)
		}
		if err := g.fill(); err != nil {
			return 0, cutShort(err)
		}
	}
	n := copy(p, g.buf[g.r:g.w])
	g.r += n
	return n, nil
}

// advance gets the next piece of the peer's bytes checked and ready in head.
func (g *guard) advance() error {
	switch g.stage {
	case stageGreeting:
		return g.advanceGreeting()
	case stageReady:
		return g.advanceReady()
	default:
		return g.advanceTraffic()
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

func (g *guard) advanceTraffic() error {
	g.endFrame()
	h, err := g.nextHeader()
	if err != nil {
		return err
	}
	if h.command {
		g.take(h.headerLen)
		return g.command(h)
	}
	g.frame = h
	g.body = h.size
	g.head = g.take(h.headerLen)
	return nil
}

// endFrame tells liveness when the frame passed on last was the end of a message.
func (g *guard) endFrame() {
	if g.frame.headerLen > 0 && !g.frame.more {
		g.live.end(g.at)
	}
	g.frame = frameHeader{}
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

// command reads a command after the handshake to its end and answers a PING. Any other has served by coming.
func (g *guard) command(h frameHeader) error {
	var kept [keptCommandBytes]byte
	body := kept[:min(h.size, int64(len(kept)))]
	if err := g.readFull(body); err != nil {
		return cutShort(err)
	}
	for rest := h.size - int64(len(body)); rest > 0; {
		if g.r == g.w {
			if err := g.fill(); err != nil {
				return cutShort(err)
			}
		}
		n := min(rest, int64(g.w-g.r))
		g.r += int(n)
		rest -= n
	}
	if pong, ok := pongBody(body); ok {
		return g.writeFrame(flagCommand, pong)
	}
	return nil
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
