// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/plog"
)

func TestShutdownWithoutStart(t *testing.T) {
	r := newRig(t, nil)
	r.stop()
	r.stop()
	assert.Empty(t, r.files())
	assert.Nil(t, r.instance(), "forgotten")
}

func TestShutdownTwice(t *testing.T) {
	r := newRig(t, nil).start(nil)
	r.send("4192", pass{})
	r.stop()
	r.stop()
	assert.Len(t, r.rows(""), 1)
	require.ErrorIs(t, r.logs.ConsumeLogs(t.Context(), logsOf("4192", pass{})), errNotRunning)
}

func TestNotStartedTakesNothing(t *testing.T) {
	r := newRig(t, nil)
	require.ErrorIs(t, r.logs.ConsumeLogs(t.Context(), logsOf("4192", pass{})), errNotRunning)
	r.stop()
}

// TestSignalsShareAnInstance: the last shutdown ends the exporter, and until
// then the other signal is served.
func TestSignalsShareAnInstance(t *testing.T) {
	r := newRig(t, nil).start(nil)
	require.NotNil(t, r.instance())
	require.NoError(t, r.metrics.Shutdown(t.Context()))
	require.NoError(t, r.metrics.Shutdown(t.Context()), "the same signal twice does not end the other")
	r.send("4192", pass{counter: 1})
	r.stop()
	assert.Len(t, r.rows(""), 1)
	assert.Nil(t, r.instance(), "forgotten")
}

func TestOneSignalAlone(t *testing.T) {
	r := newRig(t, nil)
	require.NoError(t, r.logs.Start(t.Context(), r.host))
	r.send("4192", pass{counter: 1})
	require.NoError(t, r.logs.Shutdown(t.Context()))
	require.NoError(t, r.metrics.Shutdown(t.Context()), "was never started")
	assert.Len(t, r.rows(""), 1)
	r.checkLedger()
	assert.Nil(t, r.instance(), "forgotten")
}

// TestHundredStartsAndStops: what is left over is found by goleak.
func TestHundredStartsAndStops(t *testing.T) {
	dir := t.TempDir()
	for range 100 {
		r := rigIn(t, dir, func(cfg *Config) { cfg.Mode, cfg.MaxSegments = modeSampled, 1000 }).start(nil)
		r.send("4192", pass{counter: 1})
		r.stop()
	}
	assert.Len(t, rigIn(t, dir, nil).files(), 100)
}

func TestTwoExportersNeedTwoPaths(t *testing.T) {
	first := newRig(t, nil).start(nil)
	second := rigIn(t, first.dir, func(cfg *Config) { cfg.Path += ".jsonl.gz" })
	require.ErrorContains(t, second.logs.Start(t.Context(), second.host), "is written by the exporter fpm_trace")
	first.stop()
	second.start(nil)
	second.stop()
}

// TestShutdownInsideItsDeadline: a disk that does not answer costs the rows,
// all counted, and not the deadline.
func TestShutdownInsideItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := &faults{}
		release := make(chan struct{})
		r := newRig(t, nil).start(fs)
		fs.set(func(f *faults) { f.write = func() error { <-release; return nil } })
		r.send("4192", counted(0, 10)...)
		time.Sleep(r.cfg.FlushInterval)
		synctest.Wait() // the first ten are being written
		r.send("4192", counted(10, 30)...)
		r.send("other", counted(0, 5)...)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		err := r.stopWithin(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "20 records were dropped")
		assert.LessOrEqual(t, time.Since(began), 3*time.Second)
		assert.Equal(t, int64(20), r.sum("dropped", reasonShutdown))

		close(release) // the writes that hung come to their end and are counted too
		synctest.Wait()
		assert.Equal(t, int64(15), r.sum("rows", outcomeWritten))
		r.checkLedger()
	})
}

// TestShutdownThatIsSlowButMoves: what was written before the deadline stays,
// the rest is counted, and everything is closed in time.
func TestShutdownThatIsSlowButMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := &faults{}
		r := newRig(t, func(cfg *Config) { cfg.FlushInterval = time.Hour }).start(fs)
		fs.set(func(f *faults) { f.write = func() error { time.Sleep(time.Second); return nil } })
		for i := range int64(8) {
			r.send("4192", pass{counter: i, pad: flushBytes - 10_000})
		}
		ctx, cancel := context.WithTimeout(t.Context(), 4200*time.Millisecond)
		defer cancel()
		err := r.stopWithin(ctx)
		require.ErrorContains(t, err, "records were dropped")
		assert.False(t, errors.Is(err, context.DeadlineExceeded))
		r.checkLedger()
		written := int64(len(r.rows("")))
		assert.GreaterOrEqual(t, written, int64(4))
		assert.Equal(t, 8-written, r.sum("dropped", reasonShutdown))
	})
}

func TestDisabled(t *testing.T) {
	r := newRig(t, func(cfg *Config) { cfg.Enabled = false; cfg.Path = "/proc/no/such/place" }).start(nil)
	require.NoError(t, r.logs.ConsumeLogs(t.Context(), logsOf("4192", counted(0, 10)...)))
	r.stop()
	r.stop()
	require.Equal(t, 1, r.said.Len(), "or nobody finds out why there is no file")
	for _, line := range r.said.All() {
		assert.Contains(t, line.Message, "Writes no trace: enabled is off")
	}
	assert.Empty(t, r.host.reported())
}

// TestLateSignalHearsTheStatus: the second signal to start is told at once
// that writing fails.
func TestLateSignalHearsTheStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.core().fs = &faults{create: func() error { return errors.New("broken") }}
		require.NoError(t, r.logs.Start(t.Context(), r.host))
		synctest.Wait()
		late := &statusHost{}
		require.NoError(t, r.metrics.Start(t.Context(), late))
		assert.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError}, late.reported())
		r.stop()
	})
}

func TestConstructorsHaveNoSideEffects(t *testing.T) {
	r := newRig(t, nil)
	assert.Empty(t, r.files())
	factory := NewFactory()
	cfg := factory.CreateDefaultConfig()
	_, err := factory.CreateLogs(t.Context(), r.settings, cfg)
	require.NoError(t, err) // and never shut down, as otelcol validate does
	r.stop()
}

func TestReadOnlyDataIsEnough(t *testing.T) {
	r := newRig(t, nil).start(nil)
	logs := logsOf("4192", pass{counter: 1})
	logs.MarkReadOnly()
	assert.False(t, r.logs.Capabilities().MutatesData)
	require.NoError(t, r.logs.ConsumeLogs(t.Context(), logs))
	require.NoError(t, r.logs.ConsumeLogs(t.Context(), plog.NewLogs()))
	r.took(1)
	r.stop()
}

var _ component.Host = (*statusHost)(nil)

func TestNopHostIsEnough(t *testing.T) {
	r := newRig(t, nil)
	require.NoError(t, r.logs.Start(t.Context(), componenttest.NewNopHost()))
	r.send("4192", pass{})
	r.stop()
}
