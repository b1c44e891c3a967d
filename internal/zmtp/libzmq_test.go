// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

const anyPort = "tcp://127.0.0.1:*"

// follow runs a subscriber against a libzmq peer.
func follow(t *testing.T, address string, staleAfter time.Duration) *events {
	t.Helper()
	e := newEvents()
	cfg := subscriberConfig(address)
	cfg.StaleAfter = staleAfter
	cfg.Poller = startPoller(t)
	runSubscriber(t, NewSubscriber(cfg, e))
	return e
}

func sequenceOf(t *testing.T, m received) uint64 {
	t.Helper()
	require.GreaterOrEqual(t, len(m.frames), 2)
	require.Empty(t, m.frames[0])
	require.Len(t, m.frames[1], 8)
	return binary.BigEndian.Uint64(m.frames[1])
}

func TestLibzmqPublisher(t *testing.T) {
	p := startLibzmq(t)
	t.Log(p.do(t, "version", nil))
	e := follow(t, p.bind(t, "PUB", nil, anyPort), 10*time.Second)
	p.exchange(t, e)
	// Fewer than the high-water marks: none may be lost.
	p.do(t, "send", request{"count": 900})
	first := sequenceOf(t, wait(t, "message", e.messages, 5*time.Second))
	for i := range uint64(899) {
		m := wait(t, "message", e.messages, 5*time.Second)
		require.Equal(t, first+1+i, sequenceOf(t, m))
		require.Len(t, m.frames, 3)
		require.Equal(t, repeat(435), m.frames[2])
	}
	require.Empty(t, e.disconnected)
}

func TestLibzmqOverUnixSocket(t *testing.T) {
	p := startLibzmq(t)
	path := filepath.Join(t.TempDir(), "fpm.0")
	require.Equal(t, path, p.bind(t, "PUB", nil, "ipc://"+path))
	e := newEvents()
	cfg := subscriberConfig(path)
	cfg.Network = "unix"
	runSubscriber(t, NewSubscriber(cfg, e))
	p.exchange(t, e)
	require.Empty(t, e.disconnected)
}

// A slow or bursty publisher drops at its own high-water mark; what arrives is in order and the connection stays.
func TestLibzmqBurstsOverTheHighWaterMark(t *testing.T) {
	p := startLibzmq(t)
	e := follow(t, p.bind(t, "PUB", request{"SNDHWM": 10}, anyPort), 10*time.Second)
	p.exchange(t, e)
	sent := 0
	for range 20 {
		p.do(t, "send", request{"count": 1000})
		sent += 1000
		time.Sleep(10 * time.Millisecond)
	}
	p.do(t, "send", request{"size": 7})
	got, last := 0, uint64(0)
	for {
		m := wait(t, "message", e.messages, 5*time.Second)
		require.Len(t, m.frames, 3)
		require.Greater(t, sequenceOf(t, m), last)
		last = sequenceOf(t, m)
		got++
		if len(m.frames[2]) == 7 {
			break
		}
	}
	t.Logf("%d of %d arrived", got-1, sent)
	require.Greater(t, got, 100)
	require.Empty(t, e.disconnected)
}

// The publisher may come long after its subscriber, and be another process each time.
func TestLibzmqBindsAfterOurDial(t *testing.T) {
	address := fmt.Sprintf("127.0.0.1:%d", ports.One(t))
	e := follow(t, address, 10*time.Second)
	for range 5 {
		var de *DialError
		require.ErrorAs(t, wait(t, "refusal", e.disconnected, 5*time.Second), &de)
	}
	for range 2 {
		p := startLibzmq(t)
		p.bind(t, "PUB", nil, "tcp://"+address)
		wait(t, "connection", e.connected, 5*time.Second)
		for len(e.disconnected) > 0 {
			<-e.disconnected
		}
		p.exchange(t, e)
		require.Empty(t, e.disconnected)
		require.NoError(t, p.cmd.Process.Kill())
		err := wait(t, "disconnection", e.disconnected, 5*time.Second)
		require.True(t, isEnd(err), "%v", err)
	}
}

// isEnd tells whether the peer ended the connection, in an orderly way or not.
func isEnd(err error) bool {
	var op *net.OpError
	return err == io.EOF || err == io.ErrUnexpectedEOF || errors.As(err, &op)
}

// After every one of many restarts the subscription is there again and every message of it arrives.
func TestLibzmqManyRestarts(t *testing.T) {
	const messages = 5
	restarts := 100
	if long() {
		restarts = 1000
	}
	p := startLibzmq(t)
	// Not one of those that the system gives to our own dials: one of them would have it when the publisher comes back.
	address := p.bind(t, "XPUB", nil, fmt.Sprintf("tcp://127.0.0.1:%d", ports.One(t)))
	p.do(t, "close", nil)
	e := follow(t, address, 10*time.Second)
	p.begin(t, "restarts", request{"count": restarts, "endpoint": "tcp://" + address, "messages": messages})
	for i := range restarts * messages {
		require.EqualValues(t, i, sequenceOf(t, wait(t, "message", e.messages, 10*time.Second)))
	}
	p.end(t)
	// One more when we are back before the old socket has closed its listener.
	require.GreaterOrEqual(t, len(e.connected), restarts)
}

func TestLibzmqRouterIsNamed(t *testing.T) {
	p := startLibzmq(t)
	e := follow(t, p.bind(t, "ROUTER", nil, anyPort), 10*time.Second)
	he := requireHandshakeError(t, wait(t, "disconnection", e.disconnected, 5*time.Second), ReasonSocketType)
	require.Equal(t, "ROUTER", he.PeerSocketType)
}

// A message over the limit costs its connection, not the subscription.
func TestLibzmqOversizeMessage(t *testing.T) {
	p := startLibzmq(t)
	e := follow(t, p.bind(t, "PUB", nil, anyPort), 10*time.Second)
	p.exchange(t, e)
	p.do(t, "send", request{"size": 64 << 20})
	require.Equal(t, &OversizeError{Part: PartMessage, Size: 64<<20 + 8, Limit: 1 << 20}, wait(t, "disconnection", e.disconnected, 5*time.Second))
	p.exchange(t, e)
	p.do(t, "send", request{"size": 1, "frames": 15})
	require.Equal(t, &OversizeError{Part: PartFrames, Size: 17, Limit: 16}, wait(t, "disconnection", e.disconnected, 5*time.Second))
	p.exchange(t, e)
}

// The server role, with a pusher that connects to us.
func TestLibzmqPusher(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	p := startLibzmq(t)
	p.do(t, "open", request{"type": "PUSH", "options": request{"HEARTBEAT_IVL": 50, "HEARTBEAT_TIMEOUT": 200}})
	p.do(t, "connect", request{"endpoint": "tcp://" + l.Addr().String()})
	nc, err := l.Accept()
	require.NoError(t, err)
	cfg := subConfig(100 * time.Millisecond)
	cfg.SocketType = zmq4.Pull
	c, err := Open(nc, cfg, time.Now().Add(time.Second))
	require.NoError(t, err)
	defer c.Close()
	for i := range uint64(5) {
		p.do(t, "send", nil)
		frames, at, err := c.Recv()
		require.NoError(t, err)
		require.Equal(t, i, sequenceOf(t, received{frames, at}))
	}
	done := make(chan error, 1)
	go func() {
		_, _, err := c.Recv()
		done <- err
	}()
	time.Sleep(time.Second)
	require.Zero(t, p.disconnections(t))
	p.do(t, "close", nil)
	require.True(t, isEnd(wait(t, "end", done, 5*time.Second)))
}
