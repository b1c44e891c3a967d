// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"context"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

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
