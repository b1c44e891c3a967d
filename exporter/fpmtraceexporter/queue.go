// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"bytes"
	"slices"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// queue holds the rows of all producers until they are on disk. It is a plain
// value: no lock, no clock, no goroutine.
//
// Rows lie back to back in chunks. A chunk that is being written is flying: it
// takes no more rows and none is dropped from it. Everything else can be
// dropped, oldest first (TestQueueDropsTheOldest); rows and bytes always are
// the sum of what lies in the chunks (TestQueueAddsUp).
type queue struct {
	rows  int
	bytes int64
	// busy is the number of lanes with rows.
	busy int
	// waiting are the chunks not flying, by age.
	waiting chunkList
	spare   []*chunk
}

// lane is the part of the queue that belongs to one producer, oldest first.
// The first flying chunks are being written.
type lane struct {
	producer *producer
	chunks   []*chunk
	flying   int
	rows     int
	bytes    int64
	// flyingBytes is the part of bytes in the chunks that fly.
	flyingBytes int64
}

type chunk struct {
	lane *lane
	// buf holds rows from off on; what is before was dropped or written.
	buf        []byte
	off        int
	rows       int
	prev, next *chunk
}

const (
	// flushBytes is the text of one member.
	flushBytes = 1 << 20
	// gatheredBytes is about how much text all lanes gather before they are written,
	// as long as leastFlushBytes for each is not more.
	gatheredBytes = 6 << 20
	// leastFlushBytes compresses nearly as well as a whole member.
	leastFlushBytes = 48 << 10
	// chunkBytes is small, so that rows dropped at its front do not hold much
	// memory.
	chunkBytes = 16 << 10
	// rowBytes is what AppendRow puts around an event at most.
	rowBytes = 48
	// maxSpare bounds the chunks kept for reuse to what lanes gather, so that a
	// steady load makes no garbage.
	maxSpare = gatheredBytes / chunkBytes
)

// share is how much text makes a lane be written before the end of its interval:
// its part of gatheredBytes, at most a member.
func (q *queue) share() int64 {
	return min(max(int64(gatheredBytes/max(q.busy, 1)), leastFlushBytes), flushBytes)
}

// waits is how much text of the lane is not being written.
func (l *lane) waits() int64 { return l.bytes - l.flyingBytes }

// push appends a row at the end of a lane.
func (q *queue) push(l *lane, timestamp int64, event []byte) {
	c := l.last()
	if c == nil || len(c.buf) > 0 && len(c.buf)+len(event)+rowBytes > chunkBytes {
		c = q.newChunk(l)
		l.chunks = append(l.chunks, c)
		q.waiting.pushBack(c)
	}
	before := len(c.buf)
	c.buf = fpm.AppendRow(c.buf, timestamp, event)
	n := int64(len(c.buf) - before)
	c.rows++
	if l.rows == 0 {
		q.busy++
	}
	l.rows++
	l.bytes += n
	q.rows++
	q.bytes += n
}

// last is the chunk that takes the lane's next row, if there is one.
func (l *lane) last() *chunk {
	if len(l.chunks) == l.flying {
		return nil
	}
	return l.chunks[len(l.chunks)-1]
}

// take lets the lane's oldest chunks fly, up to limit bytes but at least one,
// and returns them; none when there is nothing to write. Nothing of the lane
// may be flying already. The caller may read the chunks' text without holding
// the lock, until it says landed.
func (q *queue) take(l *lane, limit int64) []*chunk {
	total := int64(0)
	for l.flying < len(l.chunks) {
		c := l.chunks[l.flying]
		if total += int64(len(c.text())); total > limit && l.flying > 0 {
			break
		}
		q.waiting.remove(c)
		l.flying++
		l.flyingBytes += int64(len(c.text()))
	}
	return l.chunks[:l.flying:l.flying]
}

func (c *chunk) text() []byte { return c.buf[c.off:] }

// landed takes back the chunks that flew. Their first written bytes, which are
// whole rows, leave the queue, the rest waits again in its old place.
func (q *queue) landed(l *lane, written int64) {
	flew := l.flying
	l.flying, l.flyingBytes = 0, 0
	for range flew {
		c := l.chunks[0]
		size := int64(len(c.text()))
		if size > written {
			break
		}
		written -= size
		q.forget(c, c.rows, size)
		l.removeFirst()
		q.recycle(c)
		flew--
	}
	if flew > 0 && written > 0 {
		c := l.chunks[0]
		q.forget(c, bytes.Count(c.text()[:written], []byte{'\n'}), written)
	}
	for i := flew - 1; i >= 0; i-- {
		q.waiting.pushFront(l.chunks[i])
	}
}

// dropOldest drops the oldest row that can be dropped, to within a chunk: rows
// of one chunk count as old as its first. false when there is none; the lane
// says whose row it was.
func (q *queue) dropOldest() (l *lane, ok bool) {
	c := q.waiting.first
	if c == nil {
		return nil, false
	}
	l = c.lane
	q.dropFirst(c)
	return l, true
}

// dropOldestOf is dropOldest for one lane.
func (q *queue) dropOldestOf(l *lane) bool {
	if l.flying == len(l.chunks) {
		return false
	}
	q.dropFirst(l.chunks[l.flying])
	return true
}

// dropAll drops every row of a lane that can be dropped and counts them.
func (q *queue) dropAll(l *lane) (rows int) {
	for _, c := range l.chunks[l.flying:] {
		rows += c.rows
		q.waiting.remove(c)
		q.forget(c, c.rows, int64(len(c.text())))
		q.recycle(c)
	}
	clear(l.chunks[l.flying:])
	l.chunks = l.chunks[:l.flying]
	return rows
}

// dropFirst drops the first row of a waiting chunk, the first of its lane.
func (q *queue) dropFirst(c *chunk) {
	q.forget(c, 1, int64(bytes.IndexByte(c.text(), '\n')+1))
	if c.rows > 0 {
		return
	}
	l := c.lane
	q.waiting.remove(c)
	copy(l.chunks[l.flying:], l.chunks[l.flying+1:])
	l.chunks[len(l.chunks)-1] = nil
	l.chunks = l.chunks[:len(l.chunks)-1]
	q.recycle(c)
}

// forget takes the first rows of a chunk out of all sums.
func (q *queue) forget(c *chunk, rows int, size int64) {
	c.off += int(size)
	c.rows -= rows
	c.lane.rows -= rows
	if rows > 0 && c.lane.rows == 0 {
		q.busy--
	}
	c.lane.bytes -= size
	q.rows -= rows
	q.bytes -= size
}

func (l *lane) removeFirst() {
	copy(l.chunks, l.chunks[1:])
	l.chunks[len(l.chunks)-1] = nil
	l.chunks = l.chunks[:len(l.chunks)-1]
}

// newChunk gives a lane a chunk. The first one of a quiet producer grows with its
// rows; who has filled one fills the next one too.
func (q *queue) newChunk(l *lane) *chunk {
	c := &chunk{}
	if n := len(q.spare); n > 0 {
		c = q.spare[n-1]
		q.spare = q.spare[:n-1]
	}
	c.lane = l
	if len(l.chunks) > 0 {
		c.buf = slices.Grow(c.buf, chunkBytes)
	}
	return c
}

func (q *queue) recycle(c *chunk) {
	if len(q.spare) >= maxSpare || cap(c.buf) > chunkBytes {
		return
	}
	*c = chunk{buf: c.buf[:0]}
	q.spare = append(q.spare, c)
}

// chunkList is a doubly linked list.
type chunkList struct{ first, last *chunk }

func (l *chunkList) pushBack(c *chunk) {
	c.prev, c.next = l.last, nil
	if l.last != nil {
		l.last.next = c
	} else {
		l.first = c
	}
	l.last = c
}

func (l *chunkList) pushFront(c *chunk) {
	c.prev, c.next = nil, l.first
	if l.first != nil {
		l.first.prev = c
	} else {
		l.last = c
	}
	l.first = c
}

func (l *chunkList) remove(c *chunk) {
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		l.first = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		l.last = c.prev
	}
	c.prev, c.next = nil, nil
}
