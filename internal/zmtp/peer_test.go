// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// What a peer puts on the wire, byte by byte.

func greeting(major, minor byte, mechanism string) []byte {
	b := make([]byte, greetingLen)
	b[0], b[signatureFooterAt] = signatureHeader, signatureFooter
	b[versionMajorAt], b[versionMinorAt] = major, minor
	copy(b[mechanismAt:asServerAt], mechanism)
	return b
}

func goodGreeting() []byte { return greeting(3, 1, "NULL") }

func property(name, value string) []byte {
	b := append([]byte{byte(len(name))}, name...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(value)))
	return append(b, value...)
}

func commandFrame(name string, data ...[]byte) []byte {
	body := append([]byte{byte(len(name))}, name...)
	return frame(flagCommand, append(body, bytes.Join(data, nil)...))
}

func frame(flags byte, body []byte) []byte {
	if len(body) > 255 {
		return append(longHeader(flags, uint64(len(body))), body...)
	}
	return append([]byte{flags, byte(len(body))}, body...)
}

func longHeader(flags byte, size uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{flags | flagLong}, size)
}

func message(frames ...[]byte) []byte {
	var b []byte
	for i, f := range frames {
		flags := byte(flagMore)
		if i == len(frames)-1 {
			flags = 0
		}
		b = append(b, frame(flags, f)...)
	}
	return b
}

// publisherHandshake is all that a publisher sends before its first message.
func publisherHandshake() []byte {
	return append(goodGreeting(), commandFrame("READY", property("Socket-Type", "PUB"), property("Identity", ""))...)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

var testLimits = Limits{MaxMessageBytes: 1 << 20, MaxFrames: 16}

func subConfig(staleAfter time.Duration) ConnConfig {
	return ConnConfig{SocketType: zmq4.Sub, StaleAfter: staleAfter, Limits: testLimits}
}

// startPeer listens and serves each accepted connection with serve, until the test ends.
func startPeer(t *testing.T, serve func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	servePeers(t, l, serve)
	return l.Addr().String()
}

func servePeers(t *testing.T, l net.Listener, serve func(net.Conn)) {
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			served := make(chan struct{})
			go func() {
				defer close(served)
				serve(nc)
			}()
			defer func() {
				nc.Close()
				<-served
			}()
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		l.Close()
		<-done
	})
}

// send returns a peer that sends b and then only reads until we close.
func send(b []byte) func(net.Conn) {
	return func(nc net.Conn) {
		_, _ = nc.Write(b)
		drain(nc)
	}
}

func drain(nc net.Conn) {
	p := make([]byte, 4096)
	for {
		if _, err := nc.Read(p); err != nil {
			return
		}
	}
}

// openTo dials and opens a connection as a subscriber with a second for the handshake.
func openTo(t *testing.T, address string, cfg ConnConfig) (*Conn, error) {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	require.NoError(t, err)
	c, err := Open(nc, cfg, time.Now().Add(time.Second))
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

// events records what a Handler is told, in order.
type events struct {
	connected    chan struct{}
	disconnected chan error
	messages     chan received
}

type received struct {
	frames [][]byte
	at     time.Time
}

func newEvents() *events {
	return &events{
		connected:    make(chan struct{}, 1<<10),
		disconnected: make(chan error, 1<<10),
		messages:     make(chan received, 1<<17),
	}
}

func (e *events) Connected()             { e.connected <- struct{}{} }
func (e *events) Disconnected(err error) { e.disconnected <- err }
func (e *events) Message(frames [][]byte, at time.Time) {
	e.messages <- received{frames: cloneFrames(frames), at: at}
}

// cloneFrames keeps frames beyond the next message.
func cloneFrames(frames [][]byte) [][]byte {
	kept := make([][]byte, len(frames))
	for i, frame := range frames {
		kept[i] = append([]byte{}, frame...)
	}
	return kept
}

// wait returns the next value of a channel of events; it fails the test after limit.
func wait[T any](t *testing.T, what string, c <-chan T, limit time.Duration) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(limit):
		require.FailNow(t, "nothing came", "%s within %v", what, limit)
		panic("unreachable")
	}
}

// runSubscriber runs s until the test ends, or stop is called, and checks that Run returns at once.
func runSubscriber(t *testing.T, s *Subscriber) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	stop = func() {
		cancel()
		select {
		case <-done:
		case <-time.After(time.Second):
			t.Error("Run did not return at cancel")
			<-done
		}
	}
	t.Cleanup(stop)
	return stop
}

// startPoller returns a poller that outlives the connections that are opened after it.
func startPoller(t *testing.T) *Poller {
	t.Helper()
	p := NewPoller(2 * time.Millisecond)
	t.Cleanup(p.Close)
	return p
}

func subscriberConfig(address string) SubscriberConfig {
	return SubscriberConfig{
		Network: "tcp", Address: address,
		DialTimeout: time.Second, InitialBackoff: 10 * time.Millisecond, MaxBackoff: 100 * time.Millisecond,
		StaleAfter: 10 * time.Second, Limits: testLimits,
	}
}

// repeat is a string of n bytes.
func repeat(n int) []byte { return []byte(strings.Repeat("x", n)) }

func requireHandshakeError(t *testing.T, err error, reason Reason) *HandshakeError {
	t.Helper()
	var he *HandshakeError
	require.ErrorAs(t, err, &he)
	require.Equal(t, reason, he.Reason, err.Error())
	return he
}
