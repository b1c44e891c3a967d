// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import "slices"

// usualFrames is how many frames a message of an engine has.
const usualFrames = 3

// frameList has room for the frames of a usual message.
type frameList [usualFrames][]byte

// keptFrameBytes is the largest frame whose memory serves the next message too. It is small, since a peer that has sent one
// such message may be silent from then on.
const keptFrameBytes = 2 << 10

// message reads the next message to its end and deals with the commands on the way. The frames are good until the next call.
func (g *guard) message() ([][]byte, error) {
	frames := g.frames[:0]
	for {
		h, err := g.nextHeader()
		if err != nil {
			return nil, err
		}
		g.take(h.headerLen)
		if h.command {
			if err := g.command(h); err != nil {
				return nil, err
			}
			continue
		}
		body, kept := g.room(len(frames), h.size)
		if err := g.readFull(body); err != nil {
			return nil, cutShort(err)
		}
		if !kept {
			frames = slices.Clip(frames) // goes on in a list that nobody keeps, and the frame with it
		}
		frames = append(frames, body)
		if !h.more {
			g.live.end(g.at)
			return frames, nil
		}
	}
}

// room gives room for frame i of a message, counted from 0. A small one lies where that of the message before lay.
func (g *guard) room(i int, size int64) (body []byte, kept bool) {
	if i >= usualFrames || size > keptFrameBytes {
		return make([]byte, size), false
	}
	if int64(cap(g.kept[i])) < size {
		g.kept[i] = make([]byte, size)
	}
	return g.kept[i][:size], true
}

// command reads a command after the handshake to its end and answers a PING. Any other has served by coming.
func (g *guard) command(h frameHeader) error {
	var kept [keptCommandBytes]byte
	body := kept[:min(h.size, int64(len(kept)))]
	if err := g.readFull(body); err != nil {
		return cutShort(err)
	}
	for rest := h.size - int64(len(body)); rest > 0; {
		if g.r == g.w {
			if err := g.fill(); err != nil {
				return cutShort(err)
			}
		}
		n := min(rest, int64(g.w-g.r))
		g.r += int(n)
		rest -= n
	}
	if pong, ok := pongBody(body); ok {
		return g.writeFrame(flagCommand, pong)
	}
	return nil
}
