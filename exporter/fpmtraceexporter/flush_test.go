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

func TestShareOfALane(t *testing.T) {
	for busy, want := range map[int]int64{
		0:    flushBytes,
		1:    flushBytes,
		6:    flushBytes,
		12:   gatheredBytes / 12,
		100:  gatheredBytes / 100,
		128:  leastFlushBytes,
		5000: leastFlushBytes,
	} {
		assert.Equal(t, want, (&queue{busy: busy}).share(), "%d lanes", busy)
	}
}

// manyBusy gives the exporter so many producers with rows that the share of each
// is the least.
func manyBusy(r *rig) (rows int64) {
	const producers = 200
	for id := range producers {
		r.send(fmt.Sprint("busy", id), pass{})
	}
	return producers
}

// TestRowsThatComeDuringAWriteWait for company, and are no member of their own.
func TestRowsThatComeDuringAWriteWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := &faults{}
		r := newRig(t, func(cfg *Config) { cfg.FlushInterval = time.Hour }).start(fs)
		others := manyBusy(r)
		fs.set(func(f *faults) { f.write = func() error { time.Sleep(10 * time.Millisecond); return nil } })
		r.send("4192", counted(0, 80)...) // more than the share
		time.Sleep(5 * time.Millisecond)
		r.send("4192", counted(80, 90)...)
		time.Sleep(time.Second)
		assert.Equal(t, int64(80), r.sum("rows", outcomeWritten))
		r.send("4192", counted(90, 160)...)
		time.Sleep(time.Second)
		assert.Equal(t, int64(160), r.sum("rows", outcomeWritten))
		r.stop()
		assert.Equal(t, others+160, r.sum("rows", outcomeWritten))
	})
}

// TestOneNudgeIsOneFlush: a nudge for rows that a flush is about to write does not
// make another one, of the few rows that came since.
func TestOneNudgeIsOneFlush(t *testing.T) {
	r := newRig(t, nil).start(nil)
	e := r.core()
	p := &producer{id: "4192", wake: make(chan struct{}, 1)} // without a goroutine
	p.lane.producer = p
	var nothing tally
	e.mu.Lock()
	e.openWriter(p, &nothing)
	e.queue.push(&p.lane, 0, []byte(`"event"`))
	e.mu.Unlock()
	r.took(1)
	p.nudge()
	require.True(t, e.flush(p))
	assert.Empty(t, p.wake)
	report := p.writer.Close()
	e.reportWrite(p, &report)
	r.stop()
}

// TestIdleProducersHaveNoShare: one that is busy among many that are not gathers
// as if it were alone.
func TestIdleProducersHaveNoShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil).start(nil)
		others := manyBusy(r)
		time.Sleep(time.Hour)
		synctest.Wait()
		r.send("4192", counted(0, 100)...)
		synctest.Wait()
		assert.Equal(t, others, r.sum("rows", outcomeWritten))
		r.stop()
	})
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
