// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package pub

import (
	"bufio"
	"net"
	"sync/atomic"
	"time"
)

// queueSize is libzmq's default high-water mark.
const queueSize = 1000

// subscriber is one connection. A message goes to it when it has subscribed to
// everything: the topic of FPM is empty, so no longer prefix matches it.
type subscriber struct {
	conn net.Conn
	// queue holds whole messages; they are shared between subscribers.
	queue chan []byte
	// control holds PONG frames, which go out between messages.
	control chan []byte
	// subscriptions counts those to the empty prefix: libzmq counts them too.
	subscriptions atomic.Int64
	// drain is closed when nothing will be queued any more, gone when the
	// connection has ended.
	drain, gone chan struct{}
}

func newSubscriber(conn net.Conn) *subscriber {
	return &subscriber{
		conn:    conn,
		queue:   make(chan []byte, queueSize),
		control: make(chan []byte, 16),
		drain:   make(chan struct{}),
		gone:    make(chan struct{}),
	}
}

// offer queues a message, or reports that the queue is full. It never waits.
func (s *subscriber) offer(message []byte) bool {
	select {
	case s.queue <- message:
		return true
	default:
		return false
	}
}

// read follows what the subscriber sends until the connection ends.
func (s *subscriber) read(r *bufio.Reader) error {
	defer close(s.gone)
	inside := false // the frames of a message after its first
	for {
		f, err := readFrame(r)
		if err != nil {
			return err
		}
		first := !inside
		inside = f.more
		switch {
		case f.command:
			s.onCommand(f.body)
		case first && len(f.body) == 1: // to a longer prefix: not ours to serve
			s.subscribe(f.body[0] == 1, f.body[0] == 0)
		}
	}
}

func (s *subscriber) onCommand(body []byte) {
	name, rest, ok := command(body)
	if !ok {
		return
	}
	switch name {
	case "PING": // a time to live of two bytes, then a context that PONG repeats
		pong := append([]byte("\x04PONG"), rest[min(2, len(rest)):]...)
		select {
		case s.control <- appendFrame(nil, flagCommand, pong):
		default: // the subscriber does not read; it will not miss this one
		}
	case "SUBSCRIBE", "CANCEL": // ZMTP 3.1
		if len(rest) == 0 {
			s.subscribe(name == "SUBSCRIBE", name == "CANCEL")
		}
	}
}

func (s *subscriber) subscribe(more, less bool) {
	switch {
	case more:
		s.subscriptions.Add(1)
	case less && s.subscriptions.Load() > 0:
		s.subscriptions.Add(-1)
	}
}

// write sends what is queued until the connection ends, or until the queue is
// empty once drain is closed.
func (s *subscriber) write() error {
	w := bufio.NewWriterSize(s.conn, 64<<10)
	send := func(b []byte) error {
		if _, err := w.Write(b); err != nil {
			return err
		}
		if len(s.queue) == 0 {
			return w.Flush()
		}
		return nil
	}
	for {
		var b []byte
		select {
		case b = <-s.queue:
		case b = <-s.control:
		case <-s.gone:
			return net.ErrClosed
		case <-s.drain:
			for len(s.queue) > 0 {
				if err := send(<-s.queue); err != nil {
					return err
				}
			}
			return w.Flush()
		}
		if err := send(b); err != nil {
			return err
		}
	}
}

// run serves the connection until it ends. What is in the queue then was not
// written.
func (s *subscriber) run() {
	defer func() { _ = s.conn.Close() }()
	r, err := handshake(s.conn)
	if err != nil {
		close(s.gone)
		return
	}
	go func() {
		_ = s.read(r)
		_ = s.conn.SetWriteDeadline(time.Now()) // wake a writer that is stuck
	}()
	if s.write() == nil {
		// Let the subscriber take what is on its way and hang up: closing a
		// connection with unread input would throw the rest away.
		if half, ok := s.conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			<-s.gone
		}
	}
	_ = s.conn.Close()
	<-s.gone
}
