// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Limits bounds what one message of a peer may cost. Both must be positive.
type Limits struct {
	MaxMessageBytes int64 // bodies of all frames of a message together
	MaxFrames       int   // frames of a message
}

// Frame header (spec 37, section Framing): one flags byte, then the size of the body as 1 byte, or as 8 with flagLong.
const (
	flagMore     = 0x01
	flagLong     = 0x02
	flagCommand  = 0x04
	flagsDefined = flagMore | flagLong | flagCommand

	shortHeaderLen = 2
	longHeaderLen  = 9
)

// maxCommandBytes bounds READY and everything that is not a message. libzmq's READY has some 30 bytes, a PING at most 23;
// the rest is room for application properties.
const maxCommandBytes = 8192

// frameHeader is a frame header that passed all checks.
type frameHeader struct {
	headerLen int
	size      int64 // of the body, within the limits
	more      bool
	command   bool
}

// framer follows the frames of one connection and refuses every header that breaks a limit or the protocol.
//
// Invariant (TestFramerAcceptsWithinLimitsOnly): between two messages' ends the accepted frames are at most MaxFrames and their
// sizes add up to at most MaxMessageBytes.
type framer struct {
	limits Limits
	frames int   // of the current message
	bytes  int64 // of the current message
	more   bool  // the current message has not seen its last frame
}

// next reads the header at the start of b. ok is false, and nothing has changed, when b ends before the header does. What
// can be told from the flags byte alone is told at once. A command may stand between the frames of a message: libzmq puts
// its heartbeats there when a message is split over two of its writes.
func (f *framer) next(b []byte) (h frameHeader, ok bool, err error) {
	if len(b) == 0 {
		return h, false, nil
	}
	flags := b[0]
	h.more = flags&flagMore != 0
	h.command = flags&flagCommand != 0
	frames, bytes := f.frames, f.bytes
	if !f.more {
		frames, bytes = 0, 0
	}
	switch {
	case flags&^flagsDefined != 0:
		return h, false, &ProtocolError{Detail: fmt.Sprintf("frame flags 0x%02x, only 0x01 (more), 0x02 (long) and 0x04 (command) are defined", flags)}
	case h.command && h.more:
		return h, false, &ProtocolError{Detail: fmt.Sprintf("frame flags 0x%02x: a command has one frame", flags)}
	case !h.command && frames >= f.limits.MaxFrames:
		return h, false, &OversizeError{Part: PartFrames, Size: uint64(frames) + 1, Limit: uint64(f.limits.MaxFrames)}
	}

	var size uint64
	if flags&flagLong == 0 {
		if len(b) < shortHeaderLen {
			return h, false, nil
		}
		h.headerLen, size = shortHeaderLen, uint64(b[1])
	} else {
		if len(b) < longHeaderLen {
			return h, false, nil
		}
		h.headerLen, size = longHeaderLen, binary.BigEndian.Uint64(b[1:])
	}

	if h.command {
		switch {
		case size > maxCommandBytes:
			return h, false, &OversizeError{Part: PartCommand, Size: size, Limit: maxCommandBytes}
		case size == 0:
			return h, false, &ProtocolError{Detail: "empty command, want a name"}
		}
		h.size = int64(size)
		return h, true, nil
	}
	if size > uint64(f.limits.MaxMessageBytes)-uint64(bytes) {
		total := uint64(bytes) + size
		if total < size {
			total = math.MaxUint64
		}
		return h, false, &OversizeError{Part: PartMessage, Size: total, Limit: uint64(f.limits.MaxMessageBytes)}
	}
	h.size = int64(size)
	f.frames, f.bytes, f.more = frames+1, bytes+h.size, h.more
	return h, true, nil
}
