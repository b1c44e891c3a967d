// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/benchmarktest"
)

// largeGrid needs several batches of both signals.
func largeGrid() []benchmarktest.Point {
	var grid []benchmarktest.Point
	for i := range 260 {
		p := benchmarktest.StandardPoints()[0]
		p.Prefill += i
		p.Capture += i
		grid = append(grid, p)
	}
	return grid
}

// once asserts that each point came exactly once.
func (g *rig) once(points int) {
	g.t.Helper()
	series := map[string]int{}
	for _, p := range g.metrics.points() {
		series[fmt.Sprint(p.metric, p.attributes)]++
	}
	for key, count := range series {
		assert.Equal(g.t, 1, count, key)
	}
	assert.Len(g.t, named(g.metrics.points(), "fpm.benchmark.step.duration"), points)
	seen := map[string]int{}
	for _, record := range events(g.logs.records(), "point") {
		seen[fmt.Sprint(attr(g.t, record, "fpm.benchmark.id"), " ", attr(g.t, record, "fpm.dp_rank"))]++
	}
	assert.Len(g.t, seen, points)
	for key, count := range seen {
		assert.Equal(g.t, 1, count, key)
	}
}

// A consumer that refuses for now gets the rest later, and nothing twice; the
// other signal does not wait for it.
func TestRefusedForNow(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		benchmarktest.New(benchmarktest.Options{Points: largeGrid()}).Write(t, folder)
		g := newRig(t, folder)
		g.metrics.tell(func(try int) error {
			if try >= 2 && try <= 6 {
				return errNow
			}
			return nil
		})
		g.start()
		assert.Len(t, g.metrics.all(), 1)
		assert.Len(t, events(g.logs.records(), "point"), 520, "logs do not wait")
		assert.Empty(t, g.counts("runs"))
		assert.Equal(t, componentstatus.StatusRecoverableError, g.host.statuses()[0])
		g.pass(5 * time.Minute)
		assert.Equal(t, counts{"valid": 1}, g.counts("runs"))
		assert.Equal(t, componentstatus.StatusOK, g.host.statuses()[len(g.host.statuses())-1])
		g.stop()
		g.once(520)
		assert.Equal(t, 3+5, g.metrics.tries, "the run, two of points, five refusals")
	})
}

func TestLogsRefusedForNow(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		benchmarktest.New(benchmarktest.Options{Points: largeGrid()}).Write(t, folder)
		g := newRig(t, folder)
		g.logs.tell(func(try int) error {
			if try%2 == 0 {
				return errNow
			}
			return nil
		})
		g.start()
		g.pass(time.Hour)
		g.stop()
		assert.Equal(t, counts{"valid": 1}, g.counts("runs"))
		g.once(520)
	})
}

// A violated run's events come from several files, which are read again.
func TestViolatedRunRefusedForNow(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		run := benchmarktest.New(benchmarktest.Options{Points: largeGrid()})
		run.Ranks[1].Set("results.0.fpms.0.wall_time", 0.5)
		run.Write(t, folder)
		g := newRig(t, folder)
		g.logs.tell(func(try int) error {
			if try%3 == 0 {
				return errNow
			}
			return nil
		})
		g.start()
		g.pass(time.Hour)
		g.stop()
		assert.Equal(t, counts{"invalid": 1}, g.counts("runs"))
		g.once(520)
	})
}

// What is refused for good is dropped, counted and not tried again.
func TestRefusedForGood(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		benchmarktest.New(benchmarktest.Options{Points: largeGrid()}).Write(t, folder)
		g := newRig(t, folder)
		g.metrics.tell(func(try int) error {
			if try == 2 {
				return errEver
			}
			return nil
		})
		g.start()
		g.pass(time.Hour)
		g.stop()
		assert.Equal(t, counts{"refused": 1}, g.counts("runs"))
		assert.Len(t, named(g.metrics.points(), "fpm.benchmark.step.duration"), 20)
		assert.Equal(t, 3, g.metrics.tries)
		assert.Len(t, events(g.logs.records(), "point"), 520)
	})
}

// A file that is rewritten while its run is refused counts as it is now.
func TestRewrittenWhileRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		run := benchmarktest.New(benchmarktest.Options{})
		run.Write(t, folder)
		g := newRig(t, folder)
		g.metrics.tell(func(try int) error {
			if try > 1 {
				return errNow
			}
			return nil
		})
		g.start()
		slower := benchmarktest.New(benchmarktest.Options{Factor: 2})
		slower.Write(t, folder)
		g.metrics.tell(nil)
		g.pass(5 * time.Minute)
		g.stop()
		assert.Equal(t, counts{"valid": 1}, g.counts("runs"))
		durations := named(g.metrics.points(), "fpm.benchmark.step.duration")
		require.Len(t, durations, 10)
		assert.InDelta(t, 0.025, durations[0].value, 1e-12)
		assert.Len(t, named(g.metrics.points(), "fpm.benchmark.valid"), 2, "what was taken before comes again: at least once")
	})
}

// Another run does not wait for one that is refused.
func TestOtherRunsGoOn(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		first := benchmarktest.New(benchmarktest.Options{RunID: "a"})
		first.Ranks, first.Sidecar = nil, nil
		first.Merged.Delete("engine")
		g := newRig(t, folder)
		g.write("a.json", first.Merged.JSON())
		g.metrics.tell(func(try int) error {
			if try%2 == 1 { // the first batch of run a, then the two of run b
				return errNow
			}
			return nil
		})
		g.start()
		assert.Empty(t, g.counts("runs"))
		g.metrics.tell(nil)
		second := benchmarktest.New(benchmarktest.Options{RunID: "b"})
		second.Ranks, second.Sidecar = nil, nil
		second.Merged.Delete("engine")
		g.write("b.json", second.Merged.JSON())
		g.pass(time.Minute)
		g.stop()
		assert.Equal(t, counts{"valid": 2}, g.counts("runs"))
	})
}

// One signal is enough.
func TestOneSignal(t *testing.T) {
	for _, signal := range []string{"metrics", "logs"} {
		t.Run(signal, func(t *testing.T) {
			inBubble(t, func(t *testing.T, folder string) {
				benchmarktest.New(benchmarktest.Options{}).Write(t, folder)
				g := newRig(t, folder)
				factory, settings := NewFactory(), g.settings()
				var err error
				g.receivers = append(g.receivers, nil)
				if signal == "metrics" {
					g.receivers[0], err = factory.CreateMetrics(t.Context(), settings, g.config, g.metrics)
				} else {
					g.receivers[0], err = factory.CreateLogs(t.Context(), settings, g.config, g.logs)
				}
				require.NoError(t, err)
				require.NoError(t, g.receivers[0].Start(t.Context(), g.host))
				g.pass(time.Minute)
				g.stop()
				assert.Equal(t, counts{"valid": 1}, g.counts("runs"))
				assert.Equal(t, signal == "metrics", len(g.metrics.all()) > 0)
				assert.Equal(t, signal == "logs", len(g.logs.all()) > 0)
			})
		})
	}
}
