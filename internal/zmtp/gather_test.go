// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"io"
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// socket is one end of a connection with a kernel's buffer: what the peer sends lies there until it is read.
type socket struct {
	net.Conn
	bytes chan byte
	reads int
}

func newSocket() *socket { return &socket{bytes: make(chan byte, 1<<20)} }

func (s *socket) send(b []byte) {
	for _, c := range b {
		s.bytes <- c
	}
}

func (s *socket) Read(p []byte) (int, error) {
	s.reads++
	first, ok := <-s.bytes
	if !ok {
		return 0, io.EOF
	}
	p[0] = first
	for n := 1; ; n++ {
		if n == len(p) || len(s.bytes) == 0 {
			return n, nil
		}
		p[n] = <-s.bytes
	}
}

func (s *socket) Write(p []byte) (int, error)      { return len(p), nil }
func (s *socket) Close() error                     { return nil }
func (s *socket) SetDeadline(time.Time) error      { return nil }
func (s *socket) SetReadDeadline(time.Time) error  { return nil }
func (s *socket) SetWriteDeadline(time.Time) error { return nil }

func openSocket(t *testing.T, s *socket, gather time.Duration) *Conn {
	t.Helper()
	s.send(publisherHandshake())
	conn, err := Open(s, ConnConfig{SocketType: zmq4.Sub, StaleAfter: time.Minute, Limits: Limits{MaxMessageBytes: 1 << 20, MaxFrames: 16}, Gather: gather},
		time.Now().Add(time.Second))
	require.NoError(t, err)
	return conn
}

func TestGatherServesManyMessagesWithOneRead(t *testing.T) {
	const (
		gather   = 2 * time.Millisecond
		messages = 200
	)
	for name, test := range map[string]struct{ every, gather, late, between time.Duration }{
		"several from moment to moment": {gather / 4, gather, 2 * gather, 2 * gather},
		"one and a half":                {gather * 2 / 3, gather, 2 * gather, 2 * gather},
		"one":                           {gather, gather, gather, gather},
		"less than one":                 {gather * 11 / 10, gather, gather, gather * 11 / 10},
		"each read":                     {gather / 4, 0, 0, gather / 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSocket()
				conn := openSocket(t, s, test.gather)
				s.reads = 0
				began := time.Now()
				go func() {
					for i := range messages {
						time.Sleep(time.Until(began.Add(time.Duration(i) * test.every)))
						s.send(frame(0, []byte{byte(i)}))
					}
				}()
				for i := range messages {
					frames, at, err := conn.Recv()
					require.NoError(t, err)
					require.Equal(t, []byte{byte(i)}, frames[0])
					late := at.Sub(began.Add(time.Duration(i) * test.every))
					require.GreaterOrEqual(t, late, time.Duration(0))
					require.LessOrEqual(t, late, test.late)
				}
				want := int(messages * test.every / test.between)
				assert.InDelta(t, want, s.reads, 4)
			})
		})
	}
}

func TestGatherDoesNotSlowABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSocket()
		conn := openSocket(t, s, 2*time.Millisecond)
		const messages = 2000
		body := make([]byte, 200)
		for range messages {
			s.send(frame(0, body))
		}
		began := time.Now()
		for range messages {
			_, _, err := conn.Recv()
			require.NoError(t, err)
		}
		assert.Zero(t, time.Since(began), "it waited although the socket was not empty")
	})
}

// Two messages a millisecond apart, twenty milliseconds before the next two: the second is read when it comes.
func TestGatherNeedsAFastPublisher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSocket()
		conn := openSocket(t, s, 2*time.Millisecond)
		began := time.Now()
		go func() {
			for range 10 {
				time.Sleep(19 * time.Millisecond)
				s.send(frame(0, []byte("pass")))
				time.Sleep(time.Millisecond)
				s.send(frame(0, []byte("pass")))
			}
		}()
		for i := range 20 {
			_, at, err := conn.Recv()
			require.NoError(t, err)
			assert.Equal(t, time.Duration(i/2*20+19+i%2)*time.Millisecond, at.Sub(began))
		}
	})
}

func TestGatherDoesNotWaitForASlowPublisher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSocket()
		conn := openSocket(t, s, 2*time.Millisecond)
		go func() {
			for range 10 {
				time.Sleep(20 * time.Millisecond)
				s.send(frame(0, []byte("pass")))
			}
		}()
		for range 10 {
			_, at, err := conn.Recv()
			require.NoError(t, err)
			assert.Zero(t, time.Since(at))
			assert.Zero(t, at.Sub(time.Unix(946684800, 0))%(20*time.Millisecond), "not at the moment it came")
		}
	})
}

// A publisher that is fast, then slow, then stops within a message, then closes: whatever it sends is received soon after,
// although the socket was made quiet while it was fast.
func TestQuietSocketsLoseNoWakeUp(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			address := "127.0.0.1:0"
			if network == "unix" {
				address = filepath.Join(t.TempDir(), "s")
			}
			l, err := net.Listen(network, address)
			require.NoError(t, err)
			defer l.Close()
			sent := make(chan time.Time, 1)
			const fast = 200
			go func() {
				nc, err := l.Accept()
				if err != nil {
					return
				}
				defer nc.Close()
				go func() { _, _ = io.Copy(io.Discard, nc) }() // unread bytes would make the end a reset
				_, _ = nc.Write(publisherHandshake())
				for range 3 {
					for range fast {
						time.Sleep(300 * time.Microsecond)
						_, _ = nc.Write(frame(0, repeat(435)))
					}
					time.Sleep(30 * time.Millisecond)
					sent <- time.Now()
					_, _ = nc.Write(frame(0, []byte("alone")))
					time.Sleep(30 * time.Millisecond)
					halves := frame(0, repeat(20_000))
					_, _ = nc.Write(halves[:10_000])
					time.Sleep(30 * time.Millisecond)
					sent <- time.Now()
					_, _ = nc.Write(halves[10_000:])
				}
				time.Sleep(30 * time.Millisecond)
				sent <- time.Now()
			}()
			nc, err := net.Dial(network, l.Addr().String())
			require.NoError(t, err)
			c := openGathering(t, nc)
			defer c.Close()
			watchdog := time.AfterFunc(20*time.Second, func() { c.Close() })
			defer watchdog.Stop()
			for range 3 {
				assert.Greater(t, quietAfter(t, c, fast), fast/4, "the socket was hardly quiet")
				for range 2 {
					_, _, err := c.Recv()
					require.NoError(t, err)
					assert.Less(t, time.Since(<-sent), 10*time.Second)
				}
			}
			_, _, err = c.Recv()
			require.Equal(t, io.EOF, err)
			assert.Less(t, time.Since(<-sent), 10*time.Second)
		})
	}
}

// A rank of every few milliseconds among others is looked at several times before it is waited for: its socket stays quiet.
func TestLooksAgainWhereOthersLook(t *testing.T) {
	for _, test := range []struct{ others, looks int }{{0, 2}, {1, 2}, {2, 3}, {6, 7}, {7, 8}, {1000, 8}} {
		subscribers.Add(int64(test.others))
		assert.Equal(t, test.looks, looks(), "beside %d", test.others)
		subscribers.Add(-int64(test.others))
	}

	subscribers.Add(8)
	defer subscribers.Add(-8)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	const messages = 50
	go func() {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(io.Discard, nc) }()
		_, _ = nc.Write(publisherHandshake())
		for range messages {
			time.Sleep(7 * time.Millisecond)
			_, _ = nc.Write(frame(0, repeat(435)))
		}
		nc.Close()
	}()
	nc, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	c := openGathering(t, nc)
	defer c.Close()
	assert.Greater(t, quietAfter(t, c, messages), messages/2)
	_, _, err = c.Recv()
	require.Equal(t, io.EOF, err)
}

// quietAfter receives messages and counts after how many of them the socket was quiet.
func quietAfter(t *testing.T, c *Conn, messages int) (quiet int) {
	t.Helper()
	for range messages {
		_, _, err := c.Recv()
		require.NoError(t, err)
		if c.guard.gatherer.quiet {
			quiet++
		}
	}
	return quiet
}

func openGathering(t *testing.T, nc net.Conn) *Conn {
	t.Helper()
	c, err := Open(nc, ConnConfig{
		SocketType: zmq4.Sub, StaleAfter: time.Minute, Limits: Limits{MaxMessageBytes: 1 << 20, MaxFrames: 16}, Gather: 2 * time.Millisecond,
	}, time.Now().Add(time.Second))
	require.NoError(t, err)
	return c
}

// Connections that gather read at the same moments, at most one wait apart; every second moment is one for all of those.
func TestGatherersPauseUntilTheSameMoments(t *testing.T) {
	const every = 2 * time.Millisecond
	g := gatherer{every: every}
	moment := time.Unix(1_800_000_000, 0)
	for _, early := range []time.Duration{every, every - 1, every / 2, 1} {
		assert.Equal(t, early, g.pause(moment.Add(-early), 1))
		assert.Equal(t, early, g.pause(moment.Add(-every-early), 1))
		assert.Equal(t, early, g.pause(moment.Add(-early), 2))
		assert.Equal(t, every+early, g.pause(moment.Add(-every-early), 2))
	}
}
