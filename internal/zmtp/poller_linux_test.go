// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// polledPair returns a polled connection and its peer.
func polledPair(t *testing.T, network string) (ours *polledConn, peer net.Conn) {
	t.Helper()
	return attachedPair(t, startPoller(t), network)
}

func attachedPair(t *testing.T, p *Poller, network string) (ours *polledConn, peer net.Conn) {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, address)
	require.NoError(t, err)
	defer l.Close()
	nc, err := net.Dial(network, l.Addr().String())
	require.NoError(t, err)
	peer, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { peer.Close() })
	ours, ok := p.attach(nc).(*polledConn)
	require.True(t, ok)
	t.Cleanup(func() { ours.Close() })
	// A lost wake-up shows as this deadline, not as a test that hangs.
	require.NoError(t, ours.SetReadDeadline(time.Now().Add(20*time.Second)))
	return ours, peer
}

func requireRead(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	_, err := io.ReadFull(c, got)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
}

// Peers that are fast, then wait until all was read, also in the middle of something, then close: nothing lies unread until
// they send more.
func TestPollerLosesNoWakeUp(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		for _, connections := range []int{1, 7, 200} {
			t.Run(fmt.Sprint(network, connections), func(t *testing.T) {
				p := startPoller(t)
				var all sync.WaitGroup
				defer all.Wait()
				for i := range connections {
					ours, peer := attachedPair(t, p, network)
					var read atomic.Int64
					all.Go(func() {
						room := make([]byte, 100)
						for {
							n, err := ours.Read(room)
							read.Add(int64(n))
							if err != nil {
								assert.Equal(t, io.EOF, err)
								return
							}
						}
					})
					all.Go(func() {
						defer peer.Close()
						sent := int64(0)
						for round := range 30 {
							for range 1 + (i+round)%11 {
								n, _ := peer.Write([]byte("fast"))
								sent += int64(n)
								time.Sleep(every / 3)
							}
							began := time.Now()
							for read.Load() < sent {
								if !assert.Less(t, time.Since(began), 10*time.Second, "not read") {
									return
								}
								time.Sleep(every / 4)
							}
							time.Sleep(time.Duration((i+round)%4) * every)
						}
					})
				}
			})
		}
	}
}

// The end may come while the reader waits for the last bytes, or with them, or later.
func TestPollerFindsTheEnd(t *testing.T) {
	p := startPoller(t)
	_, other := attachedPair(t, p, "tcp") // keeps the poller looking
	stop := make(chan struct{})
	var others sync.WaitGroup
	defer others.Wait()
	defer close(stop)
	others.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(every / 4):
				_, _ = other.Write([]byte("m"))
			}
		}
	})
	for i := range 100 {
		ours, peer := attachedPair(t, p, "tcp")
		others.Go(func() {
			time.Sleep(2 * every)
			_, _ = peer.Write([]byte("last"))
			time.Sleep(time.Duration(max(i-50, 0)%10) * every / 4)
			peer.Close()
		})
		room := make([]byte, 100)
		n, err := ours.Read(room)
		require.NoError(t, err)
		require.Equal(t, "last", string(room[:n]))
		began := time.Now()
		_, err = ours.Read(room)
		require.Equal(t, io.EOF, err)
		require.Less(t, time.Since(began), 10*time.Second)
	}
}

// Messages that come until the poller looks are read together; arrivals in between wake nobody, not even the runtime.
func TestPollerServesManyMessagesWithOneRead(t *testing.T) {
	ours, peer := polledPair(t, "tcp")
	waitDrained(t, ours, peer)
	ours.poller.mu.Lock()
	for range 10 {
		_, _ = peer.Write([]byte("m"))
		time.Sleep(every)
	}
	told, err := came(uintptr(ours.poller.ready.firstFile(t)))
	ours.poller.mu.Unlock()
	require.NoError(t, err)
	require.False(t, told, "the runtime is woken once a wait")
	n, err := ours.Read(make([]byte, 100))
	require.NoError(t, err)
	require.Equal(t, 10, n)
	require.ErrorIs(t, ours.Conn.SetDeadline(time.Time{}), net.ErrClosed, "it still lies in the runtime's poller")
}

// waitDrained brings ours to where a reader waits: the socket empty, nothing told.
func waitDrained(t *testing.T, ours *polledConn, peer net.Conn) {
	t.Helper()
	_, err := peer.Write([]byte("x"))
	require.NoError(t, err)
	for !ours.drained {
		_, err := ours.Read(make([]byte, 100))
		require.NoError(t, err)
	}
	time.Sleep(5 * every) // the poller has looked, and found nothing
	select {
	case <-ours.ready:
	default:
	}
}

// firstFile returns the descriptor of the file that the runtime polls.
func (r *readiness) firstFile(t *testing.T) (fd int) {
	require.NoError(t, r.raw.Control(func(first uintptr) { fd = int(first) }))
	return fd
}

// All files and connections are closed, whenever that happens.
func TestPollerLeaksNoFile(t *testing.T) {
	address := startPeer(t, func(nc net.Conn) {
		_, _ = nc.Write(publisherHandshake())
		drain(nc)
		nc.Close()
	})
	openFiles := func() int {
		files, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(files)
	}
	before := openFiles()
	for i := range 100 {
		cfg := subConfig(time.Second)
		cfg.Poller = NewPoller(every)
		nc, err := net.Dial("tcp", address)
		require.NoError(t, err)
		early := time.AfterFunc(time.Duration(i)*5*time.Microsecond, func() { nc.Close() })
		if c, err := Open(nc, cfg, time.Now().Add(time.Second)); err == nil {
			c.Close()
		}
		early.Stop()
		cfg.Poller.Close()
		cfg.Poller.Close() // closes no file that has the number now
	}
	require.Eventually(t, func() bool { return openFiles() <= before }, 10*time.Second, 10*time.Millisecond)
}

// A burst is read as fast as it comes: only an empty socket is waited for.
func TestPollerDoesNotSlowABurst(t *testing.T) {
	ours, peer := polledPair(t, "tcp")
	burst := repeat(32 << 10)
	_, err := peer.Write(burst)
	require.NoError(t, err)
	require.Eventually(t, func() bool { // all has arrived
		n, err := unreadBytes(ours)
		return err == nil && n == len(burst)
	}, 10*time.Second, time.Millisecond)
	ours.poller.mu.Lock() // it can wake nobody
	defer ours.poller.mu.Unlock()
	for got := 0; got < len(burst); {
		n, err := ours.Read(make([]byte, 1<<10))
		require.NoError(t, err)
		got += n
	}
}

// What the poller cannot serve is left as it is.
func TestPollerLeavesOthersAlone(t *testing.T) {
	p := startPoller(t)
	pipe, other := net.Pipe()
	defer other.Close()
	defer pipe.Close()
	require.Equal(t, pipe, p.attach(pipe))
	require.Nil(t, p.ready, "nothing is opened for nothing")

	p.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer nc.Close()
	require.Equal(t, nc, p.attach(nc), "the poller is closed")
}

// Subscriptions come and go while others are read, to peers that close at any moment.
func TestPollerWithRestarts(t *testing.T) {
	p := startPoller(t)
	address := startPeer(t, func(nc net.Conn) {
		go drain(nc)
		_, _ = nc.Write(publisherHandshake())
		for range 20 {
			time.Sleep(time.Millisecond)
			if _, err := nc.Write(message([]byte("m"))); err != nil {
				return
			}
		}
		nc.Close()
	})
	ctx, cancel := context.WithCancel(t.Context())
	var subscribers sync.WaitGroup
	heard := make([]*events, 20)
	for i := range heard {
		heard[i] = newEvents()
		cfg := subscriberConfig(address)
		cfg.Poller, cfg.InitialBackoff, cfg.MaxBackoff = p, time.Millisecond, 2*time.Millisecond
		subscribers.Go(func() { NewSubscriber(cfg, heard[i]).Run(ctx) })
	}
	for _, e := range heard {
		for range 200 {
			wait(t, "message", e.messages, 20*time.Second)
		}
		for err := range drained(e.disconnected) {
			require.True(t, errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET), "%v", err)
		}
	}
	cancel()
	subscribers.Wait()
	p.Close()
	for _, c := range p.conns {
		require.Nil(t, c)
	}
}

func drained[T any](c <-chan T) func(func(T) bool) {
	return func(yield func(T) bool) {
		for len(c) > 0 && yield(<-c) {
		}
	}
}

func unreadBytes(c *polledConn) (n int, err error) {
	return c.use(func(fd int, _ []byte) (int, error) { return unix.IoctlGetInt(fd, unix.TIOCINQ) }, nil)
}
