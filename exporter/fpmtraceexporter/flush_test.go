// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestShareOfAProducer(t *testing.T) {
	for open, want := range map[int]int64{
		1:    flushBytes,
		6:    flushBytes,
		12:   gatheredBytes / 12,
		100:  gatheredBytes / 100,
		128:  leastFlushBytes,
		5000: leastFlushBytes,
	} {
		ps := producers{open: make(map[string]*producer, open)}
		for i := range open {
			ps.open[fmt.Sprint(i)] = nil
		}
		assert.Equal(t, want, ps.share(), "%d producers", open)
	}
}

// TestManyProducersGatherLittle: rows of many producers do not wait for the end
// of the interval when there are many of them, and none is lost over it.
func TestManyProducersGatherLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(cfg *Config) { cfg.FlushInterval = time.Hour }).start(nil)
		const producers, rounds, rows = 32, 40, 20
		for round := range int64(rounds) {
			for id := range producers {
				r.send(fmt.Sprint(id), counted(round*rows, (round+1)*rows)...)
			}
			synctest.Wait() // the disk is fast
			r.core().mu.Lock()
			assert.Less(t, r.core().queue.bytes, int64(gatheredBytes+producers*rows*1000))
			r.core().mu.Unlock()
		}
		r.stop()
		assert.Equal(t, int64(producers*rounds*rows), r.sum("rows", outcomeWritten))
	})
}

// TestNoRowWaitsLongerThanFlushInterval, also behind a flush that came early.
func TestNoRowWaitsLongerThanFlushInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil).start(nil)
		r.send("4192", pass{counter: 0})
		time.Sleep(600 * time.Millisecond)
		r.send("4192", pass{counter: 1, pad: flushBytes})
		synctest.Wait()
		assert.Equal(t, int64(2), r.sum("rows", outcomeWritten), "early, for its size")
		r.send("4192", pass{counter: 2})
		time.Sleep(r.cfg.FlushInterval - time.Millisecond)
		synctest.Wait()
		assert.Equal(t, int64(2), r.sum("rows", outcomeWritten), "in a member of its own time")
		time.Sleep(time.Millisecond)
		synctest.Wait()
		assert.Equal(t, int64(3), r.sum("rows", outcomeWritten))
		r.stop()
	})
}

// TestACallIsTakenWholeOrNotAtAll, also when the exporter ends within it.
func TestACallIsTakenWholeOrNotAtAll(t *testing.T) {
	const rows = 3000 // some portions
	logs := logsOf("4192", counted(0, rows)...)
	taken := 0
	for i := range 20 {
		r := newRig(t, func(cfg *Config) { cfg.QueueSize = 1 << 20 }).start(nil)
		var calls sync.WaitGroup
		calls.Go(func() {
			for {
				if err := r.logs.ConsumeLogs(t.Context(), logs); err != nil {
					assert.ErrorIs(t, err, errNotRunning)
					return
				}
				r.took(rows)
			}
		})
		time.Sleep(time.Duration(i) * 500 * time.Microsecond)
		require.NoError(t, r.stopWithin(t.Context()))
		calls.Wait()
		r.checkLedger()
		taken += r.taken
	}
	assert.NotZero(t, taken)
}
