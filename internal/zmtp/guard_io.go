// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"errors"
	"io"
	"os"
	"time"
)

// writeFrame sends a short frame in one write. A peer that takes no bytes for staleAfter is given up.
func (g *guard) writeFrame(flags byte, body string) error {
	frame := make([]byte, 0, shortHeaderLen+len(body))
	frame = append(frame, flags, byte(len(body)))
	frame = append(frame, body...)
	if err := g.SetWriteDeadline(time.Now().Add(g.live.staleAfter)); err != nil {
		return err
	}
	_, err := g.Conn.Write(frame)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &TimeoutError{Wait: WaitWrite, After: g.live.staleAfter}
	}
	return err
}

// readFull fills p from buffer and socket, past the buffer when it is empty and would not help.
func (g *guard) readFull(p []byte) error {
	for len(p) > 0 {
		if g.r == g.w {
			if len(p) >= len(g.buf) {
				n, err := g.readSocket(p)
				if err != nil {
					return err
				}
				p = p[n:]
				continue
			}
			if err := g.fill(); err != nil {
				return err
			}
		}
		n := copy(p, g.buf[g.r:g.w])
		g.r += n
		p = p[n:]
	}
	return nil
}

// take removes n buffered bytes and returns them; they are good until the next fill.
func (g *guard) take(n int) []byte {
	b := g.buf[g.r : g.r+n]
	g.r += n
	return b
}

// fill reads at least one byte more into the buffer. What is left in it (less than a greeting) moves to its start.
func (g *guard) fill() error {
	rest := g.buf[g.r:g.w]
	if g.filled && len(g.buf) < maxBufferBytes {
		g.buf = make([]byte, min(len(g.buf)*4, maxBufferBytes))
	}
	g.r, g.w = 0, copy(g.buf, rest)
	n, err := g.readSocket(g.buf[g.w:])
	g.w += n
	g.filled = g.w == len(g.buf)
	return err
}

// readSocket reads at least one byte, through as many read deadlines as liveness grants, or returns an error.
func (g *guard) readSocket(p []byte) (int, error) {
	for {
		n, err := g.Conn.Read(p)
		if n > 0 {
			g.at = time.Now()
			g.live.heard()
			return n, nil // an error that came with bytes comes again without
		}
		if err == nil {
			return 0, io.ErrNoProgress
		}
		if !g.live.started() || !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, err
		}
		if err := g.deadlinePassed(); err != nil {
			return 0, err
		}
	}
}

// deadlinePassed does what liveness says and sets the next deadline, or gives the peer up.
func (g *guard) deadlinePassed() error {
	v, next := g.live.expire(time.Now())
	switch v {
	case verdictSilent:
		return &TimeoutError{Wait: WaitAnswer, After: g.live.staleAfter}
	case verdictStalled:
		return &TimeoutError{Wait: WaitMessage, After: g.live.staleAfter}
	case verdictPing:
		if err := g.writeFrame(flagCommand, pingBody); err != nil {
			return err
		}
	}
	return g.SetReadDeadline(next)
}

// cutShort turns the end of the stream in the middle of something into io.ErrUnexpectedEOF.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
