// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func producersOf(change func(c *Config)) *producers {
	config := createDefaultConfig().(*Config)
	change(config)
	return newProducers(config)
}

func heard(ps *producers, pid int64, now time.Time) *producer {
	p := ps.get(&message{producer: producerKey{"gpu-7", pid, testStart}}, now)
	if p != nil {
		p.lastHeard = now
		p.mu.Unlock()
	}
	return p
}

func said(p *producer, metric string, o operation, now time.Time, labels ...string) (*series, *rejection) {
	e := event{metric: []byte(metric), operation: o}
	for i := 0; i < len(labels); i += 2 {
		e.labels = append(e.labels, label{[]byte(labels[i]), []byte(labels[i+1])})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.admit(&e, now)
}

func TestProducersAndSeriesAreBounded(t *testing.T) {
	ps := producersOf(func(c *Config) { c.MaxProducers, c.MaxSeries = 2, 3 })
	first, second := heard(ps, 1, testClock), heard(ps, 2, testClock)
	require.NotNil(t, first)
	require.NotNil(t, second)
	assert.Nil(t, heard(ps, 3, testClock), "one too many")
	assert.Same(t, first, heard(ps, 1, testClock))
	assert.Equal(t, 2, ps.count())

	for i := range 2 {
		_, rejected := said(first, "m", operationSet, testClock, "l", fmt.Sprint(i))
		require.Nil(t, rejected)
	}
	one, rejected := said(second, "m", operationSet, testClock)
	require.Nil(t, rejected)
	_, rejected = said(second, "n", operationSet, testClock)
	require.NotNil(t, rejected)
	assert.Equal(t, rejectedSeriesLimit, rejected.reason)
	assert.NotContains(t, second.metrics, "n", "a metric without a series is not remembered")
	again, rejected := said(second, "m", operationSet, testClock)
	require.Nil(t, rejected, "a known series goes on")
	assert.Same(t, one, again)
	assert.Equal(t, int64(3), ps.series.Load())
}

// The operation that a producer's metric was first seen with holds; another
// producer may have another.
func TestKindOfAMetricIsTheFirst(t *testing.T) {
	ps := producersOf(func(*Config) {})
	first, second := heard(ps, 1, testClock), heard(ps, 2, testClock)
	for _, o := range []operation{operationSet, operationInc, operationObserve} {
		name := "first " + o.String()
		_, rejected := said(first, name, o, testClock)
		require.Nil(t, rejected)
		for _, other := range []operation{operationSet, operationInc, operationObserve} {
			_, rejected := said(first, name, other, testClock, "another", "series")
			if other == o {
				assert.Nil(t, rejected)
				continue
			}
			require.NotNil(t, rejected, "%s after %s", other, o)
			assert.Equal(t, rejectedKind, rejected.reason)
			assert.Equal(t, fmt.Sprintf("operation: got %s, want %s, as when this producer's metric was first seen", other, o), rejected.Error())
		}
	}
	_, rejected := said(second, "first set", operationInc, testClock)
	assert.Nil(t, rejected)
}

func TestSeriesAreToldApart(t *testing.T) {
	ps := producersOf(func(*Config) {})
	p := heard(ps, 1, testClock)
	var all []*series
	for _, labels := range [][]string{
		nil, {"a", "b"}, {"a", "bc"}, {"ab", "c"}, {"a", "b", "c", "d"}, {"a", "b\x01c\x01d"}, {"a", "\x01b"},
	} {
		for _, name := range []string{"m", "n"} {
			s, rejected := said(p, name, operationSet, testClock, labels...)
			require.Nil(t, rejected)
			for _, other := range all {
				require.NotSame(t, other, s, "%s %q", name, labels)
			}
			all = append(all, s)
		}
	}
}

func TestIdleSeriesAndProducersAreForgotten(t *testing.T) {
	const ttl = time.Minute
	ps := producersOf(func(c *Config) { c.MaxProducers = 1 })
	p := heard(ps, 1, testClock)
	idle, _ := said(p, "idle", operationSet, testClock)
	_, _ = said(p, "busy", operationSet, testClock.Add(time.Second))

	ps.evict(testClock.Add(ttl), ttl, ttl)
	assert.Equal(t, int64(2), ps.series.Load(), "of both events wait")
	idle.waiting.Add(-1)
	p.metrics["busy"].series[""].waiting.Add(-1)
	ps.evict(testClock.Add(ttl-1), ttl, ttl)
	assert.Equal(t, int64(2), ps.series.Load(), "not yet")
	p.lastHeard = testClock.Add(time.Second)
	ps.evict(testClock.Add(ttl), ttl, ttl)
	assert.Equal(t, int64(1), ps.series.Load())
	assert.NotContains(t, p.metrics, "idle")
	_, rejected := said(p, "idle", operationInc, testClock.Add(ttl))
	require.Nil(t, rejected, "forgotten with its kind")
	p.metrics["idle"].series[""].waiting.Add(-1)

	assert.Nil(t, heard(ps, 2, testClock.Add(ttl)), "the slot is taken")
	ps.evict(testClock.Add(ttl+time.Second-1), ttl, time.Hour)
	assert.Equal(t, 1, ps.count(), "not yet")
	ps.evict(testClock.Add(ttl+time.Second), ttl, time.Hour)
	assert.Zero(t, ps.count())
	assert.Zero(t, ps.series.Load(), "its series go with it")
	assert.NotNil(t, heard(ps, 2, testClock.Add(ttl+time.Second)), "the slot is free")
}

// A message that comes while its producer is being forgotten finds a new one.
func TestProducerIsNotLostToEviction(t *testing.T) {
	ps := producersOf(func(*Config) {})
	var group sync.WaitGroup
	stop := make(chan struct{})
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				ps.evict(testClock.Add(time.Hour), time.Nanosecond, time.Nanosecond)
			}
		}
	})
	for range 2000 {
		p := ps.get(&message{producer: producerKey{"gpu-7", 1, testStart}}, testClock)
		require.NotNil(t, p)
		require.False(t, p.gone)
		s, rejected := p.admit(&event{metric: []byte("m")}, testClock)
		require.Nil(t, rejected)
		p.mu.Unlock()
		s.waiting.Add(-1)
	}
	close(stop)
	group.Wait()
	ps.evict(testClock.Add(time.Hour), time.Nanosecond, time.Nanosecond)
	assert.Zero(t, ps.series.Load())
	assert.Zero(t, ps.count())
}
