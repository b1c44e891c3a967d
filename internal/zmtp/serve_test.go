// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"bytes"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/stretchr/testify/require"
)

// collector keeps the messages it takes: as many as it wants.
type collector struct {
	messages [][][]byte
	wants    int
}

func (c *collector) message(frames [][]byte, _ time.Time) bool {
	if len(c.messages) == c.wants {
		return false
	}
	c.messages = append(c.messages, cloneFrames(frames))
	return true
}

// scriptedGuard is a guard after its handshake, whose peer sends b.
func scriptedGuard(tb testing.TB, b []byte, limits Limits) (*Conn, *scripted) {
	tb.Helper()
	peer := &scripted{b: publisherHandshake(), piece: 1 << 20}
	c, err := Open(peer, ConnConfig{SocketType: zmq4.Sub, StaleAfter: time.Second, Limits: limits}, time.Now().Add(time.Second))
	require.NoError(tb, err)
	require.Empty(tb, peer.b)
	peer.b = b
	return c, peer
}

func TestHandleTakesWholeUsualMessages(t *testing.T) {
	usual := message([]byte("topic"), []byte("12345678"), repeat(435))
	short := message([]byte("m"))
	limits := Limits{MaxMessageBytes: 1000, MaxFrames: 4}
	for _, tt := range []struct {
		name            string
		b               []byte
		wants           int
		messages, taken int
	}{
		{"nothing", nil, 9, 0, 0},
		{"one", usual, 9, 1, len(usual)},
		{"several", join(usual, short, usual), 9, 3, 2*len(usual) + len(short)},
		{"an empty frame", message(nil), 9, 1, 2},
		{"the last cut by a byte", join(usual, usual[:len(usual)-1]), 9, 1, len(usual)},
		{"the last cut in its header", join(usual, usual[:1]), 9, 1, len(usual)},
		{"the last cut between frames", join(short, frame(flagMore, []byte("a"))), 9, 1, len(short)},
		{"a command", join(short, commandFrame("PING", []byte{0, 1}), short), 9, 1, len(short)},
		{"a command within a message", join(frame(flagMore, []byte("a")), commandFrame("PONG"), frame(0, []byte("b"))), 9, 0, 0},
		{"a frame more than usual", join(short, message(nil, nil, nil, nil), short), 9, 1, len(short)},
		{"reserved flags", join(short, []byte{0x80, 0}), 9, 1, len(short)},
		{"over the limit", join(short, message(repeat(999), []byte("xx")), short), 9, 1, len(short)},
		{"at the limit, twice", bytes.Repeat(message(repeat(999), []byte("x")), 2), 9, 2, 2 * len(message(repeat(999), []byte("x")))},
		{"a size over all", join(short, longHeader(0, 1<<63)), 9, 1, len(short)},
		{"more than at once", bytes.Repeat(message(nil), messagesAtOnce+1), 9999, messagesAtOnce, 2 * messagesAtOnce},
		{"more than are wanted", join(short, short, short), 2, 2, 2 * len(short)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := scriptedGuard(t, nil, limits)
			got := &collector{wants: tt.wants}
			c.guard.handler = got
			require.Equal(t, tt.taken, c.guard.handle(tt.b, time.Now(), new(frameList)))
			require.Len(t, got.messages, tt.messages)
		})
	}
}

func TestHandleMarksTheMessage(t *testing.T) {
	c, _ := scriptedGuard(t, nil, testLimits)
	c.guard.handler = &collector{wants: 9}
	at := time.Now().Add(time.Hour)
	c.guard.live.awaiting = true
	c.guard.handle(message([]byte("m")), at, new(frameList))
	require.Equal(t, at, c.guard.live.lastMessage)
	require.False(t, c.guard.live.awaiting, "a byte has come")
}

// scribbler appends to the frames, which are its own while it has them.
type scribbler struct{ collector }

func (s *scribbler) message(frames [][]byte, at time.Time) bool {
	s.collector.message(frames, at)
	for _, f := range frames {
		_ = append(f, "scribble"...)
	}
	return true
}

func TestWhoAppendsToAFrameHarmsNoOther(t *testing.T) {
	c, _ := scriptedGuard(t, nil, testLimits)
	got := &scribbler{collector{wants: -1}}
	c.guard.handler = got
	c.guard.handle(bytes.Repeat(message([]byte("first"), []byte("second")), 2), time.Now(), new(frameList))
	require.Len(t, got.messages, 2)
	require.Equal(t, got.messages[0], got.messages[1])
}

func TestHandleDoesNotAllocate(t *testing.T) {
	c, _ := scriptedGuard(t, nil, testLimits)
	c.guard.handler = &counter{}
	b := bytes.Repeat(message(nil, []byte("12345678"), repeat(435)), 10)
	list := new(frameList)
	require.Zero(t, testing.AllocsPerRun(100, func() { c.guard.handle(b, time.Time{}, list) }))
}

type counter struct{ messages int }

func (c *counter) message([][]byte, time.Time) bool { c.messages++; return true }

// FuzzLentMessages sends arbitrary bytes after a handshake, read by turns in pieces for a guard that has lent the reading, and
// by itself.
func FuzzLentMessages(f *testing.F) {
	ping := commandFrame("PING", []byte{0, 1}, []byte("abc"))
	usual := message(nil, []byte("12345678"), repeat(435))
	for _, b := range [][]byte{
		nil,
		join(usual, usual, usual),
		join(usual, ping, usual, message(nil, nil, nil, nil), usual),
		join(frame(flagMore, nil), ping, frame(0, repeat(300))),
		join(usual, longHeader(0, 1<<40)),
		join(usual, bytes.Repeat(frame(flagMore, nil), 20)),
	} {
		f.Add(b, uint16(7))
		f.Add(b, uint16(500))
		f.Add(b, uint16(65535))
	}
	f.Fuzz(func(t *testing.T, b []byte, piece uint16) { lentMessagesAreThoseOfRecv(t, b, int(piece)+1) })
}

func TestLentMessagesAreThoseOfRecv(t *testing.T) {
	usual := message(nil, []byte("12345678"), repeat(435))
	stream := join(usual, message([]byte("m")), commandFrame("PING", []byte{0, 1}), usual, message(nil, nil, nil, nil), usual,
		frame(flagMore, nil), commandFrame("PONG"), frame(0, []byte("b")), usual, []byte{0x80})
	for piece := range len(stream) {
		lentMessagesAreThoseOfRecv(t, stream, piece+1)
	}
}

func lentMessagesAreThoseOfRecv(t *testing.T, b []byte, piece int) {
	limits := Limits{MaxMessageBytes: 2000, MaxFrames: 5}
	c, peer := scriptedGuard(t, b, limits)
	peer.piece = piece
	got := &collector{wants: -1}
	c.guard.handler = got
	for {
		if c.guard.betweenMessages() {
			peer.b = peer.b[c.guard.handle(peer.b[:min(piece, len(peer.b))], time.Now(), new(frameList)):]
		}
		frames, _, err := c.Recv()
		if err != nil {
			break
		}
		got.message(frames, time.Time{})
	}
	want, pings := readPlainly(join(publisherHandshake(), b), limits)
	require.Len(t, got.messages, len(want))
	for i := range want {
		require.True(t, equalFrames(want[i], got.messages[i]), "message %d: %q", i, got.messages[i])
	}
	require.Equal(t, pings, bytes.Count(peer.sent, []byte(pongName)))
}
