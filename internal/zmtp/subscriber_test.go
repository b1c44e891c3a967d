// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// In fake time, over net.Pipe.

// inFakeTime runs f and then lets the peers, all of which sleep an hour at most, come to their end.
func inFakeTime(t *testing.T, f func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		f(t)
		time.Sleep(24 * time.Hour)
	})
}

// pipeDialer gives the subscriber one end of a pipe for each dial and serves the other; nil in place of a server refuses.
func pipeDialer(servers ...func(net.Conn)) func(context.Context, string, string) (net.Conn, error) {
	var dials int
	return func(context.Context, string, string) (net.Conn, error) {
		serve := servers[min(dials, len(servers)-1)]
		dials++
		if serve == nil {
			return nil, syscall.ECONNREFUSED
		}
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			serve(theirs)
		}()
		return ours, nil
	}
}

// pipePublisher shakes hands, hands our commands and messages to got (nil: not at all), then does what then says.
func pipePublisher(got chan<- string, then func(net.Conn)) func(net.Conn) {
	return func(nc net.Conn) {
		read := make(chan struct{})
		go func() {
			defer close(read)
			if _, err := io.ReadFull(nc, make([]byte, greetingLen)); err != nil {
				return
			}
			var h [shortHeaderLen]byte
			for {
				if _, err := io.ReadFull(nc, h[:]); err != nil {
					return
				}
				body := make([]byte, h[1])
				if _, err := io.ReadFull(nc, body); err != nil {
					return
				}
				if got != nil {
					got <- string(body)
				}
			}
		}()
		_, _ = nc.Write(publisherHandshake())
		then(nc)
		nc.Close()
		<-read
	}
}

func pipeSubscriber(e *events, staleAfter time.Duration, servers ...func(net.Conn)) *Subscriber {
	s := NewSubscriber(SubscriberConfig{
		Network: "tcp", Address: "engine:20380",
		DialTimeout: 3 * time.Second, InitialBackoff: 100 * time.Millisecond, MaxBackoff: 5 * time.Second,
		StaleAfter: staleAfter, Limits: testLimits,
	}, e)
	s.dial = pipeDialer(servers...)
	return s
}

// next returns how long after start the next value came.
func next[T any](t *testing.T, c <-chan T) (T, time.Time) {
	t.Helper()
	v := wait(t, "event", c, time.Hour)
	return v, time.Now()
}

func TestSilentPublisherThatAnswersIsKept(t *testing.T) {
	inFakeTime(t, func(t *testing.T) {
		e, got := newEvents(), make(chan string, 100)
		answering := pipePublisher(got, func(nc net.Conn) {
			for range 100 {
				time.Sleep(5 * time.Second)
				if _, err := nc.Write(commandFrame("PONG")); err != nil {
					return
				}
			}
			_, _ = nc.Write(message([]byte("m")))
			time.Sleep(time.Hour)
		})
		stop := runSubscriber(t, pipeSubscriber(e, 5*time.Second, answering))
		start := time.Now()
		_, at := next(t, e.connected)
		require.Zero(t, at.Sub(start))
		m, at := next(t, e.messages)
		require.Equal(t, [][]byte{[]byte("m")}, m.frames)
		require.Equal(t, at, m.at)
		require.Equal(t, 500*time.Second, at.Sub(start))
		require.Empty(t, e.disconnected)
		require.Contains(t, <-got, "READY")
		require.Equal(t, "\x01", <-got)
		require.Equal(t, pingBody, <-got)
		require.InDelta(t, 98, len(got), 1, "one PING for each 5 s of silence")
		stop()
	})
}

func TestPublisherThatVanishes(t *testing.T) {
	for _, tt := range []struct {
		name  string
		then  func(net.Conn)
		after time.Duration // of the handshake
		want  error
	}{
		{"without a word", func(nc net.Conn) { time.Sleep(time.Hour) }, 2*5*time.Second + lastLook, &TimeoutError{WaitAnswer, 5 * time.Second}},
		{"after messages", func(nc net.Conn) {
			for range 10 {
				time.Sleep(time.Second)
				_, _ = nc.Write(message([]byte("m")))
			}
			time.Sleep(time.Hour)
		}, 10*time.Second + 2*5*time.Second + lastLook, &TimeoutError{WaitAnswer, 5 * time.Second}},
		{"within a message", func(nc net.Conn) {
			time.Sleep(time.Second)
			_, _ = nc.Write([]byte{0, 200, 'h', 'a', 'l', 'f'})
			time.Sleep(time.Hour)
		}, time.Second + 5*time.Second + lastLook, &TimeoutError{WaitMessage, 5 * time.Second}},
		{"after the first byte of a message", func(nc net.Conn) {
			time.Sleep(4 * time.Second)
			_, _ = nc.Write([]byte{0})
			time.Sleep(time.Hour)
		}, 4*time.Second + 5*time.Second + lastLook, &TimeoutError{WaitMessage, 5 * time.Second}},
		{"between the frames of a message", func(nc net.Conn) {
			_, _ = nc.Write(frame(flagMore, []byte("a")))
			time.Sleep(time.Hour)
		}, 5*time.Second + lastLook, &TimeoutError{WaitMessage, 5 * time.Second}},
		{"dripping", func(nc net.Conn) {
			drip(message(repeat(200)), time.Second)(nc)
		}, 5*time.Second + lastLook, &TimeoutError{WaitMessage, 5 * time.Second}},
		{"dripping commands within a message", func(nc net.Conn) {
			_, _ = nc.Write(frame(flagMore, []byte("a")))
			for range 1000 {
				_, _ = nc.Write(commandFrame("PONG"))
				time.Sleep(time.Millisecond * 100)
			}
		}, 5*time.Second + lastLook, &TimeoutError{WaitMessage, 5 * time.Second}},
		{"within a command", func(nc net.Conn) {
			_, _ = nc.Write([]byte{flagCommand, 200, 'h'})
			time.Sleep(time.Hour)
		}, 2*5*time.Second + lastLook, &TimeoutError{WaitAnswer, 5 * time.Second}},
		{"having said good-bye", func(nc net.Conn) { time.Sleep(time.Second) }, time.Second, io.EOF},
		{"having said good-bye within a message", func(nc net.Conn) { _, _ = nc.Write([]byte{0}) }, 0, io.ErrUnexpectedEOF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inFakeTime(t, func(t *testing.T) {
				e := newEvents()
				stop := runSubscriber(t, pipeSubscriber(e, 5*time.Second, pipePublisher(nil, tt.then)))
				start := time.Now()
				next(t, e.connected)
				err, at := next(t, e.disconnected)
				require.Equal(t, tt.want, err)
				require.Equal(t, tt.after, at.Sub(start))
				next(t, e.connected)
				stop()
			})
		})
	}
}

// The dial timeout covers connecting and handshake together.
func TestDialTimeoutCoversHandshake(t *testing.T) {
	inFakeTime(t, func(t *testing.T) {
		e := newEvents()
		s := pipeSubscriber(e, 5*time.Second, drain)
		connect := s.dial
		s.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			time.Sleep(2 * time.Second)
			return connect(ctx, network, address)
		}
		stop := runSubscriber(t, s)
		start := time.Now()
		err, at := next(t, e.disconnected)
		requireHandshakeError(t, err, ReasonTimeout)
		require.Equal(t, 3*time.Second, at.Sub(start))
		stop()
	})
	inFakeTime(t, func(t *testing.T) {
		e := newEvents()
		s := pipeSubscriber(e, 5*time.Second, drain)
		s.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		stop := runSubscriber(t, s)
		start := time.Now()
		err, at := next(t, e.disconnected)
		var de *DialError
		require.ErrorAs(t, err, &de)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 3*time.Second, at.Sub(start))
		stop()
	})
}

func TestBackOff(t *testing.T) {
	waits := func(t *testing.T, e *events, n int) []time.Duration {
		var d []time.Duration
		last := time.Now()
		for range n {
			_, at := next(t, e.disconnected)
			d = append(d, at.Sub(last))
			last = at
		}
		return d
	}
	t.Run("grows to the limit, with jitter", func(t *testing.T) {
		inFakeTime(t, func(t *testing.T) {
			e := newEvents()
			stop := runSubscriber(t, pipeSubscriber(e, time.Second, nil))
			d := waits(t, e, 200)
			require.Zero(t, d[0], "the first attempt is at once")
			mean := 100 * time.Millisecond
			for _, w := range d[1:6] {
				require.GreaterOrEqual(t, w, mean/2)
				require.LessOrEqual(t, w, mean+mean/2)
				mean *= 2
			}
			seen := map[time.Duration]bool{}
			var longest time.Duration
			for _, w := range d[10:] {
				require.Greater(t, w, 5*time.Second/4)
				require.LessOrEqual(t, w, 5*time.Second)
				seen[w] = true
				longest = max(longest, w)
			}
			require.Greater(t, len(seen), 100, "jitter")
			require.Greater(t, longest, 4*time.Second)
			stop()
		})
	})
	t.Run("starts over after a message", func(t *testing.T) {
		inFakeTime(t, func(t *testing.T) {
			e := newEvents()
			good := pipePublisher(nil, func(nc net.Conn) { _, _ = nc.Write(message([]byte("m"))) })
			stop := runSubscriber(t, pipeSubscriber(e, time.Second, nil, nil, nil, nil, nil, nil, nil, nil, good, nil))
			d := waits(t, e, 10)
			require.Greater(t, d[8], time.Second)
			require.LessOrEqual(t, d[9], 150*time.Millisecond)
			stop()
		})
	})
	t.Run("not after a handshake alone", func(t *testing.T) {
		inFakeTime(t, func(t *testing.T) {
			e := newEvents()
			stop := runSubscriber(t, pipeSubscriber(e, time.Second, pipePublisher(nil, func(net.Conn) { time.Sleep(time.Millisecond) })))
			d := waits(t, e, 10)
			require.Len(t, e.connected, 10)
			require.Greater(t, d[9], time.Second)
			stop()
		})
	})
	t.Run("not after a message that is too large", func(t *testing.T) {
		inFakeTime(t, func(t *testing.T) {
			e := newEvents()
			stop := runSubscriber(t, pipeSubscriber(e, time.Second, pipePublisher(nil, func(nc net.Conn) {
				_, _ = nc.Write(longHeader(0, 1<<40))
				time.Sleep(time.Hour)
			})))
			for range 10 {
				err, _ := next(t, e.disconnected)
				var oe *OversizeError
				require.ErrorAs(t, err, &oe)
			}
			start := time.Now()
			_, at := next(t, e.disconnected)
			require.Greater(t, at.Sub(start), time.Second)
			stop()
		})
	})
	t.Run("a first wait longer than the limit", func(t *testing.T) {
		b := newBackOff(time.Minute, time.Second)
		for range 100 {
			require.LessOrEqual(t, b.NextBackOff(), time.Second)
		}
	})
}

// Run returns in the very instant of cancel, whatever it waits for, and calls the handler no more.
func TestCancel(t *testing.T) {
	for _, tt := range []struct {
		name   string
		server func(net.Conn)
		dial   func(ctx context.Context, network, address string) (net.Conn, error)
		told   int // Disconnected calls before
	}{
		{name: "in a dial", dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}},
		{name: "in our greeting", server: func(nc net.Conn) { time.Sleep(time.Minute) }},
		{name: "in the greeting", server: drain},
		{name: "in READY", server: func(nc net.Conn) {
			go func() { _, _ = nc.Write(goodGreeting()) }()
			drain(nc)
		}},
		{name: "in the subscription", server: func(nc net.Conn) {
			go func() { _, _ = nc.Write(publisherHandshake()) }()
			_, _ = io.ReadFull(nc, make([]byte, greetingLen))
			var h [shortHeaderLen]byte
			_, _ = io.ReadFull(nc, h[:])
			_, _ = io.ReadFull(nc, make([]byte, h[1]))
			time.Sleep(time.Minute)
		}},
		{name: "in silence", server: pipePublisher(nil, drain)},
		{name: "in a message", server: pipePublisher(nil, func(nc net.Conn) {
			_, _ = nc.Write([]byte{0, 100, 1})
			drain(nc)
		})},
		{name: "in a wait", server: nil, told: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inFakeTime(t, func(t *testing.T) {
				e := newEvents()
				s := pipeSubscriber(e, time.Hour, tt.server)
				s.cfg.InitialBackoff = time.Hour
				s.cfg.MaxBackoff = time.Hour
				if tt.dial != nil {
					s.dial = tt.dial
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					s.Run(ctx)
				}()
				time.Sleep(time.Second)
				synctest.Wait()
				select {
				case <-done:
					t.Fatal("Run returned early")
				default:
				}
				require.Len(t, e.disconnected, tt.told)
				start := time.Now()
				cancel()
				<-done
				require.Zero(t, time.Since(start))
				require.Len(t, e.disconnected, tt.told)
			})
		})
	}
	t.Run("before it began", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		e := newEvents()
		s := NewSubscriber(subscriberConfig("127.0.0.1:1"), e)
		s.Run(ctx)
		require.Empty(t, e.disconnected)
	})
}

// On real sockets.

func TestCancelWhileMessagesFlow(t *testing.T) {
	address := startPeer(t, func(nc net.Conn) {
		_, _ = nc.Write(publisherHandshake())
		m := message(nil, []byte("12345678"), repeat(435))
		for {
			if _, err := nc.Write(m); err != nil {
				return
			}
		}
	})
	for range 50 {
		e := &counting{}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			NewSubscriber(subscriberConfig(address), e).Run(ctx)
		}()
		require.Eventually(t, func() bool { return e.messages.Load() > 100 }, 5*time.Second, time.Millisecond)
		cancel()
		e.cancelled.Store(true)
		wait(t, "return of Run", done, time.Second)
		require.LessOrEqual(t, e.late.Load(), int64(1), "a call under way at cancel, no further")
		require.Zero(t, e.ended.Load())
	}
}

// counting is a handler that only counts.
type counting struct {
	messages, ended, late atomic.Int64
	cancelled             atomic.Bool
}

func (c *counting) Connected()         {}
func (c *counting) Disconnected(error) { c.ended.Add(1) }
func (c *counting) Message([][]byte, time.Time) {
	c.messages.Add(1)
	if c.cancelled.Load() {
		c.late.Add(1)
	}
}

func TestCancelInRealHandshakeAndRead(t *testing.T) {
	for name, serve := range map[string]func(net.Conn){
		"silent peer":      drain,
		"silent publisher": send(publisherHandshake()),
		"half a message":   send(append(publisherHandshake(), 0, 100, 1)),
	} {
		t.Run(name, func(t *testing.T) {
			stop := runSubscriber(t, NewSubscriber(subscriberConfig(startPeer(t, serve)), newEvents()))
			time.Sleep(20 * time.Millisecond)
			start := time.Now()
			stop()
			require.Less(t, time.Since(start), 500*time.Millisecond)
		})
	}
}

func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l.Close()
	e := newEvents()
	runSubscriber(t, NewSubscriber(subscriberConfig(l.Addr().String()), e))
	err = wait(t, "refusal", e.disconnected, time.Second)
	var de *DialError
	require.ErrorAs(t, err, &de)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.ErrorContains(t, err, l.Addr().String())
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fpm.0")
	cfg := subscriberConfig(path)
	cfg.Network = "unix"
	e := newEvents()
	runSubscriber(t, NewSubscriber(cfg, e))
	err := wait(t, "absent file", e.disconnected, time.Second)
	require.ErrorIs(t, err, os.ErrNotExist)
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	servePeers(t, l, send(append(publisherHandshake(), message([]byte("m"))...)))
	wait(t, "connection", e.connected, 5*time.Second)
	require.Equal(t, "m", string(wait(t, "message", e.messages, 5*time.Second).frames[0]))
}

func TestKeepAliveIsOn(t *testing.T) {
	address := startPeer(t, send(publisherHandshake()))
	s := NewSubscriber(subscriberConfig(address), newEvents())
	nc, err := s.dial(t.Context(), "tcp", address)
	require.NoError(t, err)
	defer nc.Close()
	raw, err := nc.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	var on int
	require.NoError(t, raw.Control(func(fd uintptr) {
		on, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE)
	}))
	require.NoError(t, err)
	require.NotZero(t, on)
}

// A path that goes deaf without closing: no FIN, no RST, and the kernel keeps acknowledging.
func TestProxyThatStopsForwarding(t *testing.T) {
	upstream := startPeer(t, func(nc net.Conn) {
		_, _ = nc.Write(publisherHandshake())
		for {
			if _, err := nc.Write(message([]byte("m"))); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	var deaf atomic.Bool
	proxy := startPeer(t, func(nc net.Conn) {
		up, err := net.Dial("tcp", upstream)
		if err != nil {
			return
		}
		defer up.Close()
		go func() { _, _ = io.Copy(up, nc) }()
		p := make([]byte, 4096)
		for {
			n, err := up.Read(p)
			if err != nil {
				return
			}
			if deaf.Load() {
				drain(nc)
				return
			}
			if _, err := nc.Write(p[:n]); err != nil {
				return
			}
		}
	})
	e := newEvents()
	cfg := subscriberConfig(proxy)
	cfg.StaleAfter = 300 * time.Millisecond
	runSubscriber(t, NewSubscriber(cfg, e))
	wait(t, "message", e.messages, 5*time.Second)
	deaf.Store(true)
	start := time.Now()
	err := wait(t, "disconnection", e.disconnected, 5*time.Second)
	var te *TimeoutError
	require.ErrorAs(t, err, &te)
	require.GreaterOrEqual(t, time.Since(start), 500*time.Millisecond)
	deaf.Store(false)
	wait(t, "connection", e.connected, 5*time.Second)
	wait(t, "another connection", e.connected, 5*time.Second)
	for len(e.messages) > 0 {
		<-e.messages
	}
	wait(t, "message", e.messages, 5*time.Second)
}

// Bytes that lie in the kernel have come, also when the handler was so slow that every deadline has passed.
func TestSlowHandlerIsNoStalledPeer(t *testing.T) {
	const stale = 100 * time.Millisecond
	address := startPeer(t, func(nc net.Conn) {
		_, _ = nc.Write(append(publisherHandshake(), message([]byte("first"))...))
		_, _ = nc.Write(frame(flagMore, repeat(100_000)))
		time.Sleep(stale / 2)
		_, _ = nc.Write(frame(0, repeat(100_000)))
		time.Sleep(6 * stale)
		_, _ = nc.Write(message([]byte("last")))
		drain(nc)
	})
	c, err := openTo(t, address, subConfig(stale))
	require.NoError(t, err)
	frames, _, err := c.Recv()
	require.NoError(t, err)
	require.Equal(t, "first", string(frames[0]))
	time.Sleep(3 * stale)
	frames, _, err = c.Recv()
	require.NoError(t, err)
	require.Len(t, frames, 2)
	time.Sleep(5 * stale)
	frames, _, err = c.Recv()
	require.NoError(t, err)
	require.Equal(t, "last", string(frames[0]))
}
