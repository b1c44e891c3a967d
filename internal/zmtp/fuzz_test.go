// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
)

// FuzzGuard sends arbitrary bytes in pieces of arbitrary size. No panic, no unknown error, no more memory than was paid for in
// bytes, and exactly the messages that a plain reading of the bytes finds.
func FuzzGuard(f *testing.F) {
	handshake := publisherHandshake()
	ping := commandFrame("PING", []byte{0, 1}, []byte("abc"))
	for _, b := range [][]byte{
		nil,
		goodGreeting()[:63],
		greeting(1, 2, "")[:14],
		[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		handshake,
		join(handshake, message([]byte("m")), ping, message(nil, []byte("12345678"), repeat(435))),
		join(handshake, frame(flagMore, nil), ping, frame(0, repeat(300))),
		join(handshake, longHeader(0, 1<<40)),
		join(handshake, longHeader(flagMore|flagCommand, 1<<63)),
		join(handshake, bytes.Repeat(frame(flagMore, nil), 20)),
		join(goodGreeting(), longHeader(flagCommand, 1<<63)),
		join(goodGreeting(), commandFrame("READY")),
		join(goodGreeting(), commandFrame("READY", property("Socket-Type", ""))),
		join(goodGreeting(), commandFrame("READY", property("Socket-Type", "ROUTER"))),
		join(goodGreeting(), commandFrame("READY", property("Socket-Type", "PUB")[:14])),
		join(goodGreeting(), commandFrame("ERROR", []byte("\x02no"))),
	} {
		f.Add(b, uint16(7))
		f.Add(b, uint16(65535))
	}
	f.Fuzz(func(t *testing.T, b []byte, piece uint16) {
		if piece == 0 {
			piece = 1
		}
		peer := &scripted{b: b, piece: int(piece)}
		cfg := ConnConfig{SocketType: zmq4.Sub, StaleAfter: time.Second, Limits: Limits{MaxMessageBytes: 2000, MaxFrames: 5}}
		c, err := Open(peer, cfg, time.Now().Add(time.Second))
		if err != nil {
			var he *HandshakeError
			if !errors.As(err, &he) || he.Reason == ReasonInternal || he.Reason == ReasonTimeout {
				t.Fatalf("Open: %v", err)
			}
			return
		}
		want, pings := readPlainly(b, cfg.Limits)
		for {
			frames, _, err := c.Recv()
			if err != nil {
				var oe *OversizeError
				var pe *ProtocolError
				if err != io.EOF && err != io.ErrUnexpectedEOF && !errors.As(err, &oe) && !errors.As(err, &pe) {
					t.Fatalf("Recv: %v", err)
				}
				break
			}
			if len(want) == 0 {
				t.Fatalf("a message too many: %q", frames)
			}
			if !equalFrames(frames, want[0]) {
				t.Fatalf("got %q, want %q", frames, want[0])
			}
			want = want[1:]
		}
		if len(want) != 0 {
			t.Fatalf("%d messages missing", len(want))
		}
		if pongs := bytes.Count(peer.sent, []byte(pongName)); pongs != pings {
			t.Fatalf("%d PINGs, %d PONGs", pings, pongs)
		}
		if len(c.guard.buf) > maxBufferBytes {
			t.Fatalf("buffer of %d bytes", len(c.guard.buf))
		}
	})
}

// readPlainly reads the messages and PINGs after a handshake known to be good, up to the end or the first fault.
func readPlainly(b []byte, limits Limits) (messages [][][]byte, pings int) {
	// The header of READY and its body stand behind the greeting.
	first := true
	b = b[greetingLen:]
	var frames [][]byte
	total := uint64(0)
	for len(b) >= 2 {
		flags, size := b[0], uint64(b[1])
		header := 2
		if flags&2 != 0 {
			if len(b) < 9 {
				return messages, pings
			}
			header, size = 9, binary.BigEndian.Uint64(b[1:9])
		}
		command := flags&4 != 0
		switch {
		case flags > 7, command && (flags&1 != 0 || size > 8192 || size == 0):
			return messages, pings
		case !command && (size > uint64(limits.MaxMessageBytes) || total+size > uint64(limits.MaxMessageBytes) || len(frames) == limits.MaxFrames):
			return messages, pings
		case uint64(len(b)-header) < size:
			return messages, pings
		}
		body := b[header : header+int(size)]
		b = b[header+int(size):]
		if command {
			if !first && len(body) >= 5 && string(body[:5]) == "\x04PING" {
				pings++
			}
			first = false
			continue
		}
		frames, total = append(frames, body), total+size
		if flags&1 == 0 {
			messages = append(messages, frames)
			frames, total = nil, 0
		}
	}
	return messages, pings
}

func equalFrames(a, b [][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}
