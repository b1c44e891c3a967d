// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package pub

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// Flags of a ZMTP frame.
const (
	flagMore    = 0x01
	flagLong    = 0x02
	flagCommand = 0x04
)

// maxInboundFrame bounds what a subscriber may send in one frame: its READY
// metadata, a subscription or a PING.
const maxInboundFrame = 64 << 10

type frame struct {
	more, command bool
	body          []byte
}

// readFrame reads one frame. A frame over maxInboundFrame is an error before
// anything is allocated for it.
func readFrame(r *bufio.Reader) (frame, error) {
	size, header, err := peekFrameSize(r)
	if err != nil {
		return frame{}, err
	}
	flags, _ := r.Peek(1)
	f := frame{more: flags[0]&flagMore != 0, command: flags[0]&flagCommand != 0, body: make([]byte, size)}
	if _, err := r.Discard(header); err != nil {
		return frame{}, err
	}
	_, err = io.ReadFull(r, f.body)
	return f, err
}

// peekFrameSize looks at the header of the next frame: the size of its body and
// of the header itself. It consumes nothing.
func peekFrameSize(r *bufio.Reader) (size uint64, header int, err error) {
	b, err := r.Peek(2)
	if err != nil {
		return 0, 0, err
	}
	size, header = uint64(b[1]), 2
	if b[0]&flagLong != 0 {
		if b, err = r.Peek(9); err != nil {
			return 0, 0, err
		}
		size, header = binary.BigEndian.Uint64(b[1:]), 9
	}
	if size > maxInboundFrame {
		return 0, 0, fmt.Errorf("frame of %d bytes from a subscriber: must be at most %d", size, maxInboundFrame)
	}
	return size, header, nil
}

// appendFrame appends a frame with its header.
func appendFrame(b []byte, flags byte, body []byte) []byte {
	if len(body) > 255 {
		b = binary.BigEndian.AppendUint64(append(b, flags|flagLong), uint64(len(body)))
	} else {
		b = append(b, flags, byte(len(body)))
	}
	return append(b, body...)
}

// appendMessage appends the three frames of an FPM message: empty topic,
// sequence, payload.
func appendMessage(b []byte, sequence uint64, payload []byte) []byte {
	b = append(b, flagMore, 0)
	b = binary.BigEndian.AppendUint64(append(b, flagMore, 8), sequence)
	return appendFrame(b, 0, payload)
}

// command splits the body of a command frame into its name and what follows.
func command(body []byte) (name string, rest []byte, ok bool) {
	if len(body) == 0 || len(body) < 1+int(body[0]) {
		return "", nil, false
	}
	n := 1 + int(body[0])
	return string(body[1:n]), body[n:], true
}
