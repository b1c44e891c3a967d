// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// Ranks that nobody hears are forgotten after rank_ttl and make room; what they
// are when they come back is new.
func TestIdleRanksAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		g := newRig(t, testConfig(func(c *Config) { c.MaxRanks, c.RankTTL = 2, time.Minute }), metrics, nil)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		send(e, busy("a", 0, 5), busy("a", 0, 8), busy("b", 0, 0), busy("c", 0, 0), busy("c", 0, 1))
		time.Sleep(time.Second)
		c := g.counts()
		require.EqualValues(t, 2, c.rejectedBy[rejectedRankLimit])
		require.Len(t, g.warnings("one more than max_ranks"), 1)
		require.EqualValues(t, 2, c.lost)
		lost := of(metrics.points(), fpm.MetricMessagesLost)
		require.Len(t, lost, 2, "one point a rank and batch")
		require.Equal(t, []float64{2, 0}, []float64{lost[0].value, lost[1].value})

		time.Sleep(time.Minute + 10*time.Second)
		synctest.Wait()
		require.Empty(t, e.ranks)
		require.Empty(t, g.receiver.identities.workers)
		require.Empty(t, g.receiver.identities.claims)
		require.Zero(t, g.receiver.ranks.Load())

		send(e, busy("c", 0, 7), busy("a", 0, 100))
		time.Sleep(time.Second)
		g.shutdown()
		c = g.settled(7)
		assert.EqualValues(t, 2, c.lost, "the gap was forgotten with the rank")
		lost = of(metrics.points(), fpm.MetricMessagesLost)
		assert.Zero(t, lost[len(lost)-1].value)
		assert.Greater(t, lost[len(lost)-1].start, lost[0].at)
		wellFormed(t, metrics.points())
	})
}

// While metrics are refused a rank cannot be forgotten: its end, sent later,
// would fall among the points of the rank that came after it.
func TestRankIsNotForgottenBeforeItsGaugesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		g := newRig(t, testConfig(func(c *Config) { c.RankTTL = 10 * time.Second }), metrics, nil)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		send(e, busy("w", 0, 0))
		time.Sleep(time.Second)
		metrics.tell(refuse(errNow))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, e.ranks, 1)
		send(e, busy("w", 0, 1))
		metrics.tell(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Empty(t, e.ranks)
		g.shutdown()
		wellFormed(t, metrics.points())
		contiguous(t, metrics.points())
		g.settled(2)
	})
}

// Times strictly increase whatever the clock does: it steps back by an hour
// before a message, before the end of gauges, and before a rank that was
// forgotten comes back.
func TestTimesIncreaseAcrossClockSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		g := newRig(t, testConfig(func(c *Config) { c.RankTTL = 30 * time.Second }), metrics, nil)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		// The wall clock runs an hour ahead; then it is set right.
		e.Message(busy("w", 0, 0).frames(), time.Now().Add(time.Hour))
		e.Message(busy("w", 0, 1).frames(), time.Now().Add(time.Hour))
		send(e, busy("w", 0, 2))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Empty(t, e.ranks)
		require.Len(t, ends(metrics.points())[int64(0)], fpm.Gauges)
		send(e, busy("w", 0, 3))
		time.Sleep(time.Minute)
		g.shutdown()
		all := metrics.points()
		assert.Equal(t, []int64{0, 1, 2, 3}, counters(all))
		wellFormed(t, all)
		times := map[pcommon.Timestamp]bool{}
		for _, p := range of(all, fpm.MetricMessages) {
			times[p.at] = true
		}
		assert.Len(t, slices.Collect(maps.Keys(times)), 4)
		g.settled(4)
	})
}
