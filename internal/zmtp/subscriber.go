// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"context"
	"net"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/go-zeromq/zmq4"
)

// SubscriberConfig says whom to subscribe to. Every field must be set; a zero is not a default.
type SubscriberConfig struct {
	Network        string        // "tcp" or "unix"
	Address        string        // "host:port" or a path
	DialTimeout    time.Duration // for connecting and handshake together
	InitialBackoff time.Duration // about how long to wait before the second attempt
	MaxBackoff     time.Duration // the longest wait
	StaleAfter     time.Duration // see ConnConfig
	Limits         Limits
	Poller         *Poller // see ConnConfig; here nil is none
}

// Handler is told what happens to a subscription. Calls come one after the other, from the goroutine in Subscriber.Run or, for a
// Message, from that of the Poller, of whose connections none is read while a call lasts: they must not block. After Run's
// context is done no call begins, and none lasts when Run has returned.
type Handler interface {
	// Connected says that the handshake succeeded and the subscription was sent.
	Connected()
	// Disconnected says why an attempt or a connection ended: once for each attempt, also those that never came to Connected.
	// The error is a *DialError (no connection), a *HandshakeError (connected to something that is no publisher), or what
	// Conn.Recv returns. Another attempt follows.
	Disconnected(err error)
	// Message hands over a message, as Conn.Recv has it. The frames are the handler's until it returns.
	Message(frames [][]byte, at time.Time)
}

// Subscriber keeps a subscription to all topics of one publisher alive.
type Subscriber struct {
	cfg     SubscriberConfig
	handler Handler
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

// NewSubscriber returns a Subscriber that does nothing yet.
func NewSubscriber(cfg SubscriberConfig, handler Handler) *Subscriber {
	dialer := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true}}
	return &Subscriber{cfg: cfg, handler: handler, dial: dialer.DialContext}
}

// Run connects, reads, and connects again after a wait, until ctx is done; then it returns at once, also out of a dial, a
// handshake, a read or a wait. The waits grow from InitialBackoff to MaxBackoff, with jitter, and start over after a
// message. Run must not be called twice at the same time.
func (s *Subscriber) Run(ctx context.Context) {
	waits := newBackOff(s.cfg.InitialBackoff, s.cfg.MaxBackoff)
	for ctx.Err() == nil {
		err := s.connection(ctx, waits.Reset)
		if ctx.Err() != nil {
			return
		}
		s.handler.Disconnected(err)
		sleep(ctx, waits.NextBackOff())
	}
}

// connection makes one attempt and returns why it ended; heard is called when a message has come.
func (s *Subscriber) connection(ctx context.Context, heard func()) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	closeConn := func() { _ = conn.Close() }
	defer closeConn()
	defer context.AfterFunc(ctx, closeConn)() // unblocks a read
	return s.receive(ctx, conn, heard)
}

// connect dials, shakes hands and subscribes.
func (s *Subscriber) connect(ctx context.Context) (*Conn, error) {
	deadline := time.Now().Add(s.cfg.DialTimeout)
	dialCtx, cancel := context.WithDeadline(ctx, deadline)
	nc, err := s.dial(dialCtx, s.cfg.Network, s.cfg.Address)
	cancel()
	if err != nil {
		return nil, &DialError{Err: err}
	}
	defer context.AfterFunc(ctx, func() { nc.Close() })()
	conn, err := Open(nc, ConnConfig{SocketType: zmq4.Sub, StaleAfter: s.cfg.StaleAfter, Limits: s.cfg.Limits, Poller: s.cfg.Poller}, deadline)
	if err != nil {
		return nil, err
	}
	if err := conn.SubscribeAll(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// receive hands messages over until an error.
func (s *Subscriber) receive(ctx context.Context, conn *Conn, heard func()) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.handler.Connected()
	if err := conn.serve(&subscription{ctx: ctx, handler: s.handler, heard: heard}); err != nil {
		return err
	}
	return ctx.Err()
}

// subscription is a connection's messageHandler.
type subscription struct {
	ctx     context.Context
	handler Handler
	heard   func() // nil once it was called
}

func (s *subscription) message(frames [][]byte, at time.Time) bool {
	if s.ctx.Err() != nil {
		return false
	}
	if s.heard != nil {
		s.heard()
		s.heard = nil
	}
	s.handler.Message(frames, at)
	return true
}

// newBackOff returns waits that double from about initial; jitter spreads each by half to both sides, and the longest still is
// not over limit.
func newBackOff(initial, limit time.Duration) *backoff.ExponentialBackOff {
	const jitter = 0.5
	longest := time.Duration(float64(limit) / (1 + jitter))
	return &backoff.ExponentialBackOff{
		InitialInterval:     min(initial, longest),
		RandomizationFactor: jitter,
		Multiplier:          2,
		MaxInterval:         longest,
	}
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
