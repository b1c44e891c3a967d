// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// polledConn is a connection whose reader is woken by a Poller, or lends the reading to it (lend.go). One goroutine reads and
// writes; Close may be called from any, and then a Read under way returns.
type polledConn struct {
	net.Conn // closed already, and without the socket: it knows the addresses
	poller   *Poller

	// ready says that there may be something to read, or that the deadline has passed.
	ready chan struct{}
	// ended says that a read which brings little may leave something behind, be it the end, of which the poller has told.
	ended atomic.Bool
	// drained says that the last read left nothing in the socket.
	drained bool

	// See lend:
	turn   sync.Mutex
	lender lender // who lent, or last did
	left   []byte // was read already, and is for the next Read

	// Of the poller, under its lock:
	served   int64 // the moment at which it was last read, or its reader woken
	deferred bool  // to be served by the next look

	mu       sync.Mutex // held while fd is used, so that Close cannot free it meanwhile
	fd       int
	closed   bool
	late     bool        // expiry has run out; ready may have been used up by bytes
	deadline time.Time   // for reads; zero is none
	expiry   *time.Timer // of the deadline; nil before the first
	writeBy  time.Time   // deadline for writes; zero is none
}

// fullSocketPause is how long a write waits for room. It is rare: nothing but heartbeats is written.
const fullSocketPause = 5 * time.Millisecond

// expire is for the timer. Who takes the signal before this one, so that this one is none, sees late when it reads.
func (c *polledConn) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.late = true
	c.signal()
}

func (c *polledConn) signal() {
	select {
	case c.ready <- struct{}{}:
	default: // it is told already
	}
}

// Read reads what lies in the socket, or waits for it. A read that brings less than p can take has emptied the socket, as
// far as peers of TCP go that send no urgent bytes and of Unix sockets that send no files; the next one waits for more
// without asking the kernel first.
//
// Invariant (TestDeadlineCountsWhereBytesCame): once the deadline has passed a Read fails, whatever lies in the socket.
func (c *polledConn) Read(p []byte) (int, error) {
	if len(c.left) > 0 {
		return c.readLeft(p), nil
	}
	for {
		if c.drained {
			<-c.ready
			c.drained = false
		}
		n, err := c.receive(p)
		switch {
		case n > 0:
			c.drained = n < len(p) && !c.ended.Load()
			return n, nil
		case err == nil:
			return 0, io.EOF
		case errors.Is(err, syscall.EAGAIN):
			c.drained = true
		case !errors.Is(err, syscall.EINTR):
			return 0, c.failed("read", err)
		}
	}
}

// readLeft reads what the poller has read and was not handled.
func (c *polledConn) readLeft(p []byte) int {
	n := copy(p, c.left)
	if c.left = c.left[n:]; len(c.left) == 0 {
		c.left = nil
	}
	return n
}

// Write writes all of p. While there is no room for it it keeps asking.
func (c *polledConn) Write(p []byte) (written int, err error) {
	for written < len(p) {
		n, err := c.use(writeSocket, p[written:])
		switch {
		case err == nil:
			written += n
		case errors.Is(err, syscall.EAGAIN):
			if !c.writeBy.IsZero() && !time.Now().Before(c.writeBy) {
				return written, c.failed("write", os.ErrDeadlineExceeded)
			}
			time.Sleep(fullSocketPause)
		case !errors.Is(err, syscall.EINTR):
			return written, c.failed("write", err)
		}
	}
	return written, nil
}

// receive reads what lies in the socket, unless the deadline has passed.
func (c *polledConn) receive(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return 0, net.ErrClosed
	case c.late && !c.deadline.IsZero() && !time.Now().Before(c.deadline):
		return 0, os.ErrDeadlineExceeded
	}
	return readSocket(c.fd, p)
}

// use calls a function with the socket as long as it is open.
func (c *polledConn) use(f func(fd int, p []byte) (int, error), p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, net.ErrClosed
	}
	return f(c.fd, p)
}

// SetDeadline sets both deadlines.
func (c *polledConn) SetDeadline(t time.Time) error {
	_ = c.SetWriteDeadline(t)
	return c.SetReadDeadline(t)
}

// SetReadDeadline sets until when Reads succeed.
func (c *polledConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.failed("set", net.ErrClosed)
	}
	c.deadline = t
	c.late = false
	switch {
	case t.IsZero():
		if c.expiry != nil {
			c.expiry.Stop()
		}
	case c.expiry == nil:
		c.expiry = time.AfterFunc(time.Until(t), c.expire)
	default:
		c.expiry.Reset(time.Until(t))
	}
	return nil
}

// SetWriteDeadline sets until when later Writes wait for room.
func (c *polledConn) SetWriteDeadline(t time.Time) error {
	c.writeBy = t
	return nil
}

// Close closes the socket.
func (c *polledConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.failed("close", net.ErrClosed)
	}
	c.closed = true
	if c.expiry != nil {
		c.expiry.Stop()
	}
	c.poller.detach(c)
	closeSocket(c.fd)
	c.signal()
	return nil
}

// failed makes an error like those of package net.
func (c *polledConn) failed(op string, err error) error {
	if _, ok := errors.AsType[syscall.Errno](err); ok {
		err = os.NewSyscallError(op, err)
	}
	return &net.OpError{Op: op, Net: c.RemoteAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}
