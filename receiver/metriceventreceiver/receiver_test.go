// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"
)

func TestEventsBecomeMetrics(t *testing.T) {
	for _, endpoint := range []string{"tcp://127.0.0.1:0", "tcp://*:0", "tcp://[::1]:0", "ipc://"} {
		t.Run(endpoint, func(t *testing.T) {
			s := &sink{}
			if endpoint == "ipc://" {
				endpoint += socketPath(t)
			}
			g := started(t, s, func(c *Config) { c.Endpoint = endpoint })
			p := g.push()
			p.says(1, 0, observes(3), observes(4))
			p.says(1, 2, wireEvent(pairs{{"operation", "inc"}, {"metric", "c"}, {"labels", pairs{{"l", "x"}}}, {"value", 5}}))
			g.eventually("delivered", "", "", 3)
			got := s.read(t).totals
			assert.Equal(t, uint64(7), got.of("1", itl, "").count)
			assert.Equal(t, int64(5), got.of("1", "c", "x").increments.Int64())
			g.ended(3)
		})
	}
}

func TestStartNamesWhatItCannotBind(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	file := socketPath(t)
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for endpoint, want := range map[string]string{
		"tcp://" + taken.Addr().String(): "address already in use",
		"ipc://" + file:                  "is no socket",
	} {
		g := newRig(t, &sink{}, func(c *Config) { c.Endpoint = endpoint })
		err := g.receiver.Start(t.Context(), g.host)
		assert.ErrorContains(t, err, "cannot listen at "+endpoint+": ")
		assert.ErrorContains(t, err, want)
		g.shutdown()
	}
}

func TestStatusTellsWhetherAProducerIsThere(t *testing.T) {
	g := started(t, &sink{})
	is := func(want componentstatus.Status) func() bool {
		return func() bool { return g.host.last().Status() == want }
	}
	require.Eventually(t, is(componentstatus.StatusRecoverableError), patience, time.Millisecond)
	assert.EqualError(t, g.host.last().Err(), "no producer is connected to tcp://127.0.0.1:0")
	g.dial() // says nothing: no producer
	first, second := g.push(), g.push()
	require.Eventually(t, is(componentstatus.StatusOK), patience, time.Millisecond)
	require.NoError(t, first.nc.Close())
	assert.Never(t, is(componentstatus.StatusRecoverableError), 50*time.Millisecond, 5*time.Millisecond, "one is left")
	require.NoError(t, second.nc.Close())
	require.Eventually(t, is(componentstatus.StatusRecoverableError), patience, time.Millisecond)
	g.ended(0)
	assert.Empty(t, g.lines.All(), "engines come and go")
}

// Per producer: accepted, dropped at the source, lost on the way.
func TestLossesOfAProducer(t *testing.T) {
	g := started(t, &sink{})
	p := g.push()
	message := func(pid int, seq, dropped int64, events int) {
		p.send(framesOf(wireMessage(pid, seq, dropped, wireEvents(events, pairs{{"weight", 1}})...))...)
	}
	message(1, 0, 2, 5)
	message(1, 9, 4, 1)  // 4 lost
	message(2, 70, 6, 5) // heard late: its past is not ours
	message(2, 75, 7, 0)
	p.says(1, 10, wireEvent(nil), wireEvent(pairs{{"value", nil}}))
	message(1, 12, 11, 0) // the last, after close
	g.eventually("events", "outcome", "accepted", 12)
	first, second := "gpu-7:1:1600000000000000000", "gpu-7:2:1600000000000000000"
	g.eventually("producer_lost", "producer", first, 4)
	assert.Equal(t, map[string]int64{first: 7, second: 5}, g.counter("producer_accepted", "producer"))
	assert.Equal(t, map[string]int64{first: 11, second: 1}, g.counter("producer_dropped", "producer"))
	assert.Equal(t, map[string]int64{first: 4, second: 0}, g.counter("producer_lost", "producer"))
	assert.Equal(t, map[string]int64{"": 2}, g.counter("producers", ""))
	assert.Equal(t, map[string]int64{"": 2}, g.counter("series", ""))
	assert.Equal(t, map[string]int64{"": 1}, g.counter("connections", ""))
	c := g.ended(13)
	assert.Equal(t, map[string]int64{"malformed": 1}, c.rejectedBy)
}

// A producer's resource is the one of its first message.
func TestResourceOfAProducerIsTheFirst(t *testing.T) {
	s := &sink{}
	g := started(t, s)
	p := g.push()
	p.send(framesOf(wireMessage(1, 0, 0, wireEvent(nil)).set(keyResource, pairs{{"zone", "a"}}))...)
	p.send(framesOf(wireMessage(1, 1, 0, wireEvent(nil)).set(keyResource, pairs{{"zone", "b"}}))...)
	g.eventually("delivered", "", "", 2)
	for _, md := range s.all() {
		zone, _ := md.ResourceMetrics().At(0).Resource().Attributes().Get("zone")
		assert.Equal(t, "a", zone.Str())
	}
	g.ended(2)
	assert.Len(t, g.said("The producer's resource is not what it was in its first message; the first one holds"), 1)
}

// Every event of every producer arrives when many send at once over their own
// connections, and change them.
func TestManyProducers(t *testing.T) {
	const producers, messages, perMessage = 20, 30, 10
	s := &sink{}
	g := started(t, s)
	done := make(chan struct{})
	for pid := range producers {
		go func() {
			defer func() { done <- struct{}{} }()
			p := g.push()
			for n := range messages {
				if n%10 == 9 {
					p.nc.Close()
					p = g.push()
				}
				events := make([]any, perMessage)
				for i := range events {
					events[i] = observes(n + 1)
				}
				p.says(pid, int64(n*perMessage), events...)
			}
			p.nc.Close()
		}()
	}
	for range producers {
		<-done
	}
	const total = producers * messages * perMessage
	g.eventually("delivered", "", "", total)
	got := s.read(t).totals
	assert.Len(t, got, producers)
	for key, n := range got {
		assert.Equal(t, uint64(perMessage*messages*(messages+1)/2), n.count, "%v", key)
	}
	for producer, lost := range g.counter("producer_lost", "producer") {
		assert.Zero(t, lost, producer)
	}
	g.ended(total)
}
