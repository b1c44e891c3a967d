// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"encoding/binary"
	"math"
	"strconv"
)

// frameCount is the number of frames of a raw FPM message: an empty topic, the
// sequence number, the payload.
const frameCount = 3

// sequenceSize is the size of the big-endian sequence frame.
const sequenceSize = 8

// OpenEnvelope takes a message of the raw FPM port apart into the publisher's
// sequence number and the payload, which aliases the last frame. Errors are of
// type *RejectError.
func OpenEnvelope(frames [][]byte) (sequence int64, payload []byte, err error) {
	if len(frames) != frameCount {
		want := "3 (empty topic, 8-byte sequence, payload)"
		if len(frames) == 4 && len(frames[0]) > 0 {
			want += "; this looks like Dynamo's event plane, not the raw FPM port"
		}
		return 0, nil, envelopeError("frames", strconv.Itoa(len(frames))+" frames", want)
	}
	if topic := frames[0]; len(topic) != 0 {
		return 0, nil, envelopeError("topic", quoteShort(topic), "an empty frame")
	}
	if n := len(frames[1]); n != sequenceSize {
		return 0, nil, envelopeError("sequence", strconv.Itoa(n)+" bytes", "8 bytes, big-endian")
	}
	value := binary.BigEndian.Uint64(frames[1])
	if value > math.MaxInt64 {
		return 0, nil, outOfRange("sequence", value)
	}
	return int64(value), frames[2], nil
}

func envelopeError(field, got, want string) *RejectError {
	return &RejectError{Reason: ReasonEnvelope, Field: field, Got: got, Want: want}
}
