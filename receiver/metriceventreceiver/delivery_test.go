// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/otelcol-fpm/otelcol-fpm/internal/shutdown"
)

var (
	errNow  = errors.New("come again")
	errEver = consumererror.NewPermanent(errors.New("never"))
)

func refuse(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}

// observes is an event of a histogram with so much weight.
func observes(weight int) []any {
	return wireEvent(pairs{{"metric", itl}, {"operation", "observe"}, {"value", 0.5}, {"weight", weight}, {"timestamp_ns", time.Now().UnixNano()}})
}

// observed is the total count of the histogram that came out, which holds all
// points to their times.
func observed(t *testing.T, s *sink) int {
	t.Helper()
	return int(s.read(t).totals.of("1", itl, "").count)
}

func inBubble(t *testing.T, s *sink, change func(*Config), test func(t *testing.T, g *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, s, func(c *Config) { c.Batch.Timeout = 200 * time.Millisecond }, change)
		g.startWithoutServer()
		synctest.Wait()
		test(t, g)
	})
}

func TestBatches(t *testing.T) {
	s := &sink{}
	inBubble(t, s, func(c *Config) { c.Batch.MaxEvents = 10 }, func(t *testing.T, g *rig) {
		for n := range int64(8) {
			g.says(1, 3*n, observes(1), observes(1), observes(1))
		}
		synctest.Wait()
		assert.Equal(t, 18, observed(t, s), "whole batches go at once, of whole messages")
		time.Sleep(199 * time.Millisecond)
		synctest.Wait()
		assert.Equal(t, 18, observed(t, s))
		time.Sleep(time.Millisecond)
		synctest.Wait()
		assert.Equal(t, 24, observed(t, s), "the rest goes at batch::timeout")
		assert.Len(t, s.all(), 3)

		var many []any
		for range 25 {
			many = append(many, observes(1))
		}
		g.says(1, 24, many...)
		synctest.Wait()
		assert.Equal(t, 44, observed(t, s), "a message with more events than a batch is split")
		time.Sleep(time.Second)
		g.ended(49)
		assert.Equal(t, 49, observed(t, s))
		assert.Len(t, s.all(), 6, "an empty batch is not handed on")
	})
}

func TestRefusedForNowIsTriedAgain(t *testing.T) {
	s := &sink{answer: refuse(errNow)}
	inBubble(t, s, func(*Config) {}, func(t *testing.T, g *rig) {
		for n := range int64(100) {
			g.says(1, n, observes(2))
			time.Sleep(100 * time.Millisecond)
		}
		assert.Zero(t, observed(t, s))
		assert.Equal(t, int64(100), g.counter("queue_length", "")[""])
		s.tell(nil)
		time.Sleep(maxRetry * 3 / 2)
		synctest.Wait()
		assert.Equal(t, 200, observed(t, s))
		g.says(1, 100, observes(1))
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		assert.Equal(t, 201, observed(t, s), "linked to the last, and no longer waiting for a retry")
		c := g.ended(101)
		assert.Equal(t, int64(101), c.delivered)
		assert.Len(t, g.said("The next consumer refused events for now; trying again while the queue has room"), 1)
	})
}

func TestRefusedForGoodIsDropped(t *testing.T) {
	s := &sink{answer: refuse(errEver)}
	inBubble(t, s, func(*Config) {}, func(t *testing.T, g *rig) {
		g.says(1, 0, observes(1), observes(1))
		time.Sleep(time.Second)
		s.tell(nil)
		g.says(1, 2, observes(5))
		time.Sleep(time.Second)
		c := g.ended(3)
		assert.Equal(t, map[string]int64{"refused": 2}, c.droppedBy)
		assert.Equal(t, 5, observed(t, s))
	})
}

func TestFullQueueDropsTheOldest(t *testing.T) {
	s := &sink{answer: refuse(errNow)}
	inBubble(t, s, func(*Config) {}, func(t *testing.T, g *rig) {
		g.receiver.delivery.queue.limit = 100
		for n := range int64(30) {
			g.says(1, 10*n, wireEvents(10, pairs{{"value", n}})...)
			time.Sleep(50 * time.Millisecond)
		}
		s.tell(nil)
		time.Sleep(2 * maxRetry)
		c := g.ended(300)
		assert.Equal(t, map[string]int64{"queue_full": 200}, c.droppedBy)
		assert.Equal(t, int64(100), c.delivered)
		first := s.all()[0].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0)
		assert.Equal(t, int64(20), first.IntValue())
	})
}

// wireEvents are n events alike.
func wireEvents(n int, changes pairs) []any {
	events := make([]any, n)
	for i := range events {
		events[i] = wireEvent(changes)
	}
	return events
}

func TestShutdownDeliversWhatWaits(t *testing.T) {
	s := &sink{}
	inBubble(t, s, func(c *Config) { c.Batch.Timeout = time.Hour }, func(t *testing.T, g *rig) {
		g.says(1, 0, observes(3))
		assert.Equal(t, int64(1), g.ended(1).delivered)
		assert.Equal(t, 3, observed(t, s))
		g.shutdown() // a second time
	})
}

func TestShutdownTriesUntilItsEnd(t *testing.T) {
	s := &sink{answer: refuse(errNow)}
	inBubble(t, s, func(*Config) {}, func(t *testing.T, g *rig) {
		g.says(1, 0, observes(3))
		time.Sleep(time.Second)
		time.AfterFunc(2*time.Second, func() { s.tell(nil) })
		began := time.Now()
		g.ended(1)
		assert.Equal(t, 3, observed(t, s))
		assert.Less(t, time.Since(began), shutdown.Timeout)
	})
}

func TestShutdownCountsWhatItCannotDeliver(t *testing.T) {
	s := &sink{answer: refuse(errNow)}
	inBubble(t, s, func(*Config) {}, func(t *testing.T, g *rig) {
		g.says(1, 0, observes(1), observes(1))
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		require.NoError(t, g.receiver.Shutdown(ctx))
		assert.LessOrEqual(t, time.Since(began), time.Second)
		assert.Equal(t, map[string]int64{"shutdown": 2}, g.settled(2).droppedBy)
		assert.Len(t, g.said("Events dropped: not delivered before the end of shutdown"), 1)
	})
}

func TestShutdownDoesNotWaitForAConsumerThatHangs(t *testing.T) {
	release := make(chan struct{})
	s := &sink{}
	inBubble(t, s, func(*Config) {}, func(t *testing.T, g *rig) {
		release = make(chan struct{})
		s.tell(func(context.Context) error { <-release; return nil })
		g.says(1, 0, observes(1))
		time.Sleep(time.Second)
		g.says(1, 1, observes(1))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, g.receiver.Shutdown(ctx), errHanging)
		assert.LessOrEqual(t, time.Since(began), time.Second)
		assert.Equal(t, map[string]int64{"shutdown": 2}, g.settled(2).droppedBy)
		close(release)
		synctest.Wait()
		assert.Equal(t, map[string]int64{"shutdown": 2}, g.settled(2).droppedBy, "what it takes afterwards counts no more")
	})
}

func TestShutdownWithoutStart(t *testing.T) {
	g := newRig(t, &sink{})
	g.shutdown()
}

// Idle series and producers are forgotten without anybody asking, and a
// producer's telemetry with it.
func TestIdleProducersLeave(t *testing.T) {
	s := &sink{}
	inBubble(t, s, func(c *Config) { c.ProducerTTL, c.SeriesTTL = time.Minute, 30*time.Second }, func(t *testing.T, g *rig) {
		g.says(1, 0, observes(1))
		g.says(2, 0, observes(1))
		time.Sleep(25 * time.Second)
		g.says(2, 1, observes(1))
		time.Sleep(15 * time.Second)
		synctest.Wait()
		assert.Equal(t, int64(1), g.counter("series", "")[""], "only that of the second is in use")
		time.Sleep(40 * time.Second)
		synctest.Wait()
		assert.Equal(t, map[string]int64{"gpu-7:2:1600000000000000000": 2}, g.counter("producer_accepted", "producer"))
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, int64(0), g.counter("producers", "")[""])
		g.says(2, 2, observes(1))
		assert.Equal(t, map[string]int64{"gpu-7:2:1600000000000000000": 1}, g.counter("producer_accepted", "producer"))
		g.ended(4)
	})
}
