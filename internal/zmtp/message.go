// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

// usualFrames is how many frames a message of an engine has.
const usualFrames = 3

// message reads the next message to its end and deals with the commands on the way. The frames are the caller's.
func (g *guard) message() ([][]byte, error) {
	frames := make([][]byte, 0, usualFrames)
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
		body := make([]byte, h.size)
		if err := g.readFull(body); err != nil {
			return nil, cutShort(err)
		}
		frames = append(frames, body)
		if !h.more {
			g.live.end(g.at)
			return frames, nil
		}
	}
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
