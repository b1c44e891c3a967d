// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

func keyOf(producer, worker string, rank int64) sampleKey {
	return sampleKey{Source: fpm.Source{Namespace: "ns", Component: "c", ProducerID: producer}, WorkerID: worker, DPRank: rank}
}

// events ticks and returns what was handed on.
func (s *sampler) events() (events []string) {
	s.tick(func(key *sampleKey, event []byte) {
		events = append(events, fmt.Sprintf("%s/%s/%d:%s", key.ProducerID, key.WorkerID, key.DPRank, event))
	})
	return events
}

func TestSamplerRules(t *testing.T) {
	s := newSampler(100)
	key := keyOf("p", "w", 0)
	type outcome struct{ superseded, evicted bool }
	offer := func(counter int64) outcome {
		superseded, evicted := s.offer(key, counter, []byte(strconv.FormatInt(counter, 10)))
		return outcome{superseded, evicted}
	}
	assert.Empty(t, s.events())

	assert.Equal(t, outcome{}, offer(5))
	assert.Equal(t, outcome{superseded: true}, offer(6), "a newer one takes the place of the one that waits")
	assert.Equal(t, outcome{superseded: true}, offer(6), "so does the same once more, while none is written")
	assert.Equal(t, []string{"p/w/0:6"}, s.events())
	assert.Empty(t, s.events(), "nothing new, nothing written")

	assert.Equal(t, outcome{superseded: true}, offer(6), "written already")
	assert.Empty(t, s.events())

	assert.Equal(t, outcome{}, offer(7))
	assert.Equal(t, outcome{superseded: true}, offer(6), "ignored, it does not take the place of 7")
	assert.Equal(t, []string{"p/w/0:7"}, s.events())

	assert.Equal(t, outcome{}, offer(9))
	assert.Equal(t, outcome{superseded: true}, offer(8), "newest is the last arrival")
	assert.Equal(t, []string{"p/w/0:8"}, s.events())

	assert.Equal(t, outcome{}, offer(0), "a publisher that starts over has changed")
	assert.Equal(t, []string{"p/w/0:0"}, s.events())
	assert.Zero(t, s.pending)
}

func TestSamplerWritesInKeyOrder(t *testing.T) {
	s := newSampler(100)
	for _, key := range []sampleKey{
		keyOf("p", "w", 10), keyOf("p", "w", 9), keyOf("p", "W", 0), keyOf("o", "z", 0), keyOf("p", "", 0), keyOf("p", "wé", 0), keyOf("p", "w~", 0),
		{Source: fpm.Source{Namespace: "a", Component: "z", ProducerID: "last id"}},
	} {
		s.offer(key, 1, nil)
	}
	assert.Equal(t, []string{"last id//0:", "o/z/0:", "p//0:", "p/W/0:", "p/w/9:", "p/w/10:", "p/w~/0:", "p/wé/0:"}, s.events())
}

func TestSamplerForgetsTheKeyHeardLongestAgo(t *testing.T) {
	s := newSampler(2)
	a, b, c := keyOf("a", "", 0), keyOf("b", "", 0), keyOf("c", "", 0)
	s.offer(a, 1, []byte("1"))
	s.offer(b, 1, []byte("1"))
	s.offer(a, 2, []byte("2")) // a was heard after b
	_, evicted := s.offer(c, 1, []byte("1"))
	assert.True(t, evicted, "b waited")
	assert.Equal(t, []string{"a//0:2", "c//0:1"}, s.events())

	_, evicted = s.offer(b, 1, []byte("1"))
	assert.False(t, evicted, "a did not wait")
	assert.Len(t, s.keys, 2)
	assert.Equal(t, []string{"b//0:1"}, s.events())
	assert.Equal(t, b.size()+c.size(), s.bytes)
}

// TestSamplerAddsUp drives a sampler at random: every record is handed on,
// superseded or lost with its key, and the sums are those of the entries.
func TestSamplerAddsUp(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	s := newSampler(20)
	offered, handed, superseded, lost := 0, 0, 0, 0
	for range 20_000 {
		key := keyOf("p", strconv.Itoa(random.IntN(30)), random.Int64N(2))
		gone, evicted := s.offer(key, random.Int64N(4), make([]byte, random.IntN(8000)))
		offered++
		if gone {
			superseded++
		}
		if evicted {
			lost++
		}
		switch random.IntN(100) {
		case 0:
			handed += len(s.events())
		case 1:
			if s.evict() {
				lost++
			}
		}
		pending, size, linked := 0, int64(0), 0
		for entry := s.recent; entry != nil; entry = entry.older {
			linked++
			size += entry.key.size()
			if entry.waits {
				pending++
				size += int64(len(entry.event))
			}
		}
		require.Equal(t, len(s.keys), linked)
		require.LessOrEqual(t, linked, 20)
		require.Equal(t, pending, s.pending)
		require.Equal(t, size, s.bytes)
	}
	handed += len(s.events())
	assert.Equal(t, offered, handed+superseded+lost)
	for s.oldest != nil {
		s.evict()
	}
	assert.Zero(t, s.bytes)
	assert.Nil(t, s.recent)
	assert.False(t, s.evict())
}
