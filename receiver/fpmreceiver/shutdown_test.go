// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/internal/shutdown"
)

func TestShutdownDeliversWhatIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics, logs := &metricsSink{}, &logsSink{}
		g := newRig(t, testConfig(func(c *Config) { c.Batch.Timeout, c.Batch.MaxMessages = time.Hour, 100 }), metrics, logs)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		for n := range int64(99) {
			send(e, busy("w", 0, n))
		}
		synctest.Wait()
		require.Empty(t, logs.records())
		began := time.Now()
		g.shutdown()
		assert.Zero(t, time.Since(began))
		g.settled(99)
		assert.Equal(t, rangeOf(0, 98), counters(metrics.points()))
		assert.Equal(t, rangeOf(0, 98), logCounters(logs.records()))
	})
}

func TestShutdownWithConsumerThatRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics, logs := &metricsSink{}, &logsSink{}
		metrics.tell(refuse(errNow))
		g := newRig(t, testConfig(), metrics, logs)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		sendRange(e, 0, 99)
		began := time.Now()
		g.shutdown()
		assert.LessOrEqual(t, time.Since(began), shutdown.Timeout)
		c := g.settled(100)
		assert.EqualValues(t, 100, c.dropped["metrics"][droppedShutdown])
		assert.EqualValues(t, 100, c.delivered["logs"])
		assert.Len(t, g.warnings("not delivered before the end of shutdown"), 1)
	})
}

// A consumer that recovers while the receiver shuts down still gets everything.
func TestShutdownWithConsumerThatRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		metrics.tell(refuse(errNow))
		g := newRig(t, testConfig(), metrics, nil)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		sendRange(e, 0, 99)
		time.AfterFunc(time.Second, func() { metrics.tell(nil) })
		g.shutdown()
		c := g.settled(100)
		assert.EqualValues(t, 100, c.delivered["metrics"])
	})
}

func TestShutdownWithConsumerThatHangs(t *testing.T) {
	for name, test := range map[string]struct {
		hang func(ctx context.Context, release <-chan struct{}) error
		want error
	}{
		"until its context ends": {
			func(ctx context.Context, _ <-chan struct{}) error {
				<-ctx.Done()
				return ctx.Err()
			},
			nil,
		},
		"for ever, then refuses": {
			func(_ context.Context, release <-chan struct{}) error {
				<-release
				return errNow
			},
			errHanging,
		},
		"for ever, then takes it": {
			func(_ context.Context, release <-chan struct{}) error {
				<-release
				return nil
			},
			errHanging,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				logs := &logsSink{}
				logs.tell(func(ctx context.Context, _ int) error { return test.hang(ctx, release) })
				g := newRig(t, testConfig(func(c *Config) { c.Batch.MaxMessages = 10 }), nil, logs)
				g.startWithoutIntake()
				e := g.endpoint(0)
				e.Connected()
				sendRange(e, 0, 99)
				began := time.Now()
				assert.ErrorIs(t, g.stop(), test.want)
				assert.LessOrEqual(t, time.Since(began), shutdown.Timeout)
				assert.ErrorIs(t, g.stopAgain(), test.want)
				c := g.settled(100)
				assert.EqualValues(t, 100, c.dropped["logs"][droppedShutdown])
				close(release)
				synctest.Wait()
				g.settled(100)
			})
		})
	}
}

func (g *rig) stopAgain() error { return g.receiver.Shutdown(context.Background()) }

func TestShutdownRespectsItsDeadline(t *testing.T) {
	never := make(chan struct{})
	for name, test := range map[string]struct {
		deadline, most time.Duration
		consumer       func(context.Context, int) error
		want           error
	}{
		"soon, refused": {300 * time.Millisecond, 300 * time.Millisecond, refuse(errNow), nil},
		"over, refused": {-time.Second, 0, refuse(errNow), nil},
		"soon, hanging": {300 * time.Millisecond, 300 * time.Millisecond, func(context.Context, int) error { <-never; return nil }, errHanging},
		"over, hanging": {-time.Second, 50 * time.Millisecond, func(context.Context, int) error { <-never; return nil }, errHanging},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				never = make(chan struct{})
				logs := &logsSink{}
				logs.tell(test.consumer)
				g := newRig(t, testConfig(), nil, logs)
				g.startWithoutIntake()
				e := g.endpoint(0)
				e.Connected()
				sendRange(e, 0, 9)
				time.Sleep(time.Second)
				close(g.stopWatch)
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), test.deadline)
				defer cancel()
				require.ErrorIs(t, g.receiver.Shutdown(ctx), test.want)
				assert.LessOrEqual(t, time.Since(began), test.most)
				c := g.settled(10)
				assert.EqualValues(t, 10, c.dropped["logs"][droppedShutdown])
				close(never)
			})
		})
	}
}
