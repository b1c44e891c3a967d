// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/go-zeromq/zmq4"
	"go.uber.org/zap"

	"github.com/otelcol-fpm/otelcol-fpm/internal/zmtp"
)

const (
	// handshakeTimeout is how long a peer may take to say what it is.
	handshakeTimeout = 3 * time.Second
	// staleAfter is how long a producer may be silent before it is asked for a
	// sign of life, how long it may then take for one, and how long a message may
	// take from its first byte to its last.
	staleAfter = 30 * time.Second
	// maxFrames is more than any message has; one with more is refused by the
	// connection.
	maxFrames = 16
)

// connections serves connections of producers.
type connections struct {
	intake *intake
	limits zmtp.Limits
	ledger ledger
	log    *log
	status *status
}

// serve reads messages until the connection ends.
func (c *connections) serve(nc net.Conn) {
	conn, err := zmtp.Open(nc, zmtp.ConnConfig{
		SocketType: zmq4.Pull, StaleAfter: staleAfter, Limits: c.limits,
	}, time.Now().Add(handshakeTimeout))
	if err != nil {
		c.refused(nc, err)
		return
	}
	c.status.connected()
	defer c.status.disconnected()
	var d decoder
	for {
		frames, at, err := conn.Recv()
		if err != nil {
			c.ended(nc, err)
			return
		}
		c.intake.message(&d, frames, at)
	}
}

// refused takes note of a peer with which there was no handshake.
func (c *connections) refused(nc net.Conn, err error) {
	handshake, ok := errors.AsType[*zmtp.HandshakeError](err)
	if !ok || handshake.Reason == zmtp.ReasonClosed {
		// A probe that looks whether the port is open, or our own end.
		c.log.logger.Debug("A connection ended before its handshake", zap.Stringer("peer", nc.RemoteAddr()), zap.Error(err))
		return
	}
	c.ledger.refuse(handshake.Reason)
	c.log.warn(c.intake.endpoint, string(handshake.Reason), "Connection refused: the peer does not push metric events",
		zap.String("endpoint", c.intake.endpoint), zap.Stringer("peer", nc.RemoteAddr()), zap.Error(err))
}

// ended takes note of why a connection ended.
func (c *connections) ended(nc net.Conn, err error) {
	_, oversize := errors.AsType[*zmtp.OversizeError](err)
	_, protocol := errors.AsType[*zmtp.ProtocolError](err)
	timeout, timedOut := errors.AsType[*zmtp.TimeoutError](err)
	switch {
	case oversize:
		c.close(nc, rejectedOversize, "Connection closed: the peer announced more than is allowed; raise max_message_bytes if it is an engine", err)
	case protocol, errors.Is(err, io.ErrUnexpectedEOF), timedOut && timeout.Wait == zmtp.WaitMessage:
		c.close(nc, rejectedProtocol, "Connection closed: what the peer sent is no whole message", err)
	default:
		// Engines come and go.
		c.log.logger.Debug("A connection ended", zap.Stringer("peer", nc.RemoteAddr()), zap.Error(err))
	}
}

func (c *connections) close(nc net.Conn, r reason, text string, err error) {
	c.ledger.reject(r, 1)
	c.log.warn(c.intake.endpoint, r.String(), text,
		zap.String("endpoint", c.intake.endpoint), zap.Stringer("peer", nc.RemoteAddr()), zap.Error(err))
}
