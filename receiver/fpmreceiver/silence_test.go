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

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// ends are the points without a value, by the rank's dp_rank.
func ends(all []point) map[any][]point {
	found := map[any][]point{}
	for _, p := range all {
		if p.noValue {
			rank := p.attributes["fpm.dp_rank"]
			found[rank] = append(found[rank], p)
		}
	}
	return found
}

func TestGaugesOfSilentRankEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		g := newRig(t, testConfig(), metrics, nil)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		for n := range int64(10) {
			send(e, busy("w", 0, n), busy("w", 1, n))
			time.Sleep(time.Second)
		}
		for n := range int64(10) { // rank 1 goes on
			send(e, busy("w", 1, 10+n))
			time.Sleep(time.Second)
		}
		ended := ends(metrics.points())
		require.Len(t, ended, 1)
		require.Len(t, ended[int64(0)], fpm.Gauges)
		names := map[string]bool{}
		for _, p := range ended[int64(0)] {
			names[p.metric] = true
			assert.Equal(t, "w", p.resource["fpm.worker_id"])
			assert.InDelta(t, 14, p.at.AsTime().Sub(g.receiver.startTime).Seconds(), 0.2, "stale_after after the last message")
		}
		assert.Len(t, names, fpm.Gauges, "one point a gauge")
		send(e, busy("w", 0, 10)) // it comes back
		time.Sleep(time.Minute)
		assert.Len(t, ends(metrics.points())[int64(0)], 2*fpm.Gauges, "and ends again")
		assert.Len(t, ends(metrics.points())[int64(1)], fpm.Gauges)
		wellFormed(t, metrics.points())
		contiguous(t, metrics.points())
		g.shutdown()
		c := g.settled(31)
		assert.Zero(t, c.lost)
	})
}

// The points that end gauges are refused like any other, and come again.
func TestRefusedEndComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		g := newRig(t, testConfig(), metrics, nil)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		send(e, busy("w", 0, 0))
		time.Sleep(time.Second)
		metrics.tell(refuse(errNow))
		time.Sleep(time.Minute)
		metrics.tell(nil)
		require.Empty(t, ends(metrics.points()))
		time.Sleep(10 * time.Second)
		require.Len(t, ends(metrics.points())[int64(0)], fpm.Gauges)
		g.shutdown()
		wellFormed(t, metrics.points())
		g.settled(1)
	})
}

// The last messages of a rank were dropped: what it sent before still ends.
func TestGaugesEndThoughTheLastMessageWasDropped(t *testing.T) {
	for name, refusal := range map[string]error{droppedQueueFull: errNow, droppedRefused: errEver} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				metrics := &metricsSink{}
				g := newRig(t, testConfig(func(c *Config) { c.QueueSize = 4 }), metrics, nil)
				g.startWithoutIntake()
				e := g.endpoint(0)
				e.Connected()
				send(e, busy("w", 0, 0))
				time.Sleep(time.Second)
				metrics.tell(refuse(refusal))
				send(e, busy("w", 0, 1))
				for n := range int64(10) {
					time.Sleep(time.Second)
					send(e, busy("w", 1, n))
				}
				metrics.tell(nil)
				for n := range int64(10) {
					time.Sleep(time.Second)
					send(e, busy("w", 1, 10+n))
				}
				g.shutdown()
				c := g.settled(22)
				assert.Positive(t, c.dropped["metrics"][name])
				if refusal == errNow {
					assert.Len(t, ends(metrics.points())[int64(0)], fpm.Gauges)
				} else {
					assert.Empty(t, ends(metrics.points())[int64(0)], "its end was refused for good, too")
				}
				wellFormed(t, metrics.points())
			})
		})
	}
}

// A forward pass can take longer than the second after which engines send a
// heartbeat: nothing ends, nothing is observed for the heartbeat, nothing flaps.
func TestHeartbeatInMidPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		g := newRig(t, testConfig(), metrics, nil)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		send(e, busy("w", 0, 0))
		time.Sleep(1200 * time.Millisecond)
		send(e, heartbeat("w", 0, 1))
		time.Sleep(1300 * time.Millisecond)
		send(e, busy("w", 0, 2))
		time.Sleep(time.Second)
		g.shutdown()
		all := metrics.pointsBeforeShutdown()
		assert.Len(t, of(all, fpm.MetricStepDuration), 2)
		assert.Len(t, of(all, fpm.MetricDecodeTokenLatency), 2)
		assert.Len(t, of(all, fpm.MetricMessages), 3)
		assert.Len(t, of(all, "fpm.scheduled.decode.requests"), 3)
		assert.Empty(t, ends(all))
		assert.Equal(t, []int{0, 1}, []int{int(of(all, fpm.MetricEndpointUp)[0].value), int(of(all, fpm.MetricEndpointUp)[1].value)})
		assert.Len(t, of(all, fpm.MetricEndpointUp), 2)
		wellFormed(t, all)
		contiguous(t, all)
		g.settled(3)
	})
}

// A counter that does not go on after a new connection has started over.
func TestSameCounterOnANewConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := &logsSink{}
		g := newRig(t, testConfig(), nil, logs)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		send(e, busy("w", 0, 0), busy("w", 0, 0))
		e.Disconnected(errNow)
		e.Connected()
		send(e, busy("w", 0, 0))
		g.shutdown()
		c := g.settled(3)
		assert.EqualValues(t, 1, c.duplicate)
		assert.EqualValues(t, 1, c.restarts)
	})
}

// When the receiver stops, as receiver_creator's do with the pods they were for,
// nobody says the values of its gauges any more: they end, and so does
// fpm.endpoint.up. What has ended, or never had a value, does not end again.
func TestShutdownEndsAllSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		g := newRig(t, testConfig(func(c *Config) { c.DPSize = 3 }), metrics, nil)
		g.startWithoutIntake()
		for rank := range 2 { // the third is never heard
			g.endpoint(rank).Connected()
			send(g.endpoint(rank), busy("w", rank, 0))
		}
		time.Sleep(20 * time.Second)
		require.Len(t, ends(metrics.points()), 2, "both are stale")
		send(g.endpoint(1), busy("w", 1, 1))
		time.Sleep(time.Second)
		before := len(metrics.points())

		send(g.endpoint(1), busy("w", 1, 2)) // still in the queue
		g.shutdown()
		all := metrics.points()
		wellFormed(t, all)
		assert.Equal(t, []int64{0, 0, 1, 2}, counters(all))
		final := ends(all[before:])
		assert.Len(t, final[int64(1)], fpm.Gauges, "the gauges of the rank that had values")
		assert.Empty(t, final[int64(0)], "ended before")
		assert.Len(t, final[nil], 3, "fpm.endpoint.up of each endpoint")
		for _, series := range final {
			for _, p := range series {
				assert.True(t, p.alone, "the stock Prometheus exporter skips the points behind one")
			}
		}
		g.settled(4)
	})
}

func TestShutdownDoesNotInsistOnTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		g := newRig(t, testConfig(), metrics, nil)
		g.startWithoutIntake()
		g.endpoint(0).Connected()
		send(g.endpoint(0), busy("w", 0, 0))
		time.Sleep(time.Second)
		metrics.tell(func(context.Context, int) error { return errNow })
		began := time.Now()
		g.shutdown()
		assert.Zero(t, time.Since(began), "one attempt")
		assert.Empty(t, ends(metrics.points()))
		g.settled(1)
	})
}

// Who was told that an engine is not there is told when it is: once for each time.
func TestConnectionIsAnnouncedAfterNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, testConfig(), &metricsSink{}, nil)
		g.startWithoutIntake()
		e := g.endpoint(0)
		connected := func() int { return g.lines.FilterMessage("Connected").Len() }
		e.Connected()
		assert.Zero(t, connected(), "there was nothing to take back")
		for range 3 {
			e.Disconnected(errors.New("refused"))
		}
		assert.Equal(t, 1, g.lines.FilterMessageSnippet("No connection; trying again").Len())
		e.Connected()
		e.Connected()
		assert.Equal(t, 1, connected())
		g.shutdown()
	})
}
