// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import "sync"

// queue stands between the endpoints and one signal's pipe. It is bounded in
// messages and in payload bytes; what comes in when it is full pushes out the
// oldest, so that a slow pipeline loses the past and not the present, and an
// endpoint never waits.
//
// Invariant (TestQueueKeepsItsBounds): at most maxMessages wait, with at most
// maxBytes of payload unless a single one is larger; every message pushed is
// taken once or handed back as pushed out.
type queue struct {
	maxMessages int
	maxBytes    int64
	// enough has room for one token, which tells the pipe that a whole batch
	// waits: so many messages or bytes.
	enough        chan struct{}
	wholeMessages int
	wholeBytes    int64

	mu    sync.Mutex
	items []*message // a ring, grown as needed up to maxMessages
	head  int
	count int
	bytes int64
}

// newQueue makes a queue for batches of batchMessages or maxBatchBytes. A queue
// that could not hold two of them counts half of itself as a whole batch, so
// that it is not full before anybody looks.
func newQueue(maxMessages int, maxBytes int64, batchMessages int) *queue {
	return &queue{
		maxMessages: maxMessages, maxBytes: maxBytes,
		enough:        make(chan struct{}, 1),
		wholeMessages: min(batchMessages, (maxMessages+1)/2),
		wholeBytes:    min(maxBatchBytes, (maxBytes+1)/2),
	}
}

// push adds the newest message and returns the oldest ones when they have to
// go for it.
func (q *queue) push(m *message) (out []*message) {
	q.mu.Lock()
	for q.count > 0 && (q.count >= q.maxMessages || q.bytes+m.size() > q.maxBytes) {
		out = append(out, q.pop())
	}
	q.grow(q.count + 1)
	q.items[(q.head+q.count)%len(q.items)] = m
	q.count++
	q.bytes += m.size()
	whole := q.wholeLocked()
	q.mu.Unlock()
	if whole {
		select {
		case q.enough <- struct{}{}:
		default:
		}
	}
	return out
}

// restore puts messages back that were taken and not delivered: they are the
// oldest again, and the first to go. It returns the ones for which there is no
// room any more. The caller may reuse the slice once it is done with them.
func (q *queue) restore(messages []*message) (out []*message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := len(messages) - 1; i >= 0; i-- {
		m := messages[i]
		if q.count >= q.maxMessages || q.bytes+m.size() > q.maxBytes {
			return messages[:i+1]
		}
		q.grow(q.count + 1)
		q.head = (q.head + len(q.items) - 1) % len(q.items)
		q.items[q.head] = m
		q.count++
		q.bytes += m.size()
	}
	return nil
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

// length is the number of messages that wait.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count
}

// whole reports that a whole batch waits.
func (q *queue) whole() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.wholeLocked()
}

func (q *queue) wholeLocked() bool {
	return q.count >= q.wholeMessages || q.bytes >= q.wholeBytes
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
