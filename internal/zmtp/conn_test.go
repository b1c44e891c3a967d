// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/stretchr/testify/require"
)

// Peers on real TCP that are no publishers. None may take longer than the handshake has time, one that says something wrong
// not even that.
func TestOpenAgainstStrangers(t *testing.T) {
	const handshakeTime = 300 * time.Millisecond
	pub := property("Socket-Type", "PUB")
	quietly := http.Server{Handler: http.NotFoundHandler()}
	for _, tt := range []struct {
		name   string
		peer   func(net.Conn)
		reason Reason
		says   string
		waits  bool // the peer gives no sign that something is wrong
	}{
		{"silence", drain, ReasonTimeout, "0 of 64 bytes", true},
		{"one byte at a time", drip(publisherHandshake(), 20*time.Millisecond), ReasonTimeout, "of 64 bytes", true},
		{"greeting cut at byte 63, open", send(goodGreeting()[:63]), ReasonTimeout, "63 of 64 bytes", true},
		{"greeting cut at byte 63, closed", hangUp(goodGreeting()[:63]), ReasonClosed, "63 of 64 bytes", false},
		{"closed at once", hangUp(nil), ReasonClosed, "0 of 64 bytes", false},
		{"greeting only", send(goodGreeting()), ReasonTimeout, "READY did not", true},
		{"READY cut", send(publisherHandshake()[:70]), ReasonTimeout, "READY did not", true},
		{"READY cut in its header", send(publisherHandshake()[:65]), ReasonTimeout, "READY did not", true},
		{"closed before READY", hangUp(goodGreeting()), ReasonClosed, "READY did not", false},
		{"reset", reset, ReasonClosed, "", false},
		{"ZMTP 2.0, waiting for our identity", send(append(greeting(1, 2, "")[:12], 0, 0)), ReasonVersion, "ZMTP 2.0", false},
		{"ZMTP 1.0, waiting for our identity", send([]byte{1, 0}), ReasonSignature, "0xff", false},
		{"CURVE", send(greeting(3, 1, "CURVE")), ReasonMechanism, "CURVE", false},
		{"an HTTP server that waits for a whole line", func(nc net.Conn) { serveHTTP(&quietly, nc) }, ReasonTimeout, "0 of 64 bytes", true},
		{"an HTTP server that answers", send([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")), ReasonSignature, "HTTP server", false},
		{"a TLS server that closes", serveTLS, ReasonClosed, "0 of 64 bytes", false},
		{"a TLS server that sends an alert", send([]byte{0x15, 3, 1, 0, 2, 2, 70}), ReasonSignature, "TLS server", false},
		{"a ROUTER", send(join(goodGreeting(), commandFrame("READY", property("Socket-Type", "ROUTER")))), ReasonSocketType, "ROUTER", false},
		{"READY without Socket-Type", send(join(goodGreeting(), commandFrame("READY"))), ReasonReady, "missing", false},
		{"READY with an empty Socket-Type", send(join(goodGreeting(), commandFrame("READY", property("Socket-Type", "")))), ReasonReady, "empty", false},
		{"READY with a cut property", send(join(goodGreeting(), commandFrame("READY", pub, pub[:9]))), ReasonReady, "property 2", false},
		{"READY with a cut value length", send(join(goodGreeting(), commandFrame("READY", pub[:14]))), ReasonReady, "value length", false},
		{"READY of 2^40", send(join(goodGreeting(), longHeader(flagCommand, 1<<40))), ReasonReady, "1099511627776", false},
		{"READY of 2^63", send(join(goodGreeting(), longHeader(flagCommand, 1<<63))), ReasonReady, "9223372036854775808", false},
		{"READY with reserved flags", send(join(goodGreeting(), []byte{0x84, 1, 'x'})), ReasonReady, "flags 0x84", false},
		{"a message before READY", send(join(goodGreeting(), message([]byte("m")))), ReasonReady, "before its READY", false},
		{"refused", send(join(goodGreeting(), commandFrame("ERROR", []byte("\x06No way")))), ReasonPeerError, "No way", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			nc, err := net.Dial("tcp", startPeer(t, tt.peer))
			require.NoError(t, err)
			start := time.Now()
			_, err = Open(nc, subConfig(time.Second), start.Add(handshakeTime))
			took := time.Since(start)
			he := requireHandshakeError(t, err, tt.reason)
			require.ErrorContains(t, err, tt.says)
			if tt.waits {
				require.GreaterOrEqual(t, took, handshakeTime)
			}
			require.Less(t, took, handshakeTime+2*time.Second)
			if tt.reason == ReasonSocketType {
				require.Equal(t, "ROUTER", he.PeerSocketType)
			}
			_, err = nc.Read(make([]byte, 1))
			require.ErrorIs(t, err, net.ErrClosed, "a failed Open closes the connection")
		})
	}
}

// drip sends b one byte an interval.
func drip(b []byte, interval time.Duration) func(net.Conn) {
	return func(nc net.Conn) {
		for i := range b {
			if _, err := nc.Write(b[i : i+1]); err != nil {
				return
			}
			time.Sleep(interval)
		}
		drain(nc)
	}
}

// hangUp sends b and closes in an orderly way: what we sent is read first, otherwise the close would be a reset.
func hangUp(b []byte) func(net.Conn) {
	return func(nc net.Conn) {
		_, _ = io.ReadFull(nc, make([]byte, greetingLen))
		_, _ = nc.Write(b)
		_ = nc.(*net.TCPConn).CloseWrite()
		drain(nc)
	}
}

func reset(nc net.Conn) {
	_, _ = io.ReadFull(nc, make([]byte, greetingLen))
	_ = nc.(*net.TCPConn).SetLinger(0)
	nc.Close()
}

// serveHTTP lets a real HTTP server have one connection until we close it.
func serveHTTP(s *http.Server, nc net.Conn) {
	closed := make(chan struct{})
	l := &oneConn{conn: &closeNotifier{Conn: nc, closed: closed}, closed: closed}
	_ = s.Serve(l)
}

// serveTLS answers like a TLS server; what it gets is no ClientHello.
func serveTLS(nc net.Conn) {
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	defer certificate.Close()
	_ = tls.Server(nc, certificate.TLS).Handshake()
	nc.Close()
}

// oneConn is a listener that accepts one connection, and ends when that is closed.
type oneConn struct {
	conn   net.Conn
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}
func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

type closeNotifier struct {
	net.Conn
	closed chan struct{}
	done   bool
}

func (c *closeNotifier) Close() error {
	if !c.done {
		c.done = true
		close(c.closed)
	}
	return c.Conn.Close()
}

// Versions on real TCP, with messages after the handshake.
func TestVersionsAccepted(t *testing.T) {
	for _, v := range [][2]byte{{3, 0}, {3, 1}, {4, 0}} {
		stream := join(greeting(v[0], v[1], "NULL"), commandFrame("READY", property("Socket-Type", "PUB")), message([]byte("m")))
		c, err := openTo(t, startPeer(t, send(stream)), subConfig(time.Second))
		require.NoError(t, err)
		before := time.Now()
		frames, at, err := c.Recv()
		require.NoError(t, err)
		require.Equal(t, [][]byte{[]byte("m")}, frames)
		require.WithinDuration(t, before, at, time.Second)
	}
}

// The bytes we send are a good greeting of ZMTP 3.0, a READY of ours and the subscription, in this order.
func TestWhatWeSend(t *testing.T) {
	got := make(chan []byte, 1)
	address := startPeer(t, func(nc net.Conn) {
		_, _ = nc.Write(publisherHandshake())
		b, _ := io.ReadAll(nc)
		got <- b
	})
	c, err := openTo(t, address, subConfig(time.Second))
	require.NoError(t, err)
	require.NoError(t, c.SubscribeAll())
	c.Close()
	b := <-got
	require.NoError(t, checkGreeting(b[:greetingLen]))
	require.Equal(t, []byte{3, 0}, b[versionMajorAt:mechanismAt])
	rest := b[greetingLen:]
	require.Equal(t, byte(flagCommand), rest[0])
	ready := rest[shortHeaderLen : shortHeaderLen+int(rest[1])]
	_, err = checkReady(ready, zmq4.Pub)
	require.NoError(t, err)
	require.Equal(t, []byte{0, 1, 1}, rest[shortHeaderLen+len(ready):])
}

// The connection does not care who dialled: an accepted one with a PULL socket reads what a pusher sends.
func TestOpenAccepted(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	pusher, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer pusher.Close()
	_, err = pusher.Write(join(goodGreeting(), commandFrame("READY", property("Socket-Type", "PUSH")), message([]byte("tsme1"), []byte("x"))))
	require.NoError(t, err)
	nc, err := l.Accept()
	require.NoError(t, err)
	cfg := subConfig(time.Second)
	cfg.SocketType = zmq4.Pull
	c, err := Open(nc, cfg, time.Now().Add(time.Second))
	require.NoError(t, err)
	defer c.Close()
	frames, _, err := c.Recv()
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte("tsme1"), []byte("x")}, frames)
}

// A peer that sends PINGs and reads nothing must not hold us in the write of a PONG.
func TestPeerThatTakesNoBytes(t *testing.T) {
	pings := strings.Repeat(string(commandFrame("PING", []byte{0, 0}, repeat(16))), 1000)
	address := startPeer(t, func(nc net.Conn) {
		_ = nc.(*net.TCPConn).SetReadBuffer(4096)
		_, _ = nc.Write(publisherHandshake())
		for {
			if _, err := io.WriteString(nc, pings); err != nil {
				return
			}
		}
	})
	c, err := openTo(t, address, subConfig(200*time.Millisecond))
	require.NoError(t, err)
	_ = c.guard.Conn.(*net.TCPConn).SetWriteBuffer(4096)
	_, _, err = c.Recv()
	require.Equal(t, &TimeoutError{Wait: WaitWrite, After: 200 * time.Millisecond}, err)
	var timeout interface{ Timeout() bool }
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout())
}
