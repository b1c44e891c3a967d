// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import "sync"

// queue stands between the endpoints and one signal's pipe. It is bounded in
// messages and in payload bytes; what comes in when it is full pushes out the
// oldest, so that a slow pipeline loses the past and not the present, and an
// endpoint never waits.
type queue struct {
	maxMessages int
	maxBytes    int64
	// dropped is told of messages that were pushed out. It is called with the
	// queue locked.
	dropped func(messages int)
	// enough has room for one token, which tells the pipe that a whole batch of
	// batchMessages or maxBatchBytes waits.
	enough        chan struct{}
	batchMessages int

	mu    sync.Mutex
	items []*message // a ring, grown as needed up to maxMessages
	head  int
	count int
	bytes int64
}

func newQueue(maxMessages int, maxBytes int64, batchMessages int, dropped func(messages int)) *queue {
	return &queue{
		maxMessages: maxMessages, maxBytes: maxBytes, dropped: dropped,
		enough: make(chan struct{}, 1), batchMessages: batchMessages,
	}
}

// push adds the newest message.
func (q *queue) push(m *message) {
	q.mu.Lock()
	q.makeRoom(m.size())
	q.grow(q.count + 1)
	q.items[(q.head+q.count)%len(q.items)] = m
	q.count++
	q.bytes += m.size()
	enough := q.count >= q.batchMessages || q.bytes >= maxBatchBytes
	q.mu.Unlock()
	if enough {
		select {
		case q.enough <- struct{}{}:
		default:
		}
	}
}

// restore puts messages back that were taken and not delivered: they are the
// oldest again, and the first to go when the queue is full.
func (q *queue) restore(messages []*message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := len(messages) - 1; i >= 0; i-- {
		m := messages[i]
		if q.count >= q.maxMessages || q.bytes+m.size() > q.maxBytes {
			q.dropped(i + 1)
			return
		}
		q.grow(q.count + 1)
		q.head = (q.head + len(q.items) - 1) % len(q.items)
		q.items[q.head] = m
		q.count++
		q.bytes += m.size()
	}
}

// take removes the oldest messages, appends them to batch and returns it: at
// most maxMessages, and no more than maxBytes unless a single one is larger.
func (q *queue) take(batch []*message, maxMessages int, maxBytes int64) []*message {
	q.mu.Lock()
	defer q.mu.Unlock()
	var bytes int64
	for n := 0; n < maxMessages && q.count > 0; n++ {
		size := q.items[q.head].size()
		if bytes += size; n > 0 && bytes > maxBytes {
			break
		}
		batch = append(batch, q.pop())
	}
	return batch
}

// length is the number of messages that wait, and their bytes.
func (q *queue) length() (messages int, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count, q.bytes
}

func (q *queue) makeRoom(size int64) {
	pushed := 0
	for q.count > 0 && (q.count >= q.maxMessages || q.bytes+size > q.maxBytes) {
		q.pop()
		pushed++
	}
	if pushed > 0 {
		q.dropped(pushed)
	}
}

func (q *queue) pop() *message {
	m := q.items[q.head]
	q.items[q.head] = nil
	q.head = (q.head + 1) % len(q.items)
	q.count--
	q.bytes -= m.size()
	return m
}

func (q *queue) grow(need int) {
	if need <= len(q.items) {
		return
	}
	larger := make([]*message, min(max(64, 2*len(q.items)), q.maxMessages))
	for i := range q.count {
		larger[i] = q.items[(q.head+i)%len(q.items)]
	}
	q.items, q.head = larger, 0
}
