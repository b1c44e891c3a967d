// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"
)

// ConnConfig says what a connection is for and when it is given up.
type ConnConfig struct {
	// SocketType is ours: zmq4.Sub towards a publisher, zmq4.Pull towards a pusher. Connecting or accepting makes no
	// difference to it.
	SocketType zmq4.SocketType
	// StaleAfter is how long a peer may be silent before it is sent a PING, how long it may then take to send any byte, and
	// how long a message may take from its first byte to its last. Positive.
	StaleAfter time.Duration
	Limits     Limits
	// Poller serves this connection together with others, which saves much of the cost of receiving; messages may be read some
	// milliseconds later for it. nil: whenever bytes come.
	Poller *Poller
}

// Conn is a ZMTP connection after its handshake. One goroutine uses it; Close may be called from any.
type Conn struct {
	guard *guard
}

// Open shakes hands with the peer at the other end of nc, connected or accepted, until deadline. It owns nc: closed with the
// Conn, and at once when Open fails. To give up earlier close nc. The error is a *HandshakeError, or what closing nc left.
func Open(nc net.Conn, cfg ConnConfig, deadline time.Time) (*Conn, error) {
	c, err := open(nc, cfg, deadline)
	if err != nil {
		nc.Close()
		return nil, err
	}
	return c, nil
}

func open(nc net.Conn, cfg ConnConfig, deadline time.Time) (*Conn, error) {
	if err := nc.SetDeadline(deadline); err != nil {
		return nil, err
	}
	g := newGuard(nc, cfg)
	if err := handshake(g); err != nil {
		return nil, handshakeError(g, err)
	}
	if cfg.Poller != nil {
		g.Conn = cfg.Poller.attach(nc)
	}
	if err := g.Conn.SetReadDeadline(g.live.start(time.Now())); err != nil {
		g.Conn.Close()
		return nil, err
	}
	return &Conn{guard: g}, nil
}

// handshake runs go-zeromq's Open, which panics on properties it does not expect. The guard leaves it none, as far as known.
func handshake(g *guard) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &HandshakeError{Reason: ReasonInternal, Detail: fmt.Sprintf("panic: %v", p)}
		}
	}()
	_, err = zmq4.Open(g, null.Security(), g.socketType, nil, false, nil)
	return err
}

// handshakeError gives the error of a failed handshake its reason. The guard's own error comes before what go-zeromq made
// of it.
func handshakeError(g *guard, err error) error {
	if g.err == nil {
		if _, ok := errors.AsType[*HandshakeError](err); ok {
			return err
		}
		return &HandshakeError{Reason: ReasonInternal, Detail: "refused by the library", Err: err}
	}
	switch {
	case isHandshakeError(g.err):
		return g.err
	case errors.Is(g.err, os.ErrDeadlineExceeded):
		return &HandshakeError{Reason: ReasonTimeout, Detail: g.progress(), Err: g.err}
	default:
		return &HandshakeError{Reason: ReasonClosed, Detail: g.progress(), Err: g.err}
	}
}

func isHandshakeError(err error) bool {
	_, ok := errors.AsType[*HandshakeError](err)
	return ok
}

// SubscribeAll asks a publisher for every message, whatever its topic. The subscription is a message, as ZMTP 3.0 has it, not
// the command of 3.1.
func (c *Conn) SubscribeAll() error {
	if err := c.guard.writeFrame(0, "\x01"); err != nil {
		return fmt.Errorf("zmtp: cannot subscribe: %w", err)
	}
	return nil
}

// Recv waits for the next message, answering and sending heartbeats meanwhile. The frames are the caller's until the next
// Recv, which reuses their memory; at is the wall clock when the last bytes of the message left the socket (messages read
// together have it in common). After an error the Conn is of no more use. The error is an
// *OversizeError, *ProtocolError or *TimeoutError, io.EOF when the peer closed after a whole message, io.ErrUnexpectedEOF
// when within one, or an error of package net.
func (c *Conn) Recv() (frames [][]byte, at time.Time, err error) {
	g := c.guard
	if g.err == nil {
		frames, g.err = g.message()
	}
	if g.err != nil {
		return nil, time.Time{}, g.err
	}
	return frames, g.at, nil
}

// Close closes the connection; a Recv under way returns an error. Closing twice is harmless.
func (c *Conn) Close() error { return c.guard.Conn.Close() }
