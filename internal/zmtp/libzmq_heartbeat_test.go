// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"context"
	"encoding/binary"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A publisher with heartbeats drops whoever does not answer its PINGs; we must answer, with messages or without.
func TestLibzmqHeartbeats(t *testing.T) {
	heartbeats := request{"HEARTBEAT_IVL": 100, "HEARTBEAT_TIMEOUT": 300, "HEARTBEAT_TTL": 300}
	p := startLibzmq(t)
	address := p.bind(t, "PUB", heartbeats, anyPort)

	nc, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer nc.Close()
	_, err = nc.Write(join(goodGreeting(), commandFrame("READY", property("Socket-Type", "SUB")), message([]byte{1})))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return p.disconnections(t) == 1 }, 5*time.Second, 50*time.Millisecond,
		"a subscriber that does not answer is dropped: otherwise this test proves nothing")

	e := follow(t, address, 10*time.Second)
	p.exchange(t, e)
	quiet := 1500 * time.Millisecond
	if long() {
		quiet = 40 * time.Second
	}
	time.Sleep(quiet)
	require.Equal(t, 1, p.disconnections(t))
	require.Empty(t, e.disconnected)
	p.do(t, "send", nil)
	wait(t, "message", e.messages, time.Second)
}

// libzmq puts heartbeats between the frames of a message when the message is split over two of its writes.
func TestLibzmqHeartbeatsWithinMessages(t *testing.T) {
	p := startLibzmq(t)
	address := p.bind(t, "PUB", request{"HEARTBEAT_IVL": 1, "HEARTBEAT_TIMEOUT": 60_000}, anyPort)
	e := &ordered{events: newEvents()}
	s := NewSubscriber(subscriberConfig(address), e)
	dial := s.dial
	var taps atomic.Pointer[tap]
	s.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		taps.Store(&tap{Conn: nc, framer: framer{limits: testLimits}})
		return taps.Load(), nil
	}
	stop := runSubscriber(t, s)
	p.exchange(t, e.events)
	p.do(t, "send", request{"seconds": 1, "size": 3000, "frames": 10})
	p.exchange(t, e.events)
	stop()
	require.Empty(t, e.disconnected)
	require.Zero(t, e.wrong)
	require.Greater(t, e.right, 100)
	require.Positive(t, taps.Load().within, "no heartbeat came within a message: this test proves nothing")
	t.Logf("%d messages, %d commands, %d of them within a message", e.right, taps.Load().commands, taps.Load().within)
}

// ordered counts messages of 12 frames that are in order, and others but those of 3 frames, which it passes on.
type ordered struct {
	*events
	right, wrong int
	last         uint64
}

func (o *ordered) Message(frames [][]byte, at time.Time) {
	switch {
	case len(frames) == 3:
		o.events.Message(frames, at)
	case len(frames) == 12 && len(frames[11]) == 3000 && binary.BigEndian.Uint64(frames[1]) > o.last:
		o.right++
		o.last = binary.BigEndian.Uint64(frames[1])
	default:
		o.wrong++
	}
}

// tap counts the commands that pass, and those between the frames of a message.
type tap struct {
	net.Conn
	framer           framer
	skip             int64 // bytes before the next header
	started          bool
	rest             []byte
	commands, within int
}

func (c *tap) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.started && n > 0 {
		c.started, c.skip = true, greetingLen
	}
	c.rest = append(c.rest, p[:n]...)
	for {
		skipped := min(c.skip, int64(len(c.rest)))
		c.rest, c.skip = c.rest[skipped:], c.skip-skipped
		h, ok, ferr := c.framer.next(c.rest)
		if ferr != nil || !ok {
			return n, err
		}
		if h.command {
			c.commands++
			if c.framer.more {
				c.within++
			}
		}
		c.skip = int64(h.headerLen) + h.size
	}
}

// A publisher without messages is pinged, answers, and is left alone.
func TestLibzmqSilentPublisherIsKept(t *testing.T) {
	p := startLibzmq(t)
	e := follow(t, p.bind(t, "PUB", nil, anyPort), 100*time.Millisecond)
	wait(t, "connection", e.connected, 5*time.Second)
	quiet := 2 * time.Second
	if long() {
		quiet = 60 * time.Second
	}
	time.Sleep(quiet)
	require.Empty(t, e.disconnected)
	require.Zero(t, p.disconnections(t))
	p.exchange(t, e)
	require.Empty(t, e.connected)
}

// A publisher that is stopped, its kernel still acknowledging, is given up after twice StaleAfter and found again later.
func TestLibzmqStoppedPublisherIsRedialled(t *testing.T) {
	const stale = 300 * time.Millisecond
	p := startLibzmq(t)
	e := follow(t, p.bind(t, "PUB", nil, anyPort), stale)
	p.exchange(t, e)
	<-e.connected
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGSTOP))
	start := time.Now()
	err := wait(t, "disconnection", e.disconnected, 5*time.Second)
	require.Equal(t, &TimeoutError{Wait: WaitAnswer, After: stale}, err)
	require.GreaterOrEqual(t, time.Since(start), stale)
	require.Less(t, time.Since(start), 2*stale+time.Second)
	requireHandshakeError(t, wait(t, "second attempt", e.disconnected, 5*time.Second), ReasonTimeout)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
	wait(t, "connection", e.connected, 5*time.Second)
	p.exchange(t, e)
}
