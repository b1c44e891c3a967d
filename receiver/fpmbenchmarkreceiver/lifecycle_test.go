// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/benchmarktest"
	"github.com/otelcol-fpm/otelcol-fpm/internal/shutdown"
)

func TestStartAndShutdownOfBothSignals(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		g := newRig(t, folder)
		factory, settings := NewFactory(), g.settings()
		metrics, err := factory.CreateMetrics(t.Context(), settings, g.config, g.metrics)
		require.NoError(t, err)
		logs, err := factory.CreateLogs(t.Context(), settings, g.config, g.logs)
		require.NoError(t, err)
		require.Same(t, metrics, logs, "a run is read once for both")
		for range 2 {
			require.NoError(t, metrics.Start(t.Context(), g.host))
			require.NoError(t, logs.Start(t.Context(), g.host))
		}
		for range 2 {
			require.NoError(t, metrics.Shutdown(t.Context()))
			require.NoError(t, logs.Shutdown(t.Context()))
		}
		again, err := factory.CreateLogs(t.Context(), settings, g.config, g.logs)
		require.NoError(t, err)
		require.NotSame(t, logs, again, "the same configuration again is another receiver")
		require.NoError(t, again.Start(t.Context(), g.host))
		require.NoError(t, again.Shutdown(t.Context()))
	})
}

// A constructor does nothing: the Collector's command validate makes the
// components and never shuts them down.
func TestConstructorHasNoSideEffects(t *testing.T) {
	folder := t.TempDir()
	config := createDefaultConfig().(*Config)
	config.Include = []string{filepath.Join(folder, "*.json")}
	r, err := NewFactory().CreateLogs(t.Context(), newRig(t, folder).settings(), config, consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, r.Shutdown(t.Context()), "also without Start")
	// TestMain sees to goroutines.
}

// A folder that is not there is none that has no files; it may come later.
func TestFolderThatComesLater(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		later := filepath.Join(folder, "later")
		g := newRig(t, later)
		g.start()
		g.pass(time.Minute)
		require.NoError(t, os.Mkdir(later, 0o700))
		benchmarktest.New(benchmarktest.Options{}).Write(t, later)
		g.pass(time.Minute)
		g.stop()
		assert.Equal(t, counts{"valid": 1}, g.counts("runs"))
		assert.Empty(t, g.host.statuses(), "that is no trouble")
	})
}

// blocker is a consumer that answers when its context ends, or is told to.
type blocker struct {
	consumertest.Consumer
	release chan struct{}
	ended   error
}

func (*blocker) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (b *blocker) ConsumeLogs(ctx context.Context, _ plog.Logs) error {
	select {
	case <-b.release:
		return nil
	case <-ctx.Done():
		b.ended = ctx.Err()
		return b.ended
	}
}

// Shutdown finishes what it delivers, if that ends in time, and ends it if not.
func TestShutdownWhileDelivering(t *testing.T) {
	for name, test := range map[string]struct {
		release time.Duration
		took    time.Duration
		counts  counts
	}{
		"it ends in time": {2 * time.Second, 2 * time.Second, counts{"valid": 1}},
		"it does not":     {time.Hour, 4500 * time.Millisecond, counts{}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, folder string) {
				benchmarktest.New(benchmarktest.Options{}).Write(t, folder)
				g := newRig(t, folder)
				block := &blocker{release: make(chan struct{})}
				r, err := NewFactory().CreateLogs(t.Context(), g.settings(), g.config, block)
				require.NoError(t, err)
				require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
				synctest.Wait()
				timer := time.AfterFunc(test.release, func() { close(block.release) })
				defer timer.Stop()
				began := time.Now()
				require.NoError(t, r.Shutdown(context.Background()))
				assert.Equal(t, test.took, time.Since(began))
				assert.Equal(t, test.counts, g.counts("runs"))
			})
		})
	}
}

// What was not delivered before the end is delivered after the next start.
func TestShutdownWhileRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		benchmarktest.New(benchmarktest.Options{}).Write(t, folder)
		g := newRig(t, folder)
		g.metrics.tell(always(errNow))
		g.logs.tell(always(errNow))
		g.start()
		g.pass(time.Minute)
		began := time.Now()
		g.stop()
		assert.Zero(t, time.Since(began), "nothing to wait for")
		g.metrics.tell(nil)
		g.logs.tell(nil)
		g.start()
		g.stop()
		assert.Equal(t, counts{"valid": 1}, g.counts("runs"))
		g.once(10)
	})
}

// deaf is a consumer that does not hear that the time is over.
type deaf struct {
	consumertest.Consumer
	release chan struct{}
}

func (*deaf) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (d *deaf) ConsumeLogs(context.Context, plog.Logs) error {
	<-d.release
	return nil
}

func TestShutdownWithAConsumerThatHangs(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		benchmarktest.New(benchmarktest.Options{}).Write(t, folder)
		g := newRig(t, folder)
		hang := &deaf{release: make(chan struct{})}
		r, err := NewFactory().CreateLogs(t.Context(), g.settings(), g.config, hang)
		require.NoError(t, err)
		require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
		synctest.Wait()
		began := time.Now()
		require.ErrorIs(t, r.Shutdown(context.Background()), errHanging)
		assert.Equal(t, shutdown.Timeout, time.Since(began))
		close(hang.release)
		synctest.Wait()
	})
}
