// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import "sync"

// queueEvents is how many events may wait for the pipeline: at 50,000 a second,
// five seconds.
const queueEvents = 262144

// queue stands between the connections and the pipeline. What comes in when it
// is full pushes out the oldest, so that a slow pipeline loses the past and not
// the present, and a connection never waits.
//
// Invariant (TestQueueKeepsItsBounds): at most limit events wait, unless a
// single chunk is larger; every chunk pushed is taken once or handed back as
// pushed out.
type queue struct {
	limit int
	// enough has room for one token, which tells that a whole batch waits.
	enough chan struct{}
	batch  int

	mu     sync.Mutex
	chunks []chunk
	events int
}

func newQueue(limit, batch int) *queue {
	return &queue{limit: limit, batch: batch, enough: make(chan struct{}, 1)}
}

// push adds the newest events and returns the oldest ones when they have to go
// for them.
func (q *queue) push(c chunk) (out []chunk) {
	q.mu.Lock()
	for len(q.chunks) > 0 && q.events+len(c) > q.limit {
		out = append(out, q.pop())
	}
	q.chunks = append(q.chunks, c)
	q.events += len(c)
	whole := q.events >= q.batch
	q.mu.Unlock()
	if whole {
		select {
		case q.enough <- struct{}{}:
		default:
		}
	}
	return out
}

// take removes the oldest events, no more than most unless a single chunk is
// larger.
func (q *queue) take(most int) (taken []chunk) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for n := 0; len(q.chunks) > 0; {
		if n += len(q.chunks[0]); n > most && len(taken) > 0 {
			break
		}
		taken = append(taken, q.pop())
	}
	return taken
}

// restore puts events back that were taken and not delivered: they are the
// oldest again, and the first to go. It returns those for which there is no room
// any more.
func (q *queue) restore(taken []chunk) (out []chunk) {
	q.mu.Lock()
	defer q.mu.Unlock()
	first := len(taken)
	for first > 0 && q.events+len(taken[first-1]) <= q.limit {
		first--
		q.events += len(taken[first])
	}
	q.chunks = append(taken[first:len(taken):len(taken)], q.chunks...)
	return taken[:first]
}

// waiting is the number of events that wait.
func (q *queue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.events
}

func (q *queue) pop() chunk {
	c := q.chunks[0]
	q.chunks[0] = nil
	q.chunks = q.chunks[1:]
	q.events -= len(c)
	return c
}

// count is the number of events in chunks.
func count(chunks []chunk) int {
	n := 0
	for _, c := range chunks {
		n += len(c)
	}
	return n
}
