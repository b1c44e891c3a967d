// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

var errProtocol = errors.New("any ProtocolError")

func TestFramer(t *testing.T) {
	limits := Limits{MaxMessageBytes: 1000, MaxFrames: 3}
	oversize := func(part Part, size, limit uint64) error {
		return &OversizeError{Part: part, Size: size, Limit: limit}
	}
	more := func(n int) []byte { return frame(flagMore, repeat(n))[:shortHeaderLen] }
	for _, tt := range []struct {
		name   string
		before [][]byte // accepted headers before
		in     []byte
		want   frameHeader
		err    error // errProtocol for any ProtocolError
	}{
		{"short", nil, []byte{0, 255}, frameHeader{headerLen: 2, size: 255}, nil},
		{"empty", nil, []byte{0, 0}, frameHeader{headerLen: 2}, nil},
		{"more", nil, []byte{1, 5}, frameHeader{headerLen: 2, size: 5, more: true}, nil},
		{"long", nil, longHeader(0, 1000), frameHeader{headerLen: 9, size: 1000}, nil},
		{"long though small", nil, longHeader(flagMore, 0), frameHeader{headerLen: 9, more: true}, nil},
		{"command", nil, []byte{4, 5}, frameHeader{headerLen: 2, size: 5, command: true}, nil},
		{"long command, over the limit of messages", nil, longHeader(flagCommand, 8192), frameHeader{headerLen: 9, size: 8192, command: true}, nil},
		{"command within a message", [][]byte{more(1)}, []byte{4, 5}, frameHeader{headerLen: 2, size: 5, command: true}, nil},
		{"frames at the limit", [][]byte{more(1), more(1)}, []byte{0, 1}, frameHeader{headerLen: 2, size: 1}, nil},
		{"commands are no frames", [][]byte{more(1), {4, 1}, {4, 1}, {4, 1}}, []byte{1, 1}, frameHeader{headerLen: 2, size: 1, more: true}, nil},
		{"bytes at the limit", [][]byte{more(200), more(200)}, longHeader(0, 600), frameHeader{headerLen: 9, size: 600}, nil},
		{"bytes start over with a message", [][]byte{longHeader(0, 1000)}, longHeader(0, 1000), frameHeader{headerLen: 9, size: 1000}, nil},
		{"frames start over with a message", [][]byte{more(1), more(1), {0, 1}}, []byte{1, 1}, frameHeader{headerLen: 2, size: 1, more: true}, nil},

		{"one over", nil, longHeader(0, 1001), frameHeader{}, oversize(PartMessage, 1001, 1000)},
		{"2^40", nil, longHeader(0, 1<<40), frameHeader{}, oversize(PartMessage, 1<<40, 1000)},
		{"2^63-1", nil, longHeader(flagMore, math.MaxInt64), frameHeader{}, oversize(PartMessage, math.MaxInt64, 1000)},
		{"2^63", nil, longHeader(0, 1<<63), frameHeader{}, oversize(PartMessage, 1<<63, 1000)},
		{"2^64-1", nil, longHeader(0, math.MaxUint64), frameHeader{}, oversize(PartMessage, math.MaxUint64, 1000)},
		{"one over in sum", [][]byte{more(200), more(200)}, longHeader(0, 601), frameHeader{}, oversize(PartMessage, 1001, 1000)},
		{"sum over 64 bits", [][]byte{more(200)}, longHeader(0, math.MaxUint64-100), frameHeader{}, oversize(PartMessage, math.MaxUint64, 1000)},
		{"one frame too many, told by its flags", [][]byte{more(0), more(0), more(0)}, []byte{0}, frameHeader{}, oversize(PartFrames, 4, 3)},
		{"command of 2^40", nil, longHeader(flagCommand, 1<<40), frameHeader{}, oversize(PartCommand, 1<<40, 8192)},
		{"command of 2^63 within a message", [][]byte{more(1)}, longHeader(flagCommand, 1<<63), frameHeader{}, oversize(PartCommand, 1<<63, 8192)},
		{"command one over", nil, longHeader(flagCommand, 8193), frameHeader{}, oversize(PartCommand, 8193, 8192)},
		{"empty command", nil, []byte{4, 0}, frameHeader{}, errProtocol},
		{"command with more", nil, []byte{5}, frameHeader{}, errProtocol},
		{"reserved flag", nil, []byte{8}, frameHeader{}, errProtocol},
		{"all flags", nil, []byte{0xff}, frameHeader{}, errProtocol},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := framer{limits: limits}
			for _, b := range tt.before {
				_, ok, err := f.next(b)
				require.NoError(t, err)
				require.True(t, ok)
			}
			for n := range tt.in {
				before := f
				_, ok, err := f.next(tt.in[:n])
				require.NoError(t, err)
				require.False(t, ok)
				require.Equal(t, before, f, "an unfinished header changes nothing")
			}
			h, ok, err := f.next(append(tt.in, "body"...))
			switch tt.err {
			case nil:
				require.NoError(t, err)
				require.True(t, ok)
				require.Equal(t, tt.want, h)
			case errProtocol:
				var pe *ProtocolError
				require.ErrorAs(t, err, &pe)
			default:
				require.Equal(t, tt.err, err)
			}
		})
	}
}

// Random headers: whatever is accepted stays within the limits, and within the limits all is accepted.
func TestFramerAcceptsWithinLimitsOnly(t *testing.T) {
	limits := Limits{MaxMessageBytes: 100, MaxFrames: 4}
	rnd := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for range 2000 {
		f := framer{limits: limits}
		var frames int
		var bytes uint64
		for range 20 {
			flags := byte(rnd.IntN(3)) // more, long or neither: messages only
			size := uint64(rnd.IntN(60))
			h := []byte{flags, byte(size)}
			if flags&flagLong != 0 {
				size <<= rnd.IntN(64)
				h = binary.BigEndian.AppendUint64([]byte{flags}, size)
			}
			_, ok, err := f.next(h)
			within := frames < limits.MaxFrames && size <= uint64(limits.MaxMessageBytes)-bytes
			require.Equal(t, within, err == nil, "%d frames, %d bytes before; %x", frames, bytes, h)
			if err != nil {
				refused++
				break
			}
			require.True(t, ok)
			frames, bytes = frames+1, bytes+size
			if flags&flagMore == 0 {
				frames, bytes = 0, 0
			}
		}
	}
	require.Greater(t, refused, 100)
}
