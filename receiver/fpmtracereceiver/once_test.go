// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"errors"
	"os"
	ossignal "os/signal"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"
)

// The first call starts a goroutine that must not be in a synctest bubble.
func init() {
	caught := make(chan os.Signal, 1)
	ossignal.Notify(caught, syscall.SIGUSR2)
	ossignal.Stop(caught)
}

// TestOnce reads what is there and says so, in the log and in the status; what
// comes later is not read.
func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, once)
		for i := range 3 {
			r.append(r.path("p", i), rows(int64(i)*10, int64(i)*10+10))
		}
		r.append(r.path("q", 0), rowsOf("q", 0, 2)+"bad\n")
		r.start()
		synctest.Wait()
		r.expect("p", span(0, 30))
		said := r.messages("Done: all files are read")
		require.Len(t, said, 1)
		fields := said[0].ContextMap()
		assert.Equal(t, int64(4), fields["files"])
		assert.Equal(t, int64(32), fields["rows"])
		assert.Equal(t, int64(1), fields["rejected"])
		want := map[string]any{"fpm_trace.done": true, "fpm_trace.files": int64(4), "fpm_trace.rows": int64(32), "fpm_trace.rejected": int64(1)}
		require.Len(t, r.host.events, 2, "one for each signal")
		for _, event := range r.host.events {
			assert.Equal(t, componentstatus.StatusOK, event.Status())
			assert.Equal(t, want, event.Attributes().AsRaw())
		}

		r.append(r.path("p", 3), rows(30, 40))
		r.settle()
		r.expect("p", span(0, 30))
		r.stop()
	})
}

// TestOnceTakesWhatIsIncomplete: a torn member with a later segment is skipped,
// a last line without its newline is a row, and a torn member at the very end is
// left to a later run.
func TestOnceTakesWhatIsIncomplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { once(c); withStorage(c) })
		torn, late := pack(t, rows(2, 5)), pack(t, rows(7, 9))
		r.append(r.path("p", 0), rows(0, 2))
		r.appendBytes(r.path("p", 0), torn[:len(torn)-3])
		r.append(r.path("p", 1), rows(5, 7))
		r.appendBytes(r.path("p", 1), late[:len(late)-3])
		text := rowsOf("q", 0, 3)
		r.append(r.path("q", 0), text[:len(text)-1])
		r.start()
		synctest.Wait()
		r.expect("p", []int64{0, 1, 5, 6})
		r.expect("q", span(0, 3))
		assert.Equal(t, int64(len(torn)+len(late)-6), r.sum("skipped_bytes", "torn"))
		require.Len(t, r.messages("Done"), 1)
		r.stop()

		r.appendBytes(r.path("p", 1), late[len(late)-3:])
		again := rigIn(t, r.dir, func(c *Config) { once(c); withStorage(c) }).start()
		synctest.Wait()
		again.expect("p", span(7, 9))
		again.expect("q", nil)
		again.stop()
	})
}

func TestOnceWithoutFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, once).start()
		synctest.Wait()
		said := r.messages("no file matches include")
		require.Len(t, said, 1)
		assert.Equal(t, []any{r.cfg.Include[0]}, said[0].ContextMap()["include"])
		r.stop()
	})
}

// TestOnceIsDoneWhenAllIsTaken: not before.
func TestOnceIsDoneWhenAllIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, once)
		r.logs.answer = func(int) error { return errNotNow }
		r.append(r.path("p", 0), rows(0, 3))
		r.start()
		time.Sleep(time.Hour)
		assert.Empty(t, r.messages("Done"))
		r.logs.will(nil)
		time.Sleep(maxRetry * 2)
		assert.Len(t, r.messages("Done"), 1)
		r.stop()
	})
}

// TestProgress: a long read is told of every half a minute, a short one is not.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.metrics = nil
		r.logs.answer = func(int) error { time.Sleep(7 * time.Second); return nil }
		for i := int64(0); i < 20; i++ {
			r.append(r.path("p", 0), rows(i*10, i*10+10))
		}
		r.start()
		time.Sleep(150 * time.Second)
		said := r.messages("Reading traces")
		require.Len(t, said, 4)
		first, second := said[0].ContextMap(), said[1].ContextMap()
		assert.Equal(t, int64(50), first["rows"])
		assert.Equal(t, 35*time.Second, first["elapsed"])
		assert.Greater(t, first["unread_bytes"], second["unread_bytes"])

		r.logs.will(nil)
		for i := int64(20); i < 30; i++ { // a little work at a time
			r.append(r.path("p", 0), rows(i*10, i*10+10))
			time.Sleep(20 * time.Second)
		}
		assert.Len(t, r.messages("Reading traces"), 4)
		r.stop()
	})
}

// TestExitGate: the process ends when the last receiver is done, is asked again
// until it reacts, and not any more once the receiver is stopped.
func TestExitGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int64
		gate := &exitGate{send: func() error { sent.Add(1); return errors.New("try again") }}
		first, second := newRig(t, exits), newRig(t, exits)
		first.append(first.path("p", 0), rows(0, 3))
		second.append(second.path("p", 0), rows(0, 3))
		second.logs.answer = func(int) error { return errNotNow }
		for _, r := range []*rig{first, second} {
			r.gate = gate
			r.create()
		}
		for _, r := range []*rig{first, second} {
			for _, part := range r.parts {
				require.NoError(t, part.Start(t.Context(), r.host))
			}
			synctest.Wait() // the first one is done before the second one starts
		}
		time.Sleep(time.Minute)
		assert.Zero(t, sent.Load(), "the second one is not done")
		assert.Len(t, first.messages("ending the process"), 1)
		second.logs.will(nil)
		time.Sleep(maxRetry * 2)
		assert.Positive(t, sent.Load())
		first.stop()
		second.stop()
		before := sent.Load()
		time.Sleep(time.Minute)
		assert.Equal(t, before, sent.Load())
		assert.Empty(t, gate.inside)
	})
}

// TestExitGateForgetsTheStopped: a receiver that is stopped before it is done,
// as at a reload, does not keep the process alive, and does not end it.
func TestExitGateForgetsTheStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int64
		gate := &exitGate{send: func() error { sent.Add(1); return nil }}
		r := newRig(t, exits)
		r.append(r.path("p", 0), rows(0, 3))
		r.logs.answer = func(int) error { return errNotNow }
		r.gate = gate
		r.start()
		time.Sleep(time.Second)
		r.halt()
		time.Sleep(time.Minute)
		assert.Zero(t, sent.Load())
		assert.Empty(t, gate.inside)
	})
}

func exits(c *Config) { c.Mode, c.ExitWhenDone = modeOnce, true }
