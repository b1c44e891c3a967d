// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// texts are the rows of a lane, oldest first.
func (l *lane) texts() (rows []string) {
	for _, c := range l.chunks {
		for line := range bytes.Lines(c.text()) {
			rows = append(rows, string(line))
		}
	}
	return rows
}

func rowText(timestamp int64, event string) string {
	return fmt.Sprintf("{\"timestamp\":%d,\"event\":%s}\n", timestamp, event)
}

func TestQueueDropsTheOldest(t *testing.T) {
	var (
		q    queue
		a, b lane
	)
	big := `"` + strings.Repeat("x", chunkBytes-100) + `"`
	q.push(&a, 1, []byte(big))
	q.push(&b, 2, []byte(big))
	q.push(&a, 3, []byte(big))
	for _, want := range []*lane{&a, &b, &a} {
		l, ok := q.dropOldest()
		require.True(t, ok)
		assert.Same(t, want, l)
	}
	_, ok := q.dropOldest()
	assert.False(t, ok)
	assert.Zero(t, q.rows)
	assert.Zero(t, q.bytes)
}

func TestQueueNeverDropsWhatIsBeingWritten(t *testing.T) {
	var (
		q queue
		l lane
	)
	q.push(&l, 1, []byte("1"))
	q.push(&l, 2, []byte("2"))
	require.Len(t, q.take(&l, 1<<20), 1)
	_, ok := q.dropOldest()
	assert.False(t, ok)
	assert.False(t, q.dropOldestOf(&l))
	q.push(&l, 3, []byte("3"))
	assert.True(t, q.dropOldestOf(&l))
	assert.False(t, q.dropOldestOf(&l))

	// A failed write brings the rows back into their old place.
	q.push(&l, 4, []byte("4"))
	q.landed(&l, 0)
	assert.Equal(t, []string{rowText(1, "1"), rowText(2, "2"), rowText(4, "4")}, l.texts())
	assert.True(t, q.dropOldestOf(&l))
	assert.Equal(t, []string{rowText(2, "2"), rowText(4, "4")}, l.texts())
	assert.Equal(t, 2, q.dropAll(&l))
	assert.Zero(t, q.rows)
}

func TestQueueTakesAboutAMember(t *testing.T) {
	var (
		q queue
		l lane
	)
	event := []byte(`"` + strings.Repeat("x", 1000) + `"`)
	for range 3000 {
		q.push(&l, 1, event)
	}
	size := int64(0)
	for _, c := range q.take(&l, flushBytes) {
		size += int64(len(c.text()))
	}
	assert.LessOrEqual(t, size, int64(flushBytes))
	assert.Greater(t, size, int64(flushBytes-2*chunkBytes))
	q.landed(&l, size)

	// A row larger than a member still goes.
	var large lane
	q.push(&large, 1, make([]byte, 3*flushBytes))
	assert.Len(t, q.take(&large, flushBytes), 1)
}

// TestQueueAddsUp drives a queue at random and compares it with lists of rows.
func TestQueueAddsUp(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var q queue
	lanes := make([]lane, 4)
	models := make([][]string, len(lanes))
	check := func() {
		rows, size, busy := 0, 0, 0
		for i := range lanes {
			laneSize := len(strings.Join(models[i], ""))
			require.Equal(t, models[i], lanes[i].texts())
			require.Equal(t, len(models[i]), lanes[i].rows)
			require.EqualValues(t, laneSize, lanes[i].bytes)
			flying := int64(0)
			for _, c := range lanes[i].chunks[:lanes[i].flying] {
				flying += int64(len(c.text()))
			}
			require.Equal(t, int64(laneSize)-flying, lanes[i].waits())
			busy += min(len(models[i]), 1)
			rows += len(models[i])
			size += laneSize
		}
		require.Equal(t, rows, q.rows)
		require.EqualValues(t, size, q.bytes)
		require.Equal(t, busy, q.busy)
		require.LessOrEqual(t, len(q.spare), maxSpare)
		for _, c := range q.spare {
			require.LessOrEqual(t, cap(c.buf), chunkBytes)
		}
	}
	flying := func(i int) (rows int) {
		for _, c := range lanes[i].chunks[:lanes[i].flying] {
			rows += c.rows
		}
		return rows
	}
	drop := func(i, at int) { // a copy, so that an empty model stays nil
		models[i] = append(append([]string(nil), models[i][:at]...), models[i][at+1:]...)
	}
	for step := range 20_000 {
		i := random.IntN(len(lanes))
		l := &lanes[i]
		switch op := random.IntN(12); {
		case op < 6:
			event := fmt.Sprintf("%q", strings.Repeat("x", random.IntN(20_000)))
			q.push(l, int64(step), []byte(event))
			models[i] = append(models[i], rowText(int64(step), event))
		case op < 8 && l.flying == 0:
			q.take(l, int64(random.IntN(4*chunkBytes)))
		case op < 10 && l.flying > 0:
			written, landing := 0, random.IntN(flying(i)+1)
			for _, row := range models[i][:landing] {
				written += len(row)
			}
			q.landed(l, int64(written))
			models[i] = append([]string(nil), models[i][landing:]...)
		case op == 10:
			at := flying(i)
			if q.dropOldestOf(l) {
				drop(i, at)
			} else {
				require.Len(t, models[i], at)
			}
		case op == 11:
			if random.IntN(50) == 0 {
				at := flying(i)
				require.Equal(t, len(models[i])-at, q.dropAll(l))
				models[i] = append([]string(nil), models[i][:at]...)
				break
			}
			for j := range lanes {
				if q.waiting.first != nil && q.waiting.first.lane == &lanes[j] {
					at := flying(j)
					q.dropOldest()
					drop(j, at)
					break
				}
			}
		}
		if step%16 == 0 {
			check()
		}
	}
	check()
}
