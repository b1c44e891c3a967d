// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// assign makes a batch with one gauge value for each of the resources.
func assign(value int64, resources ...string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for _, name := range resources {
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("service.instance.id", name)
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName("queue")
		dp := m.SetEmptyGauge().DataPoints().AppendEmpty()
		dp.SetIntValue(value)
		dp.SetTimestamp(pcommon.Timestamp(value))
	}
	return md
}

// valueOf returns the value of a batch of assign.
func valueOf(md pmetric.Metrics) int64 {
	return md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).IntValue()
}

func gaugeDedupTo(t *testing.T, next consumer.ConsumeMetricsFunc) *gaugeDedup {
	c, err := consumer.NewMetrics(next)
	require.NoError(t, err)
	began := time.Now()
	p, err := newGaugeDedup(nopSettings(), createDefaultConfig().(*Config), c, func() time.Duration { return time.Since(began) })
	require.NoError(t, err)
	return p
}

// TestOrderWithinAResource: a batch waits for the one before it of the same resource, also while that is with the next
// consumer; one of another resource does not.
func TestOrderWithinAResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []int64
		release := make(chan struct{})
		p := gaugeDedupTo(t, func(_ context.Context, md pmetric.Metrics) error {
			if valueOf(md) == 1 {
				<-release
			}
			mu.Lock()
			defer mu.Unlock()
			order = append(order, valueOf(md))
			return nil
		})
		done := make(chan int64, 4)
		consume := func(value int64, resources ...string) {
			go func() {
				if err := p.ConsumeMetrics(context.Background(), assign(value, resources...)); err == nil {
					done <- value
				}
			}()
			synctest.Wait()
		}
		consume(1, "a", "b")
		consume(2, "b", "c")
		consume(3, "d")
		require.Equal(t, int64(3), <-done, "another resource goes in parallel")
		require.Empty(t, done)
		close(release)
		require.Equal(t, int64(1), <-done)
		require.Equal(t, int64(2), <-done)
		require.Equal(t, []int64{3, 1, 2}, order)
	})
}

// TestCancelledWhileWaiting: a batch that waits for its turn gives up when its context ends, and leaves nothing behind.
func TestCancelledWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var got []int64
		p := gaugeDedupTo(t, func(_ context.Context, md pmetric.Metrics) error {
			if valueOf(md) == 1 {
				<-release
			}
			got = append(got, valueOf(md))
			return nil
		})
		go func() { _ = p.ConsumeMetrics(context.Background(), assign(1, "b")) }()
		synctest.Wait()

		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.ErrorIs(t, p.ConsumeMetrics(ctx, assign(2, "a", "b", "c")), context.DeadlineExceeded)
		require.NoError(t, p.ConsumeMetrics(context.Background(), assign(3, "a", "c")), "the turns it had are free again")
		close(release)
		synctest.Wait()
		require.Equal(t, []int64{3, 1}, got)
		require.Equal(t, 3, p.table.Series())
		require.Equal(t, 3, p.table.Resources())
	})
}

// TestBatchesOfManyResources crosses batches whose resources come in different orders: none may wait for ever, decisions and
// the order of forwarding agree, and the ledger balances.
func TestBatchesOfManyResources(t *testing.T) {
	type key struct{ resource string }
	var mu sync.Mutex
	last := map[key]int64{}
	repeats := 0
	h := newHarness(t, createDefaultConfig().(*Config))
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		mu.Lock()
		defer mu.Unlock()
		for _, rm := range md.ResourceMetrics().All() {
			id, _ := rm.Resource().Attributes().Get("service.instance.id")
			v := rm.ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).IntValue()
			if old, known := last[key{id.Str()}]; known && old == v {
				repeats++
			}
			last[key{id.Str()}] = v
		}
		return nil
	})
	require.NoError(t, err)
	h.gaugeDedup.next = next

	const workers, rounds = 8, 300
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range rounds {
				a, b, c := fmt.Sprint((w+i)%5), fmt.Sprint((w*3+i)%5), fmt.Sprint((w*i)%5)
				if err := h.ConsumeMetrics(context.Background(), assign(int64(i%3), a, b, c)); err != nil {
					panic(err)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, workers*rounds*3, h.decided())
	require.Zero(t, repeats, "two forwarded points of a series in sequence never have the same value within a second")
	require.Equal(t, 5, h.table.Series())
}

// TestNoResourceWithoutSeries: what only passes leaves no state behind.
func TestNoResourceWithoutSeries(t *testing.T) {
	h := newHarness(t, createDefaultConfig().(*Config))
	for i := range 100 {
		md := assign(1, fmt.Sprint(i))
		md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetEmptySummary().DataPoints().AppendEmpty()
		require.NoError(t, h.ConsumeMetrics(context.Background(), md))
	}
	require.Zero(t, h.table.Resources())
	require.Equal(t, 100, h.decided())
}
