// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"bytes"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

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

// The timer's only signal may be used up by bytes, of which the poller tells later.
func TestDeadlineCountsWhereBytesCame(t *testing.T) {
	ours, peer := polledPair(t, "tcp")
	waitDrained(t, ours, peer)
	ours.poller.mu.Lock() // it has not looked yet
	require.NoError(t, ours.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
	_, err := peer.Write([]byte("m"))
	require.NoError(t, err)
	time.Sleep(30 * time.Millisecond)
	ours.poller.mu.Unlock()
	_, err = ours.Read(make([]byte, 100))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, ours.SetReadDeadline(time.Now().Add(20*time.Second)))
	requireRead(t, ours, "m")
}

// Publishers that were heard every few milliseconds, and are gone without a word.
func TestPolledPeersThatVanish(t *testing.T) {
	const staleAfter = 200 * time.Millisecond
	for _, between := range []time.Duration{3 * time.Millisecond, 20 * time.Millisecond} {
		t.Run(between.String(), func(t *testing.T) {
			gone := make(chan struct{})
			address := startPeer(t, func(nc net.Conn) {
				go drain(nc)
				_, _ = nc.Write(publisherHandshake())
				tick := time.NewTicker(between)
				defer tick.Stop()
				for {
					_, _ = nc.Write(message([]byte("m")))
					select {
					case <-gone:
						return
					case <-tick.C:
					}
				}
			})
			cfg := subConfig(staleAfter)
			cfg.Poller = startPoller(t)
			var connections sync.WaitGroup
			for range 20 {
				c, err := openTo(t, address, cfg)
				require.NoError(t, err)
				watchdog := time.AfterFunc(20*time.Second, func() { c.Close() })
				connections.Go(func() {
					defer watchdog.Stop()
					for {
						if _, _, err := c.Recv(); err != nil {
							assert.Equal(t, &TimeoutError{WaitAnswer, staleAfter}, err)
							return
						}
					}
				})
			}
			time.Sleep(5 * staleAfter)
			close(gone)
			connections.Wait()
		})
	}
}

// A message that never ends, commands in between, and a socket that is never empty.
func TestPolledPeerThatStalls(t *testing.T) {
	const staleAfter = 200 * time.Millisecond
	for name, commands := range map[string]int{"drips": 1, "floods": 10_000} {
		t.Run(name, func(t *testing.T) {
			address := startPeer(t, func(nc net.Conn) {
				go drain(nc)
				_, err := nc.Write(append(publisherHandshake(), frame(flagMore, []byte("a"))...))
				for err == nil {
					_, err = nc.Write(bytes.Repeat(commandFrame("PONG"), commands))
					if commands == 1 {
						time.Sleep(every / 4)
					}
				}
			})
			cfg := subConfig(staleAfter)
			cfg.Poller = startPoller(t)
			c, err := openTo(t, address, cfg)
			require.NoError(t, err)
			watchdog := time.AfterFunc(20*time.Second, func() { c.Close() })
			defer watchdog.Stop()
			_, _, err = c.Recv()
			require.Equal(t, &TimeoutError{WaitMessage, staleAfter}, err)
		})
	}
}

// A read stops before an urgent byte; what is behind it is read all the same.
func TestPollerAndUrgentBytes(t *testing.T) {
	ours, peer := polledPair(t, "tcp")
	waitDrained(t, ours, peer)
	sendAroundUrgent(t, ours, peer)
	requireRead(t, ours, "abcdef")
}

// sendAroundUrgent has the peer send abc, an urgent byte and def before the poller looks.
func sendAroundUrgent(t *testing.T, ours *polledConn, peer net.Conn) {
	t.Helper()
	raw, err := peer.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	ours.poller.mu.Lock()
	for _, part := range []struct {
		bytes string
		flags int
	}{{"abc", 0}, {"!", unix.MSG_OOB}, {"def", 0}} {
		require.NoError(t, raw.Control(func(fd uintptr) { err = unix.Send(int(fd), []byte(part.bytes), part.flags) }))
		require.NoError(t, err)
	}
	time.Sleep(5 * every)
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

// Liveness is that of connections that are read as they are.
func TestPolledPeerThatIsSilent(t *testing.T) {
	const staleAfter = 200 * time.Millisecond
	cfg := subConfig(staleAfter)
	cfg.Poller = startPoller(t)
	began := time.Now()
	c, err := openTo(t, startPeer(t, send(publisherHandshake())), cfg)
	require.NoError(t, err)
	require.IsType(t, &polledConn{}, c.guard.Conn)
	_, _, err = c.Recv()
	require.Equal(t, &TimeoutError{WaitAnswer, staleAfter}, err)
	require.GreaterOrEqual(t, time.Since(began), 2*staleAfter)
}
