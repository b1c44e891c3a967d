// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFullModeWritesEveryRecordInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil).start(nil)
		began := time.Now()
		r.send("4192", pass{worker: "w", rank: 3, counter: 1, at: began}, pass{worker: "w", rank: 3, counter: 2, at: began.Add(5 * time.Millisecond)})
		synctest.Wait()
		assert.Empty(t, r.files(), "nothing is written before flush_interval")
		time.Sleep(r.cfg.FlushInterval)
		synctest.Wait()
		rows := r.rows("fpm.4192.000000.jsonl.gz")
		assert.Equal(t, []int64{1, 2}, counters(rows), "a row is in its file after flush_interval")

		time.Sleep(1234 * time.Millisecond)
		r.send("4192", pass{counter: 3})
		r.stop()
		rows = r.rows("")
		assert.Equal(t, []int64{1, 2, 3}, counters(rows))
		first, last := rows[0], rows[2]
		assert.Equal(t, int64(0), first.Timestamp)
		assert.Equal(t, int64(2234), last.Timestamp, "milliseconds since the writer began")
		assert.Equal(t, "dynamo.fpm.trace.v1", first.Event.Schema)
		assert.Equal(t, "default", first.Event.Source.Namespace)
		assert.Equal(t, "backend", first.Event.Source.Component)
		assert.Equal(t, "4192", first.Event.Source.ProducerID)
		assert.Equal(t, "full", first.Event.CaptureMode)
		assert.Equal(t, began.UnixMilli(), first.Event.ObservedAtUnixMS)
		assert.Equal(t, began.UnixMilli()+5, rows[1].Event.ObservedAtUnixMS)
		assert.Equal(t, int64(3), first.Event.FPM.DPRank)
		assert.Equal(t, "w", first.Event.FPM.WorkerID)
		require.Equal(t, int64(3), r.sum("rows", outcomeWritten))
		assert.Empty(t, r.said.All())
	})
}
