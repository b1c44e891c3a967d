// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
	"github.com/otelcol-fpm/otelcol-fpm/internal/histogramconfig"
)

// observed is what the points of a rank add up to.
func observed(all []point, rank int64) (passes, decodeTokens int64) {
	for _, p := range valuesOf(all, fpm.MetricStepDuration, rank) {
		passes += int64(p.count)
	}
	for _, p := range valuesOf(all, fpm.MetricDecodeTokens, rank) {
		decodeTokens += int64(p.value)
	}
	return passes, decodeTokens
}

// TestTotalsCountEachMessage: with gauge_interval a rank has one point an interval, which counts each message since the one
// before, also when it was refused for now, and in either form.
func TestTotalsCountEachMessage(t *testing.T) {
	for name, form := range map[string]func(*Config){
		"explicit": func(*Config) {},
		"exponential": func(c *Config) {
			c.Histogram.Exponential = configoptional.Some(histogramconfig.ExponentialConfig{MaxSize: 160})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, metrics := held(t, time.Second, form)
				time.Sleep(g.receiver.config.Batch.Timeout / 2)
				sent := int64(0)
				batches := func(n int) {
					for range n {
						send(g.endpoint(0), waiting(0, sent), waiting(0, sent+1), waiting(0, sent+2), waiting(1, sent/3))
						sent += 3
						time.Sleep(g.receiver.config.Batch.Timeout)
					}
				}
				batches(5)
				metrics.tell(refuse(errNow))
				batches(3)
				metrics.tell(nil)
				time.Sleep(10 * time.Second)
				batches(5)
				g.shutdown()
				all := metrics.points()
				for rank, want := range map[int64]int64{0: sent, 1: sent / 3} {
					passes, tokens := observed(all, rank)
					assert.Equal(t, want, passes)
					assert.Equal(t, 3*want, tokens)
					steps := valuesOf(all, fpm.MetricStepDuration, rank)
					require.Len(t, steps, 4, "the first batch, those until the refusal ended, the one after it, the rest")
					require.Len(t, valuesOf(all, fpm.MetricDecodeTokens, rank), 4)
					assert.Equal(t, 7*steps[0].count, steps[1].count)
				}
				wellFormed(t, all)
				contiguous(t, all)
				g.settled(int(sent + sent/3))
			})
		})
	}
}

// TestTotalsOfSeveralSeries: what a rank observed under other attributes, or in a series that ended, is not added to what
// comes after.
func TestTotalsOfSeveralSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, metrics := held(t, time.Second)
		for counter, scope := range []string{"a", "a", "b", "b", "b", "a"} {
			g.endpoint(0).Message(envelope(uint64(counter), busy("w", 0, int64(counter)).scoped(scope)), time.Now())
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		var counts []uint64
		var scopes []any
		for _, p := range valuesOf(metrics.points(), fpm.MetricStepDuration, 0) {
			counts, scopes = append(counts, p.count), append(scopes, p.attributes["fpm.timing_scope"])
		}
		assert.Equal(t, []uint64{2, 3, 1}, counts)
		assert.Equal(t, []any{"a", "b", "a"}, scopes)
		g.shutdown()
		wellFormed(t, metrics.points())
		g.settled(6)
	})
}

// TestTotalsThatDoNotFit: sums beyond their range begin a new point, and values that are none are counted.
func TestTotalsThatDoNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, metrics := held(t, time.Second)
		for counter := range int64(3) {
			p := waiting(0, counter)
			p.Scheduled.SumPrefillTokens = math.MaxInt64/2 + 1
			p.WallTime = math.MaxFloat64 / 2
			send(g.endpoint(0), p)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		g.shutdown()
		all := metrics.points()
		passes, tokens := observed(all, 0)
		assert.EqualValues(t, 3, passes)
		assert.EqualValues(t, 9, tokens)
		assert.Len(t, valuesOf(all, fpm.MetricPrefillTokens, 0), 3)
		assert.Empty(t, valuesOf(all, fpm.MetricDecodeTokenLatency, 0))
		assert.EqualValues(t, 3, g.counter("otelcol_receiver_fpm_overflow", "")[""])
		wellFormed(t, all)
		contiguous(t, all)
		g.settled(3)
	})
}
