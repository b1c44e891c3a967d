// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func chunkOf(events int) chunk { return make(chunk, events) }

func sizes(chunks []chunk) []int {
	var all []int
	for _, c := range chunks {
		all = append(all, len(c))
	}
	return all
}

func TestQueue(t *testing.T) {
	q := newQueue(10, 5)
	assert.Empty(t, q.push(chunkOf(1)))
	assert.Empty(t, q.enough)
	assert.Empty(t, q.push(chunkOf(4)))
	assert.Len(t, q.enough, 1, "a whole batch waits")
	assert.Empty(t, q.push(chunkOf(5)))
	assert.Equal(t, []int{1, 4}, sizes(q.push(chunkOf(3))), "the oldest go")
	assert.Equal(t, 8, q.waiting())
	assert.Equal(t, []int{5}, sizes(q.take(7)))
	assert.Equal(t, []int{3}, sizes(q.take(1)), "one is taken, however large")
	assert.Empty(t, q.take(100))
	assert.Zero(t, q.waiting())
	assert.Empty(t, q.push(chunkOf(20)), "a single one may be over the limit")
	assert.Equal(t, []int{20}, sizes(q.push(chunkOf(1))))
}

func TestRestoredEventsAreTheOldest(t *testing.T) {
	q := newQueue(10, 100)
	for n := 1; n <= 4; n++ {
		q.push(chunkOf(n))
	}
	taken := q.take(6)
	assert.Equal(t, []int{1, 2, 3}, sizes(taken))
	assert.Empty(t, q.restore(taken))
	assert.Equal(t, 10, q.waiting())
	assert.Equal(t, []int{1, 2, 3, 4}, sizes(q.take(math.MaxInt)))

	for n := 1; n <= 4; n++ {
		q.push(chunkOf(n))
	}
	taken = q.take(6)
	q.push(chunkOf(3))
	assert.Equal(t, []int{1, 2}, sizes(q.restore(taken)), "no room for the oldest any more")
	assert.Equal(t, []int{3, 4, 3}, sizes(q.take(math.MaxInt)))
}

func TestQueueKeepsItsBounds(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	q := newQueue(50, 10)
	pushed, out, taken := 0, 0, 0
	for range 10_000 {
		switch random.IntN(3) {
		case 0, 1:
			n := 1 + random.IntN(20)
			pushed += n
			out += count(q.push(chunkOf(n)))
		default:
			hand := q.take(random.IntN(30))
			if random.IntN(2) == 0 {
				for range random.IntN(3) {
					pushed += 7
					out += count(q.push(chunkOf(7)))
				}
				out += count(q.restore(hand))
				continue
			}
			taken += count(hand)
		}
		require.LessOrEqual(t, q.waiting(), 50)
		require.Equal(t, count(q.chunks), q.waiting())
		require.Equal(t, pushed, out+taken+q.waiting())
	}
}
