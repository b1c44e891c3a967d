// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

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

// What came before the end, and was not handed over, is not handed over after it.
func TestNoCallBeginsAfterTheEnd(t *testing.T) {
	c, _ := scriptedGuard(t, join(message([]byte("a")), message([]byte("b"))), testLimits)
	ctx, cancel := context.WithCancel(t.Context())
	e := newEvents()
	s := &subscription{ctx: ctx, handler: e}
	require.True(t, s.message([][]byte{[]byte("before")}, time.Now()))
	cancel()
	require.NoError(t, c.serve(s), "it ends without an error")
	require.Zero(t, c.guard.handle(message([]byte("c")), time.Now(), new(frameList)), "nothing is taken for it")
	require.Len(t, e.messages, 1)
}
