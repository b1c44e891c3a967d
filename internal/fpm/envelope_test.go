// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOpenEnvelope(t *testing.T) {
	payload := []byte("payload")
	for name, test := range map[string]struct {
		sequence []byte
		want     int64
	}{
		"0":      {make([]byte, 8), 0},
		"1":      {[]byte{0, 0, 0, 0, 0, 0, 0, 1}, 1},
		"256":    {[]byte{0, 0, 0, 0, 0, 0, 1, 0}, 256},
		"2^63-1": {[]byte{0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			sequence, got, err := OpenEnvelope([][]byte{{}, test.sequence, payload})
			require.NoError(t, err)
			assert.Equal(t, test.want, sequence)
			assert.Equal(t, payload, got)
			assert.Same(t, &payload[0], &got[0])
		})
	}
	t.Run("empty payload is the decoder's matter", func(t *testing.T) {
		_, got, err := OpenEnvelope([][]byte{nil, make([]byte, 8), nil})
		require.NoError(t, err)
		assert.Empty(t, got)
	})
}

func TestOpenEnvelopeRejects(t *testing.T) {
	const (
		eight       = "\x00\x00\x00\x00\x00\x00\x00\x01"
		threeFrames = "3 (empty topic, 8-byte sequence, payload)"
		eventPlane  = threeFrames + "; this looks like Dynamo's event plane, not the raw FPM port"
	)
	for name, test := range map[string]struct {
		frames []string
		want   RejectError
	}{
		"no frame":    {nil, RejectError{ReasonEnvelope, "frames", "0 frames", threeFrames}},
		"one frame":   {[]string{"x"}, RejectError{ReasonEnvelope, "frames", "1 frames", threeFrames}},
		"two frames":  {[]string{"", eight}, RejectError{ReasonEnvelope, "frames", "2 frames", threeFrames}},
		"four frames": {[]string{"", eight, "x", "y"}, RejectError{ReasonEnvelope, "frames", "4 frames", threeFrames}},
		"four frames with a topic": {
			[]string{"namespace.default.component.backend.forward-pass-metrics", "a", eight, "x"},
			RejectError{ReasonEnvelope, "frames", "4 frames", eventPlane},
		},
		"five frames with a topic": {[]string{"t", "", "", "", ""}, RejectError{ReasonEnvelope, "frames", "5 frames", threeFrames}},
		"topic":                    {[]string{"fpm", eight, "x"}, RejectError{ReasonEnvelope, "topic", `"fpm"`, "an empty frame"}},
		"long hostile topic": {
			[]string{"\n" + string(bytes.Repeat([]byte("t"), 5000)), eight, "x"},
			RejectError{ReasonEnvelope, "topic", `"\nttttttttttttttttttttttttttttttttttttttt"… (5001 bytes)`, "an empty frame"},
		},
		"empty sequence":   {[]string{"", "", "x"}, RejectError{ReasonEnvelope, "sequence", "0 bytes", "8 bytes, big-endian"}},
		"sequence of 7":    {[]string{"", eight[1:], "x"}, RejectError{ReasonEnvelope, "sequence", "7 bytes", "8 bytes, big-endian"}},
		"sequence of 9":    {[]string{"", eight + "\x00", "x"}, RejectError{ReasonEnvelope, "sequence", "9 bytes", "8 bytes, big-endian"}},
		"sequence of 2^63": {[]string{"", "\x80\x00\x00\x00\x00\x00\x00\x00", "x"}, RejectError{ReasonOutOfRange, "sequence", "9223372036854775808", "at most 9223372036854775807"}},
		"sequence of 2^64-1": {
			[]string{"", "\xff\xff\xff\xff\xff\xff\xff\xff", "x"},
			RejectError{ReasonOutOfRange, "sequence", "18446744073709551615", "at most 9223372036854775807"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			frames := make([][]byte, len(test.frames))
			for i := range frames {
				frames[i] = []byte(test.frames[i])
			}
			_, payload, err := OpenEnvelope(frames)
			require.Equal(t, &test.want, err)
			assert.Nil(t, payload)
			assertShortLine(t, &test.want)
		})
	}
}
