// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkRecv reads messages as an engine sends them (empty topic, sequence, 435 bytes) through loopback TCP, as fast as they
// come: batch is how many come with one write of the sender.
func BenchmarkRecv(b *testing.B) {
	for _, bm := range []struct {
		name  string
		batch int
	}{{"one_a_write", 1}, {"hundred_a_write", 100}} {
		b.Run(bm.name, func(b *testing.B) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(b, err)
			defer l.Close()
			done := make(chan struct{})
			go func() {
				defer close(done)
				nc, err := l.Accept()
				if err != nil {
					return
				}
				defer nc.Close()
				_, _ = nc.Write(publisherHandshake())
				batch := bytes.Repeat(message(nil, []byte("12345678"), repeat(435)), bm.batch)
				for {
					if _, err := nc.Write(batch); err != nil {
						return
					}
				}
			}()
			nc, err := net.Dial("tcp", l.Addr().String())
			require.NoError(b, err)
			c, err := Open(nc, subConfig(time.Minute), time.Now().Add(time.Second))
			require.NoError(b, err)
			b.SetBytes(435)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := c.Recv(); err != nil {
					b.Fatal(err)
				}
			}
			c.Close()
			<-done
		})
	}
}

// endless repeats one message for ever: a peer without system calls.
type endless struct {
	scripted
	message []byte
}

func (e *endless) Read(p []byte) (int, error) {
	if n, err := e.scripted.Read(p); err != io.EOF {
		return n, err
	}
	n := 0
	for len(p)-n >= len(e.message) {
		n += copy(p[n:], e.message)
	}
	return n, nil
}

// BenchmarkGuard is the part of BenchmarkRecv that is not the kernel's.
func BenchmarkGuard(b *testing.B) {
	peer := &endless{scripted: scripted{b: publisherHandshake(), piece: 1 << 20}, message: message(nil, []byte("12345678"), repeat(435))}
	c, err := Open(peer, subConfig(time.Minute), time.Now().Add(time.Second))
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := c.Recv(); err != nil {
			b.Fatal(err)
		}
	}
}
