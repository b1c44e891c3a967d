// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

var (
	errNow  = errors.New("come again")
	errEver = consumererror.NewPermanent(errors.New("never"))
)

// refuse refuses each try with err.
func refuse(err error) func(context.Context, int) error {
	return func(context.Context, int) error { return err }
}

// rangeOf is first … last.
func rangeOf(first, last int64) []int64 {
	var all []int64
	for n := first; n <= last; n++ {
		all = append(all, n)
	}
	return all
}

// sendRange sends busy passes first … last, 1 ms apart.
func sendRange(e *endpoint, first, last int64) {
	for n := first; n <= last; n++ {
		send(e, busy("w", 0, n))
		time.Sleep(time.Millisecond)
	}
}

func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := &logsSink{}
		g := newRig(t, testConfig(func(c *Config) { c.Batch.MaxMessages = 10 }), nil, logs)
		g.startWithoutIntake()
		synctest.Wait()
		began := time.Now()
		e := g.endpoint(0)
		e.Connected()

		for n := range int64(25) {
			send(e, busy("w", 0, n))
		}
		synctest.Wait()
		require.Equal(t, rangeOf(0, 19), logCounters(logs.records()), "whole batches go at once")
		time.Sleep(199 * time.Millisecond)
		synctest.Wait()
		require.Len(t, logs.records(), 20)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Equal(t, rangeOf(0, 24), logCounters(logs.records()), "the rest goes at batch::timeout")
		require.Equal(t, 200*time.Millisecond, time.Since(began))
		for _, ld := range logs.all() {
			require.LessOrEqual(t, ld.LogRecordCount(), 10)
		}
		g.shutdown()
		g.settled(25)
	})
}

// With gauge_interval points are of ranks and not of messages: metrics do not go
// by max_messages, logs beside them do.
func TestBatchesOfTotals(t *testing.T) {
	for interval, wantBatches := range map[time.Duration]int{0: 3, time.Second: 1} {
		t.Run(interval.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				metrics, logs := &metricsSink{}, &logsSink{}
				g := newRig(t, testConfig(func(c *Config) { c.Batch.MaxMessages, c.GaugeInterval = 10, interval }), metrics, logs)
				g.startWithoutIntake()
				synctest.Wait()
				e := g.endpoint(0)
				e.Connected()
				for n := range int64(25) {
					send(e, busy("w", 0, n))
				}
				time.Sleep(g.receiver.config.Batch.Timeout)
				synctest.Wait()
				batches, passes := 0, int64(0)
				for _, md := range metrics.all() {
					if n, _ := observed(pointsOf(md), 0); n > 0 {
						batches++
						passes += n
					}
				}
				require.Equal(t, wantBatches, batches)
				require.Equal(t, int64(25), passes)
				require.Len(t, logs.all(), 3)
				g.shutdown()
				g.settled(25)
			})
		})
	}
}

// A batch is bounded in bytes too, and what is left of it does not wait for the
// next tick.
func TestBatchBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := &logsSink{}
		g := newRig(t, testConfig(), nil, logs)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		long := make([]byte, 1<<20-1000)
		for n := range int64(11) {
			payload := busy("w", 0, n).payload()
			// One more root key: "extra" with a string of nearly 1 MiB.
			payload[0]++
			payload = append(append(payload, "\xa5extra\xdb\x00\x0f\xfc\x18"...), long...)
			e.Message(envelope(uint64(n), payload), time.Now())
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, rangeOf(0, 10), logCounters(logs.records()))
		for _, ld := range logs.all() {
			require.LessOrEqual(t, ld.LogRecordCount(), 4)
		}
		g.shutdown()
		g.settled(11)
	})
}

func TestRefusedForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics, logs := &metricsSink{}, &logsSink{}
		metrics.tell(refuse(errEver))
		g := newRig(t, testConfig(), metrics, logs)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		sendRange(e, 0, 999)
		time.Sleep(time.Second)
		g.shutdown()
		c := g.settled(1000)
		assert.EqualValues(t, 1000, c.dropped["metrics"][droppedRefused])
		assert.Equal(t, rangeOf(0, 999), logCounters(logs.records()), "the other signal is not concerned")
		assert.Empty(t, metrics.all())
		assert.Len(t, g.warnings("refused them for good"), 1, "at most one line in 10 s")
	})
}

// What time alone brings is not tried again and again at a consumer that will
// never take it.
func TestRefusedForGoodIsNotTriedAtEveryTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		metrics.tell(refuse(errEver))
		g := newRig(t, testConfig(), metrics, nil)
		g.startWithoutIntake()
		time.Sleep(time.Minute)
		g.shutdown()
		assert.LessOrEqual(t, metrics.tries, 8, "once at the start, then each 10 s")
		g.settled(0)
	})
}

func TestRefusedForNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics, logs := &metricsSink{}, &logsSink{}
		g := newRig(t, testConfig(func(c *Config) { c.Batch.MaxMessages = 100 }), metrics, logs)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		sendRange(e, 0, 499)
		metrics.tell(refuse(errNow))
		logs.tell(refuse(errNow))
		sendRange(e, 500, 1999)
		time.Sleep(30 * time.Second)
		metrics.tell(nil)
		logs.tell(nil)
		sendRange(e, 2000, 2499)
		time.Sleep(10 * time.Second)
		g.shutdown()
		c := g.settled(2500)
		assert.EqualValues(t, 2500, c.delivered["metrics"])
		assert.Equal(t, rangeOf(0, 2499), counters(metrics.points()), "nothing lost, order kept")
		assert.Equal(t, rangeOf(0, 2499), logCounters(logs.records()))
		wellFormed(t, metrics.points())
		contiguous(t, metrics.points())
		assert.NotEmpty(t, g.warnings("refused messages for now"))
	})
}

// Whatever is refused for now, refused for good or dropped, the start of a delta
// point is the time of the point before it that was delivered.
func TestOnlyDeliveredPointsLinkTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		g := newRig(t, testConfig(func(c *Config) { c.QueueSize = 300 }), metrics, nil)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		sendRange(e, 0, 99)
		time.Sleep(time.Second)
		metrics.tell(refuse(errEver)) // 100 … 199 are refused for good
		sendRange(e, 100, 199)
		time.Sleep(time.Second)
		metrics.tell(refuse(errNow)) // 200 … 399 go when the queue is full, 400 … 699 come late
		sendRange(e, 200, 699)
		time.Sleep(time.Second)
		metrics.tell(nil)
		time.Sleep(10 * time.Second)
		sendRange(e, 700, 709)
		g.shutdown()

		c := g.settled(710)
		assert.EqualValues(t, 100, c.dropped["metrics"][droppedRefused])
		assert.EqualValues(t, 200, c.dropped["metrics"][droppedQueueFull])
		all := metrics.points()
		assert.Equal(t, append(rangeOf(0, 99), rangeOf(400, 709)...), counters(all))
		wellFormed(t, all)
		contiguous(t, all)
		// The links of each series begin with the stream.
		for _, metric := range []string{fpm.MetricPrefillTokens, fpm.MetricDecodeTokens, fpm.MetricStepDuration, fpm.MetricDecodeTokenLatency} {
			points := of(all, metric)
			require.Len(t, points, 410, metric)
			assert.Equal(t, time.Millisecond, points[0].at.AsTime().Sub(points[0].start.AsTime()), metric)
		}
	})
}

func TestQueueFullDropsTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics, logs := &metricsSink{}, &logsSink{}
		metrics.tell(refuse(errNow))
		g := newRig(t, testConfig(func(c *Config) { c.QueueSize = 100 }), metrics, logs)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		sendRange(e, 0, 999)
		time.Sleep(time.Minute)
		metrics.tell(nil)
		time.Sleep(10 * time.Second)
		g.shutdown()
		c := g.settled(1000)
		assert.EqualValues(t, 900, c.dropped["metrics"][droppedQueueFull])
		assert.Equal(t, rangeOf(900, 999), counters(metrics.points()), "the newest stay")
		assert.Equal(t, rangeOf(0, 999), logCounters(logs.records()), "the other signal is not concerned")
		assert.NotEmpty(t, g.warnings("Oldest messages dropped"))
	})
}

// A batch comes back from a consumer that took its time to refuse it, and finds
// the queue full: its oldest messages go.
func TestRefusedBatchComesBackToAFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := &logsSink{}
		logs.tell(func(_ context.Context, try int) error {
			if try == 1 {
				time.Sleep(time.Second)
				return errNow
			}
			return nil
		})
		g := newRig(t, testConfig(func(c *Config) { c.QueueSize = 100 }), nil, logs)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		sendRange(e, 0, 119) // 50 are half of the queue: they go out at once
		time.Sleep(10 * time.Second)
		g.shutdown()
		c := g.settled(120)
		assert.EqualValues(t, 20, c.dropped["logs"][droppedQueueFull])
		assert.Equal(t, rangeOf(20, 119), logCounters(logs.records()))
	})
}

func TestQueueBytesDropTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		size := int64(len(busy("w", 0, 1000).payload()))
		logs := &logsSink{}
		logs.tell(refuse(errNow))
		g := newRig(t, testConfig(func(c *Config) {
			c.QueueBytes = 50 * size
			c.MaxMessageBytes = size
		}), nil, logs)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		sendRange(e, 1000, 1199)
		logs.tell(nil)
		time.Sleep(10 * time.Second)
		g.shutdown()
		c := g.settled(200)
		assert.EqualValues(t, 150, c.dropped["logs"][droppedQueueFull])
		assert.Equal(t, rangeOf(1150, 1199), logCounters(logs.records()))
	})
}

// A pipeline that takes its time holds up neither the other signal nor the
// endpoints.
func TestSlowSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics, logs := &metricsSink{}, &logsSink{}
		metrics.tell(func(ctx context.Context, _ int) error {
			select {
			case <-time.After(10 * time.Second):
			case <-ctx.Done():
			}
			return ctx.Err()
		})
		g := newRig(t, testConfig(), metrics, logs)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		sendRange(e, 0, 499)
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		assert.Equal(t, rangeOf(0, 499), logCounters(logs.records()))
		assert.Empty(t, metrics.points())
		time.Sleep(time.Minute)
		g.shutdown()
		c := g.settled(500)
		assert.EqualValues(t, 500, c.delivered["metrics"])
	})
}
