// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"io"
)

// Lines splits text into lines. A line may go on from one text to the next, as
// it does when a file was cut into members without regard to lines.
type Lines struct {
	// limit is how long a line may be, without its newline.
	limit int
	text  io.Reader
	err   error
	// buffer[start:end] is read and not given out; there is no newline before
	// buffer[seen].
	buffer           []byte
	start, seen, end int
	// dropped is how much of a line over the limit was thrown away.
	dropped int64
	// ended is the number of newlines read of this text.
	ended int64
}

// NewLines makes a splitter for lines of at most limit bytes.
func NewLines(limit int) *Lines { return &Lines{limit: limit} }

// Reset forgets a line that was begun.
func (l *Lines) Reset() { l.start, l.seen, l.end, l.dropped = 0, 0, 0, 0 }

// Continue goes on with another text.
func (l *Lines) Continue(text io.Reader) { l.text, l.err, l.ended = text, nil, 0 }

// Ended is the number of lines that came to their end in this text.
func (l *Lines) Ended() int64 { return l.ended }

// Begun reports that the text ended in the middle of a line.
func (l *Lines) Begun() bool { return l.end > l.start || l.dropped > 0 }

// Next returns the next line without its newline, valid until the next call,
// and its size. Of a line over the limit only the size is returned. The error at
// the end of the text is io.EOF; others are the text's own.
func (l *Lines) Next() (line []byte, size int64, err error) {
	for {
		if i := bytes.IndexByte(l.buffer[l.seen:l.end], '\n'); i >= 0 {
			l.ended++
			line, l.seen = l.buffer[l.start:l.seen+i], l.seen+i+1
			l.start = l.seen
			return l.give(line)
		}
		l.seen = l.end
		if l.err != nil {
			return nil, 0, l.err
		}
		l.makeRoom()
		var n int
		n, l.err = l.text.Read(l.buffer[l.end:])
		l.end += n
	}
}

// Rest returns the line that was begun, as Next does, and forgets it.
func (l *Lines) Rest() (line []byte, size int64) {
	line, size, _ = l.give(l.buffer[l.start:l.end])
	l.Reset()
	return line, size
}

func (l *Lines) give(line []byte) ([]byte, int64, error) {
	size := l.dropped + int64(len(line))
	l.dropped = 0
	if size > int64(l.limit) {
		return nil, size, nil
	}
	return line, size, nil
}

// makeRoom makes room for more text behind the line that was begun, or throws
// away what is over the limit.
func (l *Lines) makeRoom() {
	const least, keep = 64 << 10, 1 << 20
	if length := l.end - l.start; length > l.limit || l.dropped > 0 {
		l.dropped += int64(length)
		l.start, l.seen, l.end = 0, 0, 0
	}
	if l.start > 0 {
		copy(l.buffer, l.buffer[l.start:l.end])
		l.start, l.seen, l.end = 0, l.seen-l.start, l.end-l.start
	}
	switch {
	case l.end == 0 && len(l.buffer) > keep: // blown up by one long line
		l.buffer = make([]byte, keep)
	case l.end == len(l.buffer):
		larger := make([]byte, max(least, min(2*len(l.buffer), l.limit+least)))
		copy(larger, l.buffer[:l.end])
		l.buffer = larger
	}
}
