// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// peer is a ZMTP 3.0 publisher of a few lines, for what libzmq would never send
// and for more publishers than processes.
type peer struct {
	listener net.Listener
	serving  sync.WaitGroup
}

// listen serves each connection with serve, which ends when the connection
// does, until the test is over.
func listen(t testing.TB, serve func(net.Conn)) *peer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &peer{listener: l}
	var (
		mu    sync.Mutex
		open  []net.Conn
		ended bool
	)
	p.serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			if ended {
				conn.Close()
			}
			open = append(open, conn)
			mu.Unlock()
			p.serving.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		ended = true
		for _, conn := range open {
			conn.Close()
		}
		mu.Unlock()
		p.serving.Wait()
	})
	return p
}

// publish serves connections as a socket of some type would, once the handshake
// is over and, for a publisher, the subscription has come.
func publish(t testing.TB, socketType string, serve func(net.Conn)) *peer {
	t.Helper()
	return listen(t, func(conn net.Conn) {
		greeting := make([]byte, 64)
		greeting[0], greeting[9], greeting[10] = 0xff, 0x7f, 3
		copy(greeting[12:], "NULL")
		ready := append([]byte("\x05READY\x0bSocket-Type\x00\x00\x00"), byte(len(socketType)))
		ready = append(ready, socketType...)
		if _, err := conn.Write(append(append(greeting, 4, byte(len(ready))), ready...)); err != nil {
			return
		}
		in := bufio.NewReader(conn)
		if _, err := in.Discard(64); err != nil {
			return
		}
		for range 2 { // READY, and the subscription
			header := make([]byte, 2)
			if _, err := io.ReadFull(in, header); err != nil {
				return
			}
			if _, err := in.Discard(int(header[1])); err != nil {
				return
			}
		}
		serve(conn)
	})
}

func (p *peer) endpoint() string { return p.listener.Addr().String() }

// wire is a message as it goes over the wire.
func wire(frames [][]byte) []byte {
	var b []byte
	for i, frame := range frames {
		flags := byte(1)
		if i == len(frames)-1 {
			flags = 0
		}
		if len(frame) > 255 {
			b = binary.BigEndian.AppendUint64(append(b, flags|2), uint64(len(frame)))
		} else {
			b = append(b, flags, byte(len(frame)))
		}
		b = append(b, frame...)
	}
	return b
}

// untilClosed reads until the other side closes.
func untilClosed(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
