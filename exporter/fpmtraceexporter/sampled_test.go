// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func sampled(cfg *Config) { cfg.Mode = modeSampled }

func TestSampledModeWritesTheNewestAtEachInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, sampled).start(nil)
		interval, flush := r.cfg.SampleInterval, r.cfg.FlushInterval
		began := time.Now()
		for counter := range int64(40) { // for 4 s
			for rank := range int64(2) {
				r.send("4192", pass{rank: rank, counter: counter, at: time.Now()})
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Until(began.Add(interval)) - time.Millisecond)
		synctest.Wait()
		assert.Zero(t, r.sum("rows", outcomeWritten), "the first interval is not over")
		time.Sleep(flush + 2*time.Millisecond)
		synctest.Wait()
		rows := r.rows("fpm.4192.000000")
		assert.Equal(t, []int64{39, 39}, counters(rows), "one row a key, whatever came meanwhile")
		assert.Equal(t, int64(0), rows[0].Event.FPM.DPRank)
		assert.Equal(t, int64(1), rows[1].Event.FPM.DPRank)
		assert.Equal(t, "sampled", rows[0].Event.CaptureMode)
		assert.Equal(t, began.Add(3900*time.Millisecond).UnixMilli(), rows[0].Event.ObservedAtUnixMS, "observed then, written later")

		// No news, no row, interval after interval.
		r.send("4192", pass{counter: 39})
		time.Sleep(3 * interval)
		synctest.Wait()
		assert.Len(t, r.rows(""), 2)

		// What waits is written at shutdown, and 39 does not take 40's place.
		r.send("4192", pass{counter: 40}, pass{counter: 39})
		r.stop()
		assert.Equal(t, []int64{39, 39, 40}, counters(r.rows("")))
		assert.Equal(t, int64(3), r.sum("rows", outcomeWritten))
		assert.Equal(t, int64(80), r.sum("rows", outcomeSuperseded))
	})
}

func TestSampledModeRestartOfAPublisher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, sampled).start(nil)
		r.send("4192", counted(0, 500)...)
		time.Sleep(r.cfg.SampleInterval + r.cfg.FlushInterval + time.Millisecond)
		r.send("4192", counted(0, 3)...)
		time.Sleep(r.cfg.SampleInterval)
		r.stop()
		assert.Equal(t, []int64{499, 2}, counters(r.rows("")))
	})
}

// TestSampledModeKeys: workers, components and namespaces of one producer are
// sampled apart and share its files.
func TestSampledModeKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, sampled).start(nil)
		r.send("4192", pass{worker: "b", counter: 1}, pass{worker: "a", counter: 2}, pass{worker: "a", counter: 3}, pass{worker: "a", rank: 1, counter: 4})
		r.send("other", pass{worker: "a", counter: 5})
		r.stop()
		assert.Equal(t, []string{"fpm.4192.000000.jsonl.gz", "fpm.other.000000.jsonl.gz"}, r.files())
		assert.Equal(t, []int64{3, 4, 1}, counters(r.rows("4192")), "in the order of the keys")
	})
}

func TestMaxKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(cfg *Config) { cfg.Mode, cfg.MaxKeys = modeSampled, 10 }).start(nil)
		for rank := range int64(25) {
			r.send("4192", pass{rank: rank, counter: rank})
		}
		r.stop()
		assert.Equal(t, span(15, 25), counters(r.rows("")), "the keys heard last stay")
		assert.Equal(t, int64(15), r.sum("dropped", reasonKeyLimit))
		assert.Len(t, r.said.FilterMessage("forward passes are not written to the trace").All(), 1, "one line, not fifteen")
	})
}

// TestSampledModeKeepsQueueBytes: records that wait for their interval count.
func TestSampledModeKeepsQueueBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(cfg *Config) { cfg.Mode, cfg.QueueBytes = modeSampled, 100_000 }).start(nil)
		for rank := range int64(50) {
			r.send("4192", pass{rank: rank, counter: rank, pad: 10_000})
		}
		r.stop()
		assert.Equal(t, span(41, 50), counters(r.rows("")))
		assert.Equal(t, int64(41), r.sum("dropped", reasonQueueFull))
	})
}
