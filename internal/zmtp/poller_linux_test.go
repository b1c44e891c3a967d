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

func TestPollerFindsAReset(t *testing.T) {
	ours, peer := polledPair(t, "tcp")
	go func() {
		time.Sleep(10 * time.Millisecond)
		_ = peer.(*net.TCPConn).SetLinger(0)
		peer.Close()
	}()
	_, err := ours.Read(make([]byte, 100))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.ErrorContains(t, err, peer.LocalAddr().String())
}

// Messages that come while the poller looks every two milliseconds are read together.
func TestPollerServesManyMessagesWithOneRead(t *testing.T) {
	ours, peer := polledPair(t, "tcp")
	const messages = 400
	go func() {
		for range messages {
			time.Sleep(200 * time.Microsecond)
			_, _ = peer.Write([]byte("m"))
		}
	}()
	reads := 0
	for got := 0; got < messages; reads++ {
		n, err := ours.Read(make([]byte, 100))
		require.NoError(t, err)
		got += n
	}
	require.Less(t, reads, messages/2)
}

// A burst is read as fast as it comes: only an empty socket is waited for.
func TestPollerDoesNotSlowABurst(t *testing.T) {
	ours, peer := polledPair(t, "tcp")
	burst := repeat(100 << 10)
	_, err := peer.Write(burst)
	require.NoError(t, err)
	require.Eventually(t, func() bool { // all has arrived
		n, err := unreadBytes(ours)
		return err == nil && n == len(burst)
	}, 10*time.Second, time.Millisecond)
	ours.poller.mu.Lock() // it can wake nobody
	for got := 0; got < len(burst); {
		n, err := ours.Read(make([]byte, 1<<10))
		require.NoError(t, err)
		got += n
	}
	ours.poller.mu.Unlock()
}

func TestPolledReadDeadline(t *testing.T) {
	ours, peer := polledPair(t, "tcp")
	for _, wait := range []time.Duration{50 * time.Millisecond, 5 * time.Millisecond, -time.Second} {
		began := time.Now()
		require.NoError(t, ours.SetReadDeadline(began.Add(wait)))
		_, err := ours.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.GreaterOrEqual(t, time.Since(began), wait)
	}
	require.NoError(t, ours.SetDeadline(time.Now().Add(10*time.Millisecond)))
	require.NoError(t, ours.SetDeadline(time.Time{}))
	time.AfterFunc(50*time.Millisecond, func() { _, _ = peer.Write([]byte("late")) })
	requireRead(t, ours, "late")
}

func TestPolledWriteDeadline(t *testing.T) {
	ours, peer := polledPair(t, "tcp")
	require.NoError(t, ours.SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
	written, err := ours.Write(make([]byte, 64<<20))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Positive(t, written)
	require.Less(t, written, 64<<20)

	go drain(peer)
	require.NoError(t, ours.SetWriteDeadline(time.Now().Add(20*time.Second)))
	written, err = ours.Write(make([]byte, 16<<20))
	require.NoError(t, err, "there is room again")
	require.Equal(t, 16<<20, written)
}

func TestCloseEndsAPolledRead(t *testing.T) {
	ours, _ := polledPair(t, "tcp")
	time.AfterFunc(10*time.Millisecond, func() { ours.Close() })
	_, err := ours.Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = ours.Write([]byte("m"))
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, ours.SetReadDeadline(time.Now()), net.ErrClosed)
	require.ErrorIs(t, ours.Close(), net.ErrClosed)
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

// Liveness is that of connections that are read as they are.
func TestPolledPeerThatIsSilent(t *testing.T) {
	const staleAfter = 200 * time.Millisecond
	cfg := subConfig(staleAfter)
	cfg.Poller = startPoller(t)
	c, err := openTo(t, startPeer(t, send(publisherHandshake())), cfg)
	require.NoError(t, err)
	require.IsType(t, &polledConn{}, c.guard.Conn)
	began := time.Now()
	_, _, err = c.Recv()
	require.Equal(t, &TimeoutError{WaitAnswer, staleAfter}, err)
	require.GreaterOrEqual(t, time.Since(began), 2*staleAfter)
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
	require.Empty(t, p.conns)
}

func drained[T any](c <-chan T) func(func(T) bool) {
	return func(yield func(T) bool) {
		for len(c) > 0 && yield(<-c) {
		}
	}
}

func unreadBytes(c *polledConn) (n int, err error) {
	return c.use(func(fd int, _ []byte) (int, error) { return queuedBytes(fd) }, nil)
}

func queuedBytes(fd int) (int, error) { return unix.IoctlGetInt(fd, unix.TIOCINQ) }
