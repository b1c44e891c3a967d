// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package pub

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"
)

const (
	handshakeTimeout = 3 * time.Second
	greetingSize     = 64
)

// handshake greets a subscriber and exchanges READY. The reader holds what the
// subscriber sent right after it.
func handshake(conn net.Conn) (r *bufio.Reader, err error) {
	// zmq4.Open panics on some malformed metadata.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("handshake: malformed metadata: %v", p)
		}
	}()
	if err := conn.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return nil, err
	}
	r = bufio.NewReader(conn)
	if _, err := zmq4.Open(&handshakeConn{Conn: conn, r: r}, null.Security(), zmq4.Pub, nil, true, nil); err != nil {
		return nil, err
	}
	return r, conn.SetDeadline(time.Time{})
}

// handshakeConn checks the size of the one frame that follows the greeting,
// because zmq4 allocates whatever a frame header says.
type handshakeConn struct {
	net.Conn
	r    *bufio.Reader
	read int
}

func (c *handshakeConn) Read(p []byte) (int, error) {
	if c.read == greetingSize {
		if _, _, err := peekFrameSize(c.r); err != nil {
			return 0, err
		}
		if flags, _ := c.r.Peek(1); flags[0]&flagMore != 0 {
			return 0, errors.New("handshake: READY must be a single frame")
		}
	}
	if c.read < greetingSize {
		p = p[:min(len(p), greetingSize-c.read)]
	}
	n, err := c.r.Read(p)
	c.read += n
	return n, err
}
