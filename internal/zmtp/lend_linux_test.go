// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fake is a lender that takes so many bytes of what comes.
type fake struct {
	taken chan string
	takes int
}

func (f *fake) handle(b []byte, _ time.Time, _ *frameList) int {
	n := min(f.takes, len(b))
	f.taken <- string(b[:n])
	return n
}

// lent brings ours to where its reader waits and has lent the reading, and returns what tells that lend is over.
func lent(t *testing.T, ours *polledConn, peer net.Conn, l lender) (over chan struct{}) {
	t.Helper()
	waitDrained(t, ours, peer)
	over = make(chan struct{})
	go func() {
		defer close(over)
		ours.lend(l)
	}()
	require.Eventually(t, func() bool {
		if !ours.turn.TryLock() {
			return false
		}
		ours.turn.Unlock()
		return true
	}, 10*time.Second, every/4)
	return over
}

func requireLasts(t *testing.T, over chan struct{}) {
	t.Helper()
	select {
	case <-over:
		require.FailNow(t, "the reader was woken")
	case <-time.After(5 * every):
	}
}

func TestWhatIsTakenWakesNobody(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		ours, peer := polledPair(t, network)
		l := &fake{taken: make(chan string, 1), takes: 100}
		over := lent(t, ours, peer, l)
		for i := range 20 {
			_, err := fmt.Fprint(peer, i)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(i), wait(t, "bytes", l.taken, 10*time.Second))
			if i%5 == 0 {
				requireLasts(t, over)
			}
		}
		requireLasts(t, over)
		ours.Close()
		wait(t, "end of the loan", over, 10*time.Second)
	}
}

func TestWhatIsLeftIsTheReaders(t *testing.T) {
	ours, peer := polledPair(t, "tcp")
	l := &fake{taken: make(chan string, 1), takes: 3}
	over := lent(t, ours, peer, l)
	_, err := peer.Write([]byte("abcdef"))
	require.NoError(t, err)
	require.Equal(t, "abc", wait(t, "bytes", l.taken, 10*time.Second))
	wait(t, "end of the loan", over, 10*time.Second)
	_, err = peer.Write([]byte("ghi"))
	require.NoError(t, err)
	one := make([]byte, 1)
	for _, want := range "defghi" {
		_, err := io.ReadFull(ours, one)
		require.NoError(t, err)
		require.Equal(t, string(want), string(one))
	}
	require.Nil(t, ours.left, "its memory is free")
}

// Nobody tells of bytes that a read has left in the socket.
func TestOnlyAnEmptySocketIsLent(t *testing.T) {
	ours, peer := polledPair(t, "tcp")
	waitDrained(t, ours, peer)
	_, err := peer.Write([]byte("abcdef"))
	require.NoError(t, err)
	requireRead(t, ours, "abc")
	time.Sleep(5 * every) // the poller has told all it knows
	select {
	case <-ours.ready:
	default:
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		ours.lend(&fake{taken: make(chan string, 1), takes: 100})
	}()
	wait(t, "end of the loan", over, 10*time.Second)
	requireRead(t, ours, "def")
}

// More than one read brings, the end, a deadline: the reader sees to it.
func TestWhatOnlyTheReaderDoes(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(ours *polledConn, peer net.Conn) error
		want func(t *testing.T, ours *polledConn)
	}{
		{
			"the end", func(_ *polledConn, peer net.Conn) error { return peer.Close() },
			func(t *testing.T, ours *polledConn) {
				_, err := ours.Read(make([]byte, 10))
				require.Equal(t, io.EOF, err)
			},
		},
		{
			"bytes and the end", func(_ *polledConn, peer net.Conn) error {
				_, err := peer.Write([]byte("last"))
				peer.Close()
				return err
			},
			func(t *testing.T, ours *polledConn) {
				_, err := ours.Read(make([]byte, 10))
				require.Equal(t, io.EOF, err, "the bytes were taken")
			},
		},
		{
			"a burst", func(_ *polledConn, peer net.Conn) error {
				_, err := peer.Write(repeat(2*maxBufferBytes + 1))
				return err
			},
			func(*testing.T, *polledConn) {},
		},
		{
			"a deadline", func(ours *polledConn, _ net.Conn) error { return ours.SetReadDeadline(time.Now().Add(every)) },
			func(t *testing.T, ours *polledConn) {
				_, err := ours.Read(make([]byte, 10))
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			},
		},
		{
			"our own end", func(ours *polledConn, _ net.Conn) error { return ours.Close() },
			func(t *testing.T, ours *polledConn) {
				_, err := ours.Read(make([]byte, 10))
				require.ErrorIs(t, err, net.ErrClosed)
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ours, peer := polledPair(t, "tcp")
			l := &fake{taken: make(chan string, 9), takes: 1 << 20}
			over := lent(t, ours, peer, l)
			go func() { assert.NoError(t, tt.do(ours, peer)) }()
			wait(t, "end of the loan", over, 10*time.Second)
			tt.want(t, ours)
		})
	}
}

// Nothing is read for a reader once its deadline has passed, whatever came.
func TestNothingIsBorrowedAfterTheDeadline(t *testing.T) {
	ours, peer := polledPair(t, "tcp")
	over := lent(t, ours, peer, &fake{taken: make(chan string, 1), takes: 100})
	ours.turn.Lock()
	require.NoError(t, ours.SetReadDeadline(time.Now().Add(-time.Second)))
	require.Eventually(t, func() bool {
		ours.mu.Lock()
		defer ours.mu.Unlock()
		return ours.late
	}, 10*time.Second, time.Millisecond)
	_, err := peer.Write([]byte("m"))
	require.NoError(t, err)
	ours.turn.Unlock()
	l, ok := ours.borrow(make([]byte, 10))
	require.False(t, ok)
	require.Empty(t, l.b)
	wait(t, "end of the loan", over, 10*time.Second)
	_, err = ours.Read(make([]byte, 10))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// A read for the reader stops before an urgent byte too.
func TestLentReadingAndUrgentBytes(t *testing.T) {
	ours, peer := polledPair(t, "tcp")
	l := &fake{taken: make(chan string, 9), takes: 100}
	over := lent(t, ours, peer, l)
	sendAroundUrgent(t, ours, peer)
	require.Equal(t, "abc", wait(t, "bytes", l.taken, 10*time.Second))
	wait(t, "end of the loan", over, 10*time.Second)
	requireRead(t, ours, "def")
}

// oneAtATime is a Handler that notices calls at the same time, and messages that are lost, twice or out of order.
type oneAtATime struct {
	t        *testing.T
	busy     atomic.Bool
	next     uint64
	messages atomic.Int64
}

func (o *oneAtATime) enter() func() {
	assert.True(o.t, o.busy.CompareAndSwap(false, true), "two calls at a time")
	return func() { o.busy.Store(false) }
}

func (o *oneAtATime) Connected() {
	defer o.enter()()
	o.next = 0
}

func (o *oneAtATime) Disconnected(error) { defer o.enter()() }

func (o *oneAtATime) Message(frames [][]byte, _ time.Time) {
	defer o.enter()()
	assert.Equal(o.t, o.next, binary.BigEndian.Uint64(frames[len(frames)-1]))
	o.next++
	o.messages.Add(1)
}

// Peers that send whole messages and pieces, pings, bursts, long messages and long lists, and close now and then.
func TestOneReadsAtATime(t *testing.T) {
	address := startPeer(t, func(nc net.Conn) {
		go drain(nc)
		_, _ = nc.Write(publisherHandshake())
		number := make([]byte, 8)
		for i := range uint64(3000) {
			binary.BigEndian.PutUint64(number, i)
			b := message(nil, number)
			switch i % 97 {
			case 1:
				b = join(commandFrame("PING", []byte{0, 1}), b)
			case 2:
				b = message(repeat(3*maxBufferBytes), number)
			case 3:
				b = message(nil, nil, nil, nil, number)
			}
			cut := len(b)
			if i%7 == 0 {
				cut = int(i) % len(b)
			}
			for _, part := range [][]byte{b[:cut], b[cut:]} {
				if _, err := nc.Write(part); err != nil {
					return
				}
				if i%211 < 180 {
					time.Sleep(every / 8)
				}
			}
		}
		nc.Close()
	})
	p := startPoller(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var subscribers sync.WaitGroup
	handlers := make([]*oneAtATime, 8)
	for i := range handlers {
		handlers[i] = &oneAtATime{t: t}
		cfg := subscriberConfig(address)
		cfg.Poller, cfg.InitialBackoff, cfg.MaxBackoff, cfg.StaleAfter = p, time.Millisecond, 2*time.Millisecond, 50*time.Millisecond
		subscribers.Go(func() { NewSubscriber(cfg, handlers[i]).Run(ctx) })
	}
	for _, h := range handlers {
		require.Eventually(t, func() bool { return h.messages.Load() >= 6000 }, time.Minute, 10*time.Millisecond)
	}
	cancel()
	subscribers.Wait()
	for _, h := range handlers {
		h.enter()
	}
}

// slow is a Handler whose Message lasts until it is told, or some time.
type slow struct {
	*events
	began   chan struct{}
	goOn    chan struct{}
	running *atomic.Int64
	most    *atomic.Int64
}

func (s *slow) Message([][]byte, time.Time) {
	now := s.running.Add(1)
	defer s.running.Add(-1)
	for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
	}
	s.began <- struct{}{}
	<-s.goOn
}

func TestRunReturnsAfterTheLastCall(t *testing.T) {
	s := &slow{
		events: newEvents(), began: make(chan struct{}), goOn: make(chan struct{}),
		running: new(atomic.Int64), most: new(atomic.Int64),
	}
	send := make(chan struct{})
	address := startPeer(t, func(nc net.Conn) {
		_, _ = nc.Write(publisherHandshake())
		for range send {
			_, _ = nc.Write(message([]byte("m")))
		}
		drain(nc)
	})
	cfg := subscriberConfig(address)
	cfg.Poller = startPoller(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		NewSubscriber(cfg, s).Run(ctx)
	}()
	for range 3 { // the first is the reader's own
		send <- struct{}{}
		wait(t, "message", s.began, 10*time.Second)
		s.goOn <- struct{}{}
	}
	send <- struct{}{}
	close(send)
	wait(t, "message", s.began, 10*time.Second)
	cancel()
	select {
	case <-done:
		require.FailNow(t, "Run returned while a call lasted")
	case <-time.After(20 * every):
	}
	close(s.goOn)
	wait(t, "end of Run", done, 10*time.Second)
	require.Empty(t, s.began)
}

// Handlers that are slow hold up those of one room at most; the others are run by their readers.
func TestSlowHandlersDoNotHoldUpAll(t *testing.T) {
	const connections = 2*loansAtOnce + 10
	goOn := make(chan struct{})
	running, most := new(atomic.Int64), new(atomic.Int64)
	began := make(chan struct{}, 10*connections)
	next := make(chan struct{})
	address := startPeer(t, func(nc net.Conn) {
		go drain(nc)
		_, _ = nc.Write(join(publisherHandshake(), message([]byte("m"))))
		<-next
		_, _ = nc.Write(message([]byte("m")))
	})
	p := startPoller(t)
	ctx, cancel := context.WithCancel(t.Context())
	var subscribers sync.WaitGroup
	for range connections {
		cfg := subscriberConfig(address)
		cfg.Poller = p
		s := &slow{events: newEvents(), began: began, goOn: goOn, running: running, most: most}
		subscribers.Go(func() { NewSubscriber(cfg, s).Run(ctx) })
	}
	for range connections {
		wait(t, "first message", began, 10*time.Second)
		goOn <- struct{}{}
	}
	time.Sleep(20 * every) // all have lent the reading
	most.Store(0)
	p.mu.Lock() // until there is something for all of them
	close(next)
	time.Sleep(20 * every)
	p.mu.Unlock()
	for range connections {
		wait(t, "second message", began, 10*time.Second)
		time.Sleep(every / 10)
		goOn <- struct{}{}
	}
	require.Greater(t, most.Load(), int64(1))
	cancel()
	subscribers.Wait()
}
