// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// One stream is heard on two endpoints: one of them gets another name, with one
// warning. Who falls silent loses the plain name to a newcomer only, and the
// points under a name never overlap, whoever sends them.
func TestNoTwoEndpointsShareASeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics, logs := &metricsSink{}, &logsSink{}
		g := newRig(t, testConfig(func(c *Config) { c.DPSize = 3 }), metrics, logs)
		g.startWithoutIntake()
		a, b, c := g.endpoint(0), g.endpoint(1), g.endpoint(2)
		a.Connected()
		b.Connected()
		for n := range int64(5) {
			send(a, busy("w", 0, n))
			send(b, busy("w", 0, n), busy("v", 0, n))
			time.Sleep(time.Second)
		}
		require.Len(t, g.warnings("heard on another endpoint too"), 1)
		// A short break of a changes no name.
		a.Disconnected(errNow)
		send(b, busy("w", 0, 5))
		time.Sleep(time.Second)
		a.Connected()
		send(a, busy("w", 0, 6)) // 5 is lost
		time.Sleep(time.Second)
		require.Equal(t, []string{"w", "w@127.0.0.1:2", "v", "w", "w@127.0.0.1:2", "v"}, names(metrics.points(), fpm.MetricMessages)[:6])

		// a falls silent; c is new and takes the name over. b keeps its own.
		for n := range int64(6) {
			send(b, busy("w", 0, 6+n))
			time.Sleep(time.Second)
		}
		before := len(metrics.points())
		c.Connected()
		send(c, busy("w", 0, 0))
		send(b, busy("w", 0, 12))
		time.Sleep(time.Second)
		require.Equal(t, []string{"w", "w@127.0.0.1:2"}, names(metrics.points()[before:], fpm.MetricMessages))
		require.Len(t, g.warnings("heard on another endpoint too"), 1)

		// a returns: the name is taken.
		before = len(metrics.points())
		send(a, busy("w", 0, 7), busy("w", 0, 10))
		send(c, busy("w", 0, 1))
		time.Sleep(time.Second)
		require.Equal(t, []string{"w@127.0.0.1:1", "w"}, names(metrics.points()[before:], fpm.MetricMessages))
		require.Len(t, g.warnings("heard on another endpoint too"), 2)
		lost := of(metrics.points()[before:], fpm.MetricMessagesLost)
		require.Equal(t, []float64{2, 0}, []float64{lost[0].value, lost[1].value}, "counted anew under the new name")

		time.Sleep(time.Minute)
		g.shutdown()
		wellFormed(t, metrics.points())
		counted := g.settled(28)
		assert.EqualValues(t, 3, counted.lost)
		assert.Zero(t, counted.restarts)
	})
}

// Who was heard a moment ago is not overlooked, however long it holds its name.
func TestNameIsKeptWhileItsOwnerIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := &logsSink{}
		g := newRig(t, testConfig(func(c *Config) { c.DPSize = 2 }), nil, logs)
		g.startWithoutIntake()
		a, b := g.endpoint(0), g.endpoint(1)
		a.Connected()
		b.Connected()
		send(a, busy("w", 0, 0))
		time.Sleep(4900 * time.Millisecond)
		send(a, busy("w", 0, 1))
		time.Sleep(200 * time.Millisecond)
		send(b, busy("w", 0, 0))
		g.shutdown()
		require.Len(t, g.warnings("heard on another endpoint too"), 1)
		g.settled(3)
	})
}

// A name is free when what was under it has ended at the consumer, not before:
// its end would fall among the points of who comes next.
func TestNameIsKeptUntilItsSeriesEnd(t *testing.T) {
	for name, refuses := range map[string]bool{"delivered": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				metrics := &metricsSink{}
				g := newRig(t, testConfig(func(c *Config) { c.DPSize = 2 }), metrics, nil)
				g.startWithoutIntake()
				a, b := g.endpoint(0), g.endpoint(1)
				a.Connected()
				b.Connected()
				send(a, busy("w", 0, 0))
				time.Sleep(time.Second)
				if refuses {
					metrics.tell(refuse(errNow))
				}
				time.Sleep(time.Minute)
				send(b, busy("w", 0, 0))
				metrics.tell(nil)
				time.Sleep(time.Minute)
				want := []string{"w"}
				if refuses {
					want = []string{"w", "w@127.0.0.1:2"}
				}
				require.Equal(t, want, names(metrics.points(), fpm.MetricMessages))
				require.Len(t, ends(metrics.points())[int64(0)], 2*fpm.Gauges)
				g.shutdown()
				wellFormed(t, metrics.points())
				g.settled(2)
			})
		})
	}
}

// A name that changes hands twice: times still increase, though the clock of the
// messages of one endpoint runs ahead.
func TestNameGoesToAndFro(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		g := newRig(t, testConfig(func(c *Config) { c.DPSize = 2 }), metrics, nil)
		g.startWithoutIntake()
		a, b := g.endpoint(0), g.endpoint(1)
		a.Connected()
		b.Connected()
		sent := 0
		burst := func(e *endpoint) { // times run ahead of the clock
			for range 500 {
				send(e, busy("w", 0, int64(sent)))
				sent++
			}
		}
		burst(a)
		time.Sleep(6 * time.Second)
		burst(b)
		time.Sleep(6 * time.Second)
		burst(a)
		time.Sleep(6 * time.Second)
		burst(b)
		g.shutdown()
		require.Equal(t, []string{"w"}, names(metrics.points(), fpm.MetricMessages))
		wellFormed(t, metrics.points())
		g.settled(sent)
	})
}

// The clock steps back and the name changes hands: the newcomer's times go on
// where the other's ended, also when that is forgotten by now.
func TestNameChangesHandsAcrossAClockStep(t *testing.T) {
	r := newReceiver(testConfig(func(c *Config) { c.DPSize = 2 }), nopSettings(), func() {})
	require.NoError(t, r.expand())
	wall := time.Now()
	for name, between := range map[string]func(*rank){
		"remembered": func(*rank) {},
		"ended":      func(a *rank) { a.take(pcommon.NewTimestampFromTime(wall)) },
		"forgotten":  r.identities.release,
	} {
		t.Run(name, func(t *testing.T) {
			r.identities = newIdentities()
			a := &rank{key: rankKey{"w", 0}, endpoint: r.endpoints[0], continuity: newContinuity()}
			b := &rank{key: rankKey{"w", 0}, endpoint: r.endpoints[1], continuity: newContinuity()}
			r.identities.name(a, 0, 5)
			early, _ := a.admit(&fpm.Record{}, 0, wall.Add(24*time.Hour))
			between(a)
			last := a.last
			r.identities.name(b, 5, 10)
			late, _ := b.admit(&fpm.Record{}, 0, wall)
			assert.Equal(t, early.worker.key.instance, late.worker.key.instance)
			assert.Greater(t, late.time, last)
			assert.GreaterOrEqual(t, late.began, last)
			assert.Less(t, late.began, late.time)
		})
	}
}
