// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// up are the values of fpm.endpoint.up with the seconds at which they came.
type up struct {
	second float64
	value  int
}

func ups(all []point, began time.Time) []up {
	var found []up
	for _, p := range of(all, fpm.MetricEndpointUp) {
		found = append(found, up{p.at.AsTime().Sub(began).Seconds(), int(p.value)})
	}
	return found
}

func TestEndpointUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		g := newRig(t, testConfig(func(c *Config) { c.Batch.Timeout = time.Second }), metrics, nil)
		began := time.Now()
		g.startWithoutIntake()
		e := g.endpoint(0)
		time.Sleep(1500 * time.Millisecond)
		e.Connected()
		time.Sleep(time.Second)
		send(e, heartbeat("w", 0, 0)) // at 2.5: up
		time.Sleep(time.Second)
		for n := range int64(20) { // until 23.5, stale at 28.5
			time.Sleep(time.Second)
			send(e, heartbeat("w", 0, n+1))
		}
		time.Sleep(7 * time.Second)
		send(e, heartbeat("w", 0, 21)) // at 30.5: up
		time.Sleep(1700 * time.Millisecond)
		e.Disconnected(errNow) // at 32.2: down
		time.Sleep(20 * time.Second)
		g.shutdown()
		assert.Equal(t, []up{
			{0, 0}, {3, 1}, {12, 1}, {21, 1}, {29, 0}, {31, 1}, {33, 0}, {42, 0}, {51, 0},
		}, ups(metrics.pointsBeforeShutdown(), began), "on change, and at least each 10 s")
		p := of(metrics.pointsBeforeShutdown(), fpm.MetricEndpointUp)[0]
		assert.Equal(t, map[string]any{"fpm.endpoint": "tcp://127.0.0.1:1"}, p.attributes)
		assert.NotContains(t, p.resource, "fpm.worker_id")
		assert.Equal(t, g.endpoint(0).engine.instance, p.resource["service.instance.id"])
		wellFormed(t, metrics.pointsBeforeShutdown())
		g.settled(22)
	})
}

// A batch::timeout over ten seconds does not make fpm.endpoint.up rarer, nor a
// change of it later than a second.
func TestEndpointUpWithLongBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		g := newRig(t, testConfig(func(c *Config) { c.Batch.Timeout = time.Minute }), metrics, nil)
		began := time.Now()
		g.startWithoutIntake()
		e := g.endpoint(0)
		time.Sleep(5500 * time.Millisecond)
		e.Connected()
		send(e, busy("w", 0, 0))
		time.Sleep(53 * time.Second)
		require.Empty(t, counters(metrics.pointsBeforeShutdown()))
		time.Sleep(2 * time.Second)
		require.Equal(t, []int64{0}, counters(metrics.pointsBeforeShutdown()))
		g.shutdown()
		assert.Equal(t, []up{
			{0, 0}, {6, 1}, {11, 0}, {20, 0}, {29, 0}, {38, 0}, {47, 0}, {56, 0},
		}, ups(metrics.pointsBeforeShutdown(), began))
		g.settled(1)
	})
}
