// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/stretchr/testify/require"
)

// scripted is a peer in memory: it sends b in pieces of at most piece bytes, then ends the stream. What we send goes to sent.
type scripted struct {
	net.Conn // nil: nothing else may be called
	b        []byte
	piece    int
	sent     []byte

	readDeadlines int
}

func (s *scripted) Read(p []byte) (int, error) {
	if len(s.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.b[:min(len(s.b), s.piece)])
	s.b = s.b[n:]
	return n, nil
}

func (s *scripted) Write(p []byte) (int, error) {
	s.sent = append(s.sent, p...)
	return len(p), nil
}

func (s *scripted) Close() error                { return nil }
func (s *scripted) SetDeadline(time.Time) error { return nil }
func (s *scripted) SetReadDeadline(time.Time) error {
	s.readDeadlines++
	return nil
}
func (s *scripted) SetWriteDeadline(time.Time) error { return nil }

// recvAll opens a connection to a peer that sends b and returns its messages and the error that ends it.
func recvAll(b []byte, piece int) (messages [][][]byte, sent []byte, err error) {
	peer := &scripted{b: b, piece: piece}
	c, err := Open(peer, subConfig(time.Second), time.Now().Add(time.Second))
	for err == nil {
		var frames [][]byte
		if frames, _, err = c.Recv(); err == nil {
			messages = append(messages, cloneFrames(frames))
		}
	}
	return messages, peer.sent, err
}

func TestMessagesInAnyPieces(t *testing.T) {
	ping := commandFrame("PING", []byte{0, 10}, []byte("context"))
	big := repeat(300_000)
	stream := join(publisherHandshake(),
		message([]byte("a")),
		message(nil, []byte("12345678"), repeat(435)),
		ping,
		message(nil),
		message(nil, nil, nil),
		// Heartbeats between the frames of a message, as libzmq sends them.
		frame(flagMore, []byte("first")), ping, commandFrame("PONG"), frame(flagMore, nil), ping, frame(0, repeat(256)),
		commandFrame("UNKNOWN", repeat(8000)),
		message(big, []byte("tail")),
		longHeader(0, 3), []byte("abc"),
	)
	want := [][][]byte{
		{[]byte("a")},
		{{}, []byte("12345678"), repeat(435)},
		{{}},
		{{}, {}, {}},
		{[]byte("first"), {}, repeat(256)},
		{big, []byte("tail")},
		{[]byte("abc")},
	}
	pong := commandFrame("PONG", []byte("context"))
	for _, piece := range []int{1, 2, 3, 7, 64, 100, 1000, 4096, 65536, 1 << 20} {
		t.Run(fmt.Sprint(piece), func(t *testing.T) {
			got, sent, err := recvAll(stream, piece)
			require.Equal(t, io.EOF, err)
			require.Equal(t, want, got)
			require.Equal(t, join(pong, pong, pong), sent[len(sent)-3*len(pong):])
		})
	}
}

func TestPong(t *testing.T) {
	for _, tt := range []struct {
		name    string
		command []byte
		pong    []byte // nil for none
	}{
		{"context comes back", commandFrame("PING", []byte{0, 1}, []byte("abc")), commandFrame("PONG", []byte("abc"))},
		{"no context", commandFrame("PING", []byte{0, 1}), commandFrame("PONG")},
		{"TTL cut short", commandFrame("PING", []byte{0}), commandFrame("PONG")},
		{"no TTL", commandFrame("PING"), commandFrame("PONG")},
		{"longest context", commandFrame("PING", []byte{0, 1}, repeat(16)), commandFrame("PONG", repeat(16))},
		{"context too long", commandFrame("PING", []byte{0, 1}, repeat(5000)), commandFrame("PONG", repeat(16))},
		{"PONG", commandFrame("PONG", repeat(16)), nil},
		{"another name that begins so", commandFrame("PINGS", []byte{0, 1}), nil},
		{"ERROR", commandFrame("ERROR", []byte{0}), nil},
		{"name cut short", []byte{flagCommand, 3, 200, 'P', 'I'}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, silent, err := recvAll(publisherHandshake(), 64)
			require.Equal(t, io.EOF, err)
			got, sent, err := recvAll(join(publisherHandshake(), tt.command, message([]byte("m"))), 64)
			require.Equal(t, io.EOF, err)
			require.Len(t, got, 1)
			require.Equal(t, string(tt.pong), string(sent[len(silent):]))
		})
	}
}

// The end of the stream is io.EOF only after a whole message.
func TestEndOfStream(t *testing.T) {
	stream := join(publisherHandshake(), message([]byte("whole")), message([]byte("ab"), repeat(300)), commandFrame("PING", []byte{0, 0}))
	whole := len(publisherHandshake()) + len(message([]byte("whole")))
	second := whole + len(message([]byte("ab"), repeat(300)))
	for n := range len(stream) + 1 {
		_, _, err := recvAll(stream[:n], 1<<20)
		switch {
		case n < len(publisherHandshake()):
			he := requireHandshakeError(t, err, ReasonClosed)
			require.True(t, errors.Is(he, io.EOF) || errors.Is(he, io.ErrUnexpectedEOF))
		case n == len(publisherHandshake()), n == whole, n == second, n == len(stream):
			require.Equal(t, io.EOF, err, "after %d bytes", n)
		default:
			require.Equal(t, io.ErrUnexpectedEOF, err, "after %d bytes", n)
		}
	}
}

// allocated is what f allocates, in bytes.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Whatever size a peer announces, and wherever: the connection ends with an error that names it, and nothing of that size
// is allocated.
func TestGuardRefusesBeforeAllocation(t *testing.T) {
	handshake := publisherHandshake()
	for _, size := range []uint64{1<<20 + 1, 1 << 30, 1 << 40, math.MaxInt64, 1 << 63, math.MaxUint64} {
		for _, tt := range []struct {
			name string
			sent []byte
			part Part
		}{
			{"first frame", join(handshake, longHeader(0, size)), PartMessage},
			{"first of several frames", join(handshake, longHeader(flagMore, size)), PartMessage},
			{"second frame", join(handshake, frame(flagMore, nil), longHeader(0, size)), PartMessage},
			{"after a message", join(handshake, message([]byte("m")), longHeader(0, size)), PartMessage},
			{"command", join(handshake, longHeader(flagCommand, size)), PartCommand},
			{"command within a message", join(handshake, frame(flagMore, nil), longHeader(flagCommand, size)), PartCommand},
			{"READY", join(goodGreeting(), longHeader(flagCommand, size)), PartCommand},
			{"message in place of READY", join(goodGreeting(), longHeader(0, size)), PartMessage},
		} {
			t.Run(fmt.Sprintf("%s of %d", tt.name, size), func(t *testing.T) {
				var err error
				require.Less(t, allocated(func() { _, _, err = recvAll(tt.sent, 1<<20) }), uint64(100_000))
				var oe *OversizeError
				require.ErrorAs(t, err, &oe)
				require.Equal(t, OversizeError{Part: tt.part, Size: size, Limit: oe.Limit}, *oe)
			})
		}
	}
	t.Run("10000 tiny frames", func(t *testing.T) {
		stream := handshake
		for range 10_000 {
			stream = append(stream, frame(flagMore, []byte("x"))...)
		}
		var err error
		require.Less(t, allocated(func() { _, _, err = recvAll(stream, 1<<20) }), uint64(200_000))
		require.Equal(t, &OversizeError{Part: PartFrames, Size: 17, Limit: 16}, err)
	})
	t.Run("many frames that together are too large", func(t *testing.T) {
		stream := handshake
		for range 16 {
			stream = append(stream, frame(flagMore, repeat(70_000))...)
		}
		_, _, err := recvAll(stream, 1<<20)
		require.Equal(t, &OversizeError{Part: PartMessage, Size: 15 * 70_000, Limit: 1 << 20}, err)
	})
	t.Run("property of 4 GiB", func(t *testing.T) {
		var err error
		stream := join(goodGreeting(), commandFrame("READY", []byte("\x0bSocket-Type\xff\xff\xff\xff")))
		require.Less(t, allocated(func() { _, _, err = recvAll(stream, 1<<20) }), uint64(100_000))
		requireHandshakeError(t, err, ReasonReady)
	})
	t.Run("message of the limit", func(t *testing.T) {
		got, _, err := recvAll(join(handshake, message(repeat(1<<20))), 1<<20)
		require.Equal(t, io.EOF, err)
		require.Len(t, got, 1)
		require.Len(t, got[0][0], 1<<20)
	})
}

func TestProtocolErrors(t *testing.T) {
	for name, b := range map[string][]byte{
		"reserved flag":                 {0x10, 0},
		"command of two frames":         {flagCommand | flagMore, 1, 'x'},
		"command of two frames, within": join(frame(flagMore, nil), []byte{flagCommand | flagMore, 1, 'x'}),
		"empty command":                 {flagCommand, 0},
		"text of another protocol":      []byte("HTTP/1.1 200 OK\r\n"),
		"a second greeting after READY": goodGreeting(),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := recvAll(join(publisherHandshake(), b), 1<<20)
			var pe *ProtocolError
			require.ErrorAs(t, err, &pe)
		})
	}
}

func TestReadyInPlaceOfMessageIsSkipped(t *testing.T) {
	got, _, err := recvAll(join(publisherHandshake(), commandFrame("READY", property("Socket-Type", "")), message([]byte("m"))), 1<<20)
	require.Equal(t, io.EOF, err)
	require.Len(t, got, 1)
}

// A quiet connection keeps a small buffer, a busy one gets a large one.
func TestBufferGrowsWithUse(t *testing.T) {
	read := func(burst int) int {
		stream := publisherHandshake()
		for range 2000 {
			stream = append(stream, message(nil, []byte("12345678"), repeat(435))...)
		}
		peer := &scripted{b: stream, piece: burst}
		c, err := Open(peer, subConfig(time.Second), time.Now().Add(time.Second))
		require.NoError(t, err)
		for range 2000 {
			_, _, err := c.Recv()
			require.NoError(t, err)
		}
		return len(c.guard.buf)
	}
	require.Equal(t, initialBufferBytes, read(500))
	require.Equal(t, maxBufferBytes, read(1<<20))
}

// What a panic of the library looks like, should one get past the guard. (An unknown type of ours makes one.)
func TestOpenSurvivesPanic(t *testing.T) {
	peer := &scripted{b: publisherHandshake(), piece: 64}
	cfg := subConfig(time.Second)
	cfg.SocketType = zmq4.SocketType("NONE")
	_, err := Open(peer, cfg, time.Now().Add(time.Second))
	requireHandshakeError(t, err, ReasonInternal)
	require.ErrorContains(t, err, "panic")
}

// A deadline call for every message would cost as much as reading it.
func TestNoDeadlineCallForAMessage(t *testing.T) {
	stream := publisherHandshake()
	for range 2000 {
		stream = append(stream, message([]byte("m"))...)
	}
	peer := &scripted{b: stream, piece: 3}
	c, err := Open(peer, subConfig(time.Second), time.Now().Add(time.Second))
	require.NoError(t, err)
	for range 2000 {
		_, _, err := c.Recv()
		require.NoError(t, err)
	}
	require.Equal(t, 1, peer.readDeadlines)
}

// A thousand quiet connections must not be noticed.
func TestQuietConnectionsAreSmall(t *testing.T) {
	const n = 1024
	handshake := publisherHandshake()
	var before, after runtime.MemStats
	conns := make([]*Conn, n)
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range conns {
		c, err := Open(&scripted{b: handshake, piece: 64}, subConfig(time.Second), time.Now().Add(time.Second))
		require.NoError(t, err)
		conns[i] = c
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := int64(after.HeapAlloc-before.HeapAlloc) / n
	t.Logf("%d bytes a connection", each)
	require.Less(t, each, int64(8<<10))
	runtime.KeepAlive(conns)
}
