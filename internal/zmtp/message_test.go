// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A usual message costs no allocation: its frames lie where those of the message before lay.
func TestFramesOfUsualMessagesAreReused(t *testing.T) {
	peer := &endless{scripted: scripted{b: publisherHandshake(), piece: 1 << 20}, message: message(nil, []byte("12345678"), repeat(435))}
	c, err := Open(peer, subConfig(time.Minute), time.Now().Add(time.Second))
	require.NoError(t, err)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		frames, _, err := c.Recv()
		if err != nil || len(frames) != 3 || len(frames[2]) != 435 {
			t.Fatal(frames, err)
		}
	}))
}

// What is unusual leaves nothing behind: a connection may be silent for long after it.
func TestUnusualMessagesAreNotKept(t *testing.T) {
	large := repeat(keptFrameBytes + 1)
	for name, test := range map[string][][]byte{
		"a large frame":     {nil, []byte("12345678"), large},
		"all large":         {large, large, large, large},
		"large in front":    {large, []byte("x"), []byte("y")},
		"more frames":       {nil, []byte("12345678"), []byte("x"), []byte("y"), []byte("z")},
		"large behind many": {nil, nil, nil, nil, large},
	} {
		t.Run(name, func(t *testing.T) {
			usual := [][]byte{{}, []byte("87654321"), repeat(435)}
			stream := publisherHandshake()
			for _, m := range [][][]byte{usual, test, test, usual, test} {
				stream = append(stream, message(m...)...)
			}
			c, err := Open(&scripted{b: stream, piece: 1 << 20}, subConfig(time.Second), time.Now().Add(time.Second))
			require.NoError(t, err)
			for _, want := range [][][]byte{usual, test, test, usual, test} {
				frames, _, err := c.Recv()
				require.NoError(t, err)
				require.True(t, equalFrames(want, frames))
			}
			kept := 0
			for _, list := range [][usualFrames][]byte{c.guard.frames, c.guard.kept} {
				for _, frame := range list {
					assert.LessOrEqual(t, cap(frame), keptFrameBytes)
					kept += cap(frame)
				}
			}
			assert.Positive(t, kept)
		})
	}
}
