// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
	"github.com/otelcol-fpm/otelcol-fpm/internal/shutdown"
)

const queuedRequests = "fpm.queued.prefill.requests"

// waiting is a pass whose counter can be told from a gauge, too.
func waiting(rank int, counter int64) pass {
	p := busy("w", rank, counter)
	p.Queued.NumPrefillRequests = int(counter)
	return p
}

func held(t *testing.T, interval time.Duration, change ...func(*Config)) (*rig, *metricsSink) {
	metrics := &metricsSink{}
	g := newRig(t, testConfig(append(change, func(c *Config) { c.GaugeInterval = interval })...), metrics, nil)
	g.startWithoutIntake()
	g.endpoint(0).Connected()
	return g, metrics
}

// valuesOf are those of a metric's points, the ones without a value left out.
func valuesOf(all []point, metric string, rank int64) (found []point) {
	for _, p := range of(all, metric) {
		if !p.noValue && p.attributes["fpm.dp_rank"] == rank {
			found = append(found, p)
		}
	}
	return found
}

// Ranks at several paces: points are sent an interval apart, the newest value soon after it came, and what adds up counts
// each message.
func TestHeldPointsAreSaid(t *testing.T) {
	const (
		interval = time.Second
		batch    = 200 * time.Millisecond
		lasts    = 10 * time.Second
	)
	paces := []time.Duration{7 * time.Millisecond, 300 * time.Millisecond, 999 * time.Millisecond, 1300 * time.Millisecond}
	synctest.Test(t, func(t *testing.T) {
		g, metrics := held(t, interval)
		sent := make([]int64, len(paces))
		for elapsed := time.Duration(0); elapsed < lasts; elapsed += time.Millisecond {
			for rank, pace := range paces {
				if elapsed%pace == 0 {
					send(g.endpoint(0), waiting(rank, sent[rank]))
					sent[rank]++
				}
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(interval + 2*batch)
		all := metrics.points()
		for rank, pace := range paces {
			gauges := valuesOf(all, queuedRequests, int64(rank))
			require.NotEmpty(t, gauges)
			assert.LessOrEqual(t, gauges[0].value, float64(batch/pace), "the first batch has the first")
			assert.InDelta(t, sent[rank]-1, gauges[len(gauges)-1].value, 0, "the newest value of rank %d", rank)
			assert.LessOrEqual(t, len(gauges), int(lasts/max(interval, pace))+2, "rank %d", rank)
			assert.GreaterOrEqual(t, len(gauges), int(lasts/(max(interval, pace)+batch)), "rank %d", rank)
			messages := valuesOf(all, fpm.MetricMessages, int64(rank))
			require.Len(t, messages, len(gauges))
			require.Len(t, valuesOf(all, fpm.MetricMessagesLost, int64(rank)), len(gauges))
			for i := range gauges {
				assert.InDelta(t, gauges[i].value, messages[i].value, 0)
				assert.Equal(t, gauges[i].at, messages[i].at)
			}
			require.Len(t, valuesOf(all, fpm.MetricDecodeTokens, int64(rank)), len(gauges))
			passes, tokens := observed(all, int64(rank))
			assert.Equal(t, sent[rank], passes, "each pass is observed")
			assert.Equal(t, 3*sent[rank], tokens)
		}
		g.shutdown()
		wellFormed(t, metrics.points())
		contiguous(t, metrics.points())
		total := int64(0)
		for _, n := range sent {
			total += n
		}
		g.settled(int(total))
	})
}

// The times of messages come from the wall clock, which may be stepped back; when gauges are sent does not.
func TestHeldGaugesAndAClockSteppedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, metrics := held(t, time.Second)
		for n := range int64(100) {
			at := time.Now().Round(0)
			if n >= 50 {
				at = at.Add(-time.Hour)
			}
			g.endpoint(0).Message(waiting(0, n).frames(), at)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(1200 * time.Millisecond)
		gauges := valuesOf(metrics.points(), queuedRequests, 0)
		assert.InDelta(t, 10, len(gauges), 2)
		assert.InDelta(t, 99, gauges[len(gauges)-1].value, 0)
		g.shutdown()
		wellFormed(t, metrics.points())
		assert.Len(t, ends(metrics.points())[int64(0)], fpm.Gauges)
	})
}

// twoPipelines hands each batch to one consumer after the other, as the Collector does.
type twoPipelines struct{ first, second *metricsSink }

func (twoPipelines) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (p twoPipelines) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	kept := pmetric.NewMetrics()
	md.CopyTo(kept)
	return errors.Join(p.first.ConsumeMetrics(ctx, kept), p.second.ConsumeMetrics(ctx, md))
}

// Of two consumers the first takes a batch that the second refuses for good: the first gets no value twice.
func TestHeldGaugesAreNotSaidTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &metricsSink{}, &metricsSink{}
		g := newRig(t, testConfig(func(c *Config) { c.GaugeInterval = time.Second }), twoPipelines{first, second}, nil)
		g.startWithoutIntake()
		g.endpoint(0).Connected()
		send(g.endpoint(0), waiting(0, 0))
		time.Sleep(500 * time.Millisecond)
		send(g.endpoint(0), waiting(0, 1))
		time.Sleep(450 * time.Millisecond)
		second.tell(refuse(errEver))
		time.Sleep(500 * time.Millisecond) // within which the second value is due
		second.tell(nil)
		assert.Equal(t, []int64{0, 1}, counters(first.points()))
		time.Sleep(time.Second)
		send(g.endpoint(0), waiting(0, 2))
		time.Sleep(10 * time.Second)
		g.shutdown()
		wellFormed(t, slices.DeleteFunc(first.points(), func(p point) bool { return p.delta })) // deltas begin where second's ended
		assert.Equal(t, []int64{0, 1, 2}, counters(first.points()))
	})
}

// Gauges that are held longer than their rank is waited for are said before they end.
func TestHeldGaugesAreSaidBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, metrics := held(t, time.Minute)
		send(g.endpoint(0), waiting(0, 0))
		time.Sleep(time.Second)
		send(g.endpoint(0), waiting(0, 1))
		time.Sleep(20 * time.Second)
		assert.Equal(t, []int64{0, 1}, counters(metrics.points()))
		assert.Len(t, ends(metrics.points())[int64(0)], fpm.Gauges)
		g.endpoint(0).Message(envelope(2, busy("w", 0, 2).scoped("other")), time.Now())
		time.Sleep(time.Second)
		assert.Equal(t, []int64{0, 1, 2}, counters(metrics.points()))
		g.shutdown()
		wellFormed(t, metrics.points())
		g.settled(3)
	})
}

// A refused batch changes nothing: what was held is said later, once.
func TestHeldGaugesOutliveARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, metrics := held(t, time.Second)
		send(g.endpoint(0), waiting(0, 0), waiting(0, 1), waiting(0, 2))
		time.Sleep(500 * time.Millisecond)
		metrics.tell(refuse(errNow))
		send(g.endpoint(0), waiting(0, 3))
		time.Sleep(2 * time.Second)
		metrics.tell(nil)
		time.Sleep(8 * time.Second)
		assert.Equal(t, []int64{2, 3}, counters(metrics.points()))
		assert.Len(t, ends(metrics.points())[int64(0)], fpm.Gauges, "and the gauges end with their rank")
		send(g.endpoint(0), waiting(0, 4), waiting(0, 5))
		time.Sleep(300 * time.Millisecond)
		assert.Equal(t, []int64{2, 3, 5}, counters(metrics.points()), "after the end at once")
		send(g.endpoint(0), waiting(0, 6))
		time.Sleep(300 * time.Millisecond)
		g.shutdown()
		assert.Equal(t, []int64{2, 3, 5, 6}, counters(metrics.points()), "what is held at the end is said before it")
		assert.Len(t, ends(metrics.points())[int64(0)], 2*fpm.Gauges)
		wellFormed(t, metrics.points())
		contiguous(t, metrics.points())
		g.settled(7)
	})
}

// Losses that a held message tells of are said with it.
func TestHeldLossesAreSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, metrics := held(t, time.Second)
		send(g.endpoint(0), waiting(0, 0))
		time.Sleep(300 * time.Millisecond)
		send(g.endpoint(0), waiting(0, 10))
		time.Sleep(1300 * time.Millisecond)
		lost := valuesOf(metrics.points(), fpm.MetricMessagesLost, 0)
		require.Len(t, lost, 2)
		assert.Zero(t, lost[0].value)
		assert.InDelta(t, 9, lost[1].value, 0)
		g.shutdown()
	})
}

// Series that a rank leaves say their newest value, and new ones begin at once.
func TestHeldGaugesAndAnotherTimingScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, metrics := held(t, time.Second)
		for counter, scope := range []string{"execute_model_cuda", "execute_model_cuda", "model_step_cuda", "model_step_cuda"} {
			g.endpoint(0).Message(envelope(uint64(counter), busy("w", 0, int64(counter)).scoped(scope)), time.Now())
			time.Sleep(300 * time.Millisecond)
		}
		time.Sleep(time.Second)
		assert.Equal(t, []int64{0, 1, 2, 3}, counters(metrics.points()))
		ended := ends(metrics.points())[int64(0)]
		require.Len(t, ended, fpm.Gauges)
		assert.Equal(t, "execute_model_cuda", ended[0].attributes["fpm.timing_scope"])
		g.shutdown()
		wellFormed(t, metrics.points())
		contiguous(t, metrics.points())
	})
}

// The last counter of a publisher is said before that of its successor: nothing is missing in its rate.
func TestHeldGaugesOfAnEngineThatRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, metrics := held(t, time.Second)
		send(g.endpoint(0), waiting(0, 100), waiting(0, 101), waiting(0, 102))
		g.endpoint(0).Connected()
		send(g.endpoint(0), waiting(0, 0), waiting(0, 1))
		time.Sleep(300 * time.Millisecond)
		assert.Equal(t, []int64{102}, counters(metrics.points()))
		time.Sleep(time.Second)
		assert.Equal(t, []int64{102, 1}, counters(metrics.points()))
		g.shutdown()
		wellFormed(t, metrics.points())
		assert.EqualValues(t, 1, g.settled(5).restarts)
	})
}

// What is held of a rank is small, however large its messages are.
func TestHeldMessageHasNoPayload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, metrics := held(t, time.Second)
		e := g.endpoint(0)
		for counter := range int64(3) {
			payload := append(busy("w", 0, counter).payload(), "\xa4note\xda\x80\x00"...)
			payload[0]++ // one key more
			e.Message(envelope(uint64(counter), append(payload, make([]byte, 1<<15)...)), time.Now())
			time.Sleep(300 * time.Millisecond)
		}
		synctest.Wait()
		rank := e.ranks[rankKey{"w", 0}]
		require.NotNil(t, rank.points.committed.held.newest)
		assert.Nil(t, rank.points.committed.held.newest.record.Payload)
		assert.EqualValues(t, 2, rank.points.committed.held.newest.record.CounterID)
		g.shutdown()
		assert.Equal(t, []int64{0, 2}, counters(metrics.points()))
		g.settled(3)
	})
}

// A message is delivered when the points that count it are, and dropped when they are refused for good: those of another
// rank, which come later, are not concerned.
func TestHeldMessagesAreCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, metrics := held(t, time.Second)
		batch := g.receiver.config.Batch.Timeout
		time.Sleep(batch / 2)
		send(g.endpoint(0), waiting(0, 0))
		time.Sleep(batch)
		send(g.endpoint(0), waiting(0, 1), waiting(0, 2), waiting(1, 0))
		time.Sleep(batch)
		send(g.endpoint(0), waiting(0, 3), waiting(1, 1))
		time.Sleep(batch)
		c := g.counts()
		assert.EqualValues(t, 6, c.accepted)
		assert.EqualValues(t, 2, c.delivered["metrics"], "the first of each rank")
		assert.Empty(t, c.dropped["metrics"])

		metrics.tell(refuse(errEver))
		time.Sleep(time.Second - 3*batch)
		send(g.endpoint(0), waiting(1, 2))
		time.Sleep(batch) // the points of rank 0 are due
		c = g.counts()
		assert.EqualValues(t, 2, c.delivered["metrics"])
		assert.EqualValues(t, 3, c.dropped["metrics"][droppedRefused])

		metrics.tell(nil)
		time.Sleep(batch) // those of rank 1
		g.settled(7)
		passes, _ := observed(metrics.points(), 1)
		assert.EqualValues(t, 3, passes)
		send(g.endpoint(0), waiting(0, 4))
		time.Sleep(batch)
		passes, _ = observed(metrics.points(), 0)
		assert.EqualValues(t, 2, passes, "what was refused for good is not said again")
		g.shutdown()
		wellFormed(t, metrics.points())
		g.settled(8)
	})
}

// What is held when the receiver stops is tried as long as what is queued, and counted as dropped when nobody takes it.
func TestHeldMessagesAtShutdown(t *testing.T) {
	for name, recovers := range map[string]bool{"consumer recovers": true, "consumer refuses": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, metrics := held(t, time.Minute)
				send(g.endpoint(0), waiting(0, 0))
				time.Sleep(time.Second)
				send(g.endpoint(0), waiting(0, 1), waiting(0, 2))
				time.Sleep(time.Second)
				metrics.tell(refuse(errNow))
				if recovers {
					time.AfterFunc(time.Second, func() { metrics.tell(nil) })
				}
				began := time.Now()
				g.shutdown()
				assert.LessOrEqual(t, time.Since(began), shutdown.Timeout)
				c := g.settled(3)
				if recovers {
					assert.EqualValues(t, 3, c.delivered["metrics"])
					assert.Equal(t, []int64{0, 2}, counters(metrics.points()))
					assert.Len(t, ends(metrics.points())[int64(0)], fpm.Gauges)
				} else {
					assert.EqualValues(t, 2, c.dropped["metrics"][droppedShutdown])
					assert.Len(t, g.warnings("not delivered before the end of shutdown"), 1)
				}
				wellFormed(t, metrics.points())
				contiguous(t, metrics.points())
			})
		})
	}
}

// A batch that is refused for good says a publisher's last messages, and holds those of its successor, which come later.
func TestRefusedMessagesAreThoseOfThePoints(t *testing.T) {
	for name, before := range map[string]int64{"rank is known": 2, "rank is new": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, metrics := held(t, time.Second)
				batch := g.receiver.config.Batch.Timeout
				time.Sleep(batch / 2)
				for counter := range before {
					send(g.endpoint(0), waiting(0, counter))
					time.Sleep(batch)
				}
				metrics.tell(refuse(errEver))
				send(g.endpoint(0), waiting(0, 2))
				g.endpoint(0).Connected()
				send(g.endpoint(0), waiting(0, 0), waiting(0, 1), waiting(0, 2))
				time.Sleep(batch)
				metrics.tell(nil)
				time.Sleep(3 * time.Second)
				g.shutdown()
				c := g.settled(int(before) + 4)
				refused := max(before, 1) // all but the first were held
				assert.Equal(t, refused, c.dropped["metrics"][droppedRefused])
				passes, _ := observed(metrics.points(), 0)
				assert.Equal(t, before+4-refused, passes)
				for _, p := range valuesOf(metrics.points(), fpm.MetricStepDuration, 0) {
					assert.NotZero(t, p.start)
				}
				wellFormed(t, metrics.points())
				contiguous(t, metrics.points())
				assert.Len(t, ends(metrics.points())[int64(0)], fpm.Gauges)
			})
		})
	}
}

// What is refused for good without a message is not said to be dropped.
func TestRefusedWithoutAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, metrics := held(t, time.Minute, func(c *Config) { c.StaleAfter = 2 * time.Minute })
		send(g.endpoint(0), waiting(0, 0))
		time.Sleep(time.Second)
		metrics.tell(refuse(errEver))
		for counter := range int64(20) { // fpm.endpoint.up is due meanwhile
			send(g.endpoint(0), waiting(0, counter+1))
			time.Sleep(time.Second)
		}
		assert.Greater(t, metrics.tries, 1)
		assert.Empty(t, g.warnings("Messages dropped"))
		metrics.tell(nil)
		g.shutdown()
		g.settled(21)
	})
}

// A batch that is refused for good has a rank leave its series for another, and its publisher start anew after that: the old
// series still ends once, and so does the new one.
func TestRefusedChangeOfSeriesAndRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, metrics := held(t, time.Second)
		scoped := func(counter int64, scope string) {
			g.endpoint(0).Message(envelope(uint64(counter), busy("w", 0, counter).scoped(scope)), time.Now())
			time.Sleep(time.Millisecond)
		}
		scoped(7, "a")
		time.Sleep(time.Second)
		metrics.tell(refuse(errEver))
		scoped(8, "b")
		g.endpoint(0).Connected()
		scoped(0, "b")
		time.Sleep(time.Second)
		metrics.tell(nil)
		time.Sleep(20 * time.Second)
		g.shutdown()
		g.settled(3)
		wellFormed(t, metrics.points())
		ended := ends(metrics.points())[int64(0)]
		assert.Len(t, ended, fpm.Gauges)
		assert.Equal(t, "a", ended[0].attributes["fpm.timing_scope"])
	})
}
