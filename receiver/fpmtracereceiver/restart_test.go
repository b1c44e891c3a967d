// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/internal/shutdown"
)

// TestCleanRestartIsExactlyOnce: a receiver is stopped at any moment, also with
// consumers that refuse at times, and started again; both signals get every row
// once and in order.
func TestCleanRestartIsExactlyOnce(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed_", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 1))
				fate := rand.New(rand.NewPCG(seed, 4)) // the reader's goroutine's
				var (
					dir           = t.TempDir()
					metrics, logs sink
					total         int64
					segment       int
				)
				// Some members are larger than a batch, so that stops come in their middle.
				for run := range 12 {
					r := rigIn(t, dir, withStorage)
					r.metrics, r.logs = &metrics, &logs
					for _, s := range []*sink{&metrics, &logs} {
						s.answer = func(int) error {
							time.Sleep(time.Duration(fate.IntN(30)) * time.Millisecond)
							if run < 11 && fate.IntN(3) == 0 {
								return errNotNow
							}
							return nil
						}
					}
					for range random.IntN(3) {
						if random.IntN(2) == 0 {
							segment++
						}
						rowsOfMember := 1 + random.Int64N(3000)
						r.append(r.path("p", segment), rows(total, total+rowsOfMember))
						total += rowsOfMember
					}
					r.start()
					if run == 11 {
						r.settle()
						time.Sleep(time.Minute)
					} else {
						time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
					}
					r.halt()
				}
				require.Equal(t, span(0, total), metrics.of("p"))
				require.Equal(t, span(0, total), logs.of("p"))
			})
		})
	}
}

// TestStopWhileOneSignalRefuses: the signal that took the batch does not get it
// again after the restart, and the other one does.
func TestStopWhileOneSignalRefuses(t *testing.T) {
	for _, refuses := range []string{"metrics", "logs"} {
		t.Run(refuses, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, withStorage)
				for name, s := range map[string]*sink{"metrics": r.metrics, "logs": r.logs} {
					if name == refuses {
						s.answer = func(call int) error {
							if call > 1 {
								return errNotNow
							}
							return nil
						}
					}
				}
				r.append(r.path("p", 0), rows(0, 5), rows(5, 10)+"bad\n", rows(10, 15))
				r.start()
				r.settle()
				r.halt()

				again := rigIn(t, r.dir, withStorage)
				again.metrics, again.logs = r.metrics, r.logs
				again.metrics.answer, again.logs.answer = nil, nil
				again.start()
				again.settle()
				again.halt()
				again.expect("p", span(0, 15))
				assert.Equal(t, int64(15), r.sum("rows", "accepted")+again.sum("rows", "accepted"))
				assert.Equal(t, int64(1), r.sum("rejected")+again.sum("rejected"))
			})
		})
	}
}

// TestNothingIsStoredBeforeItIsDelivered: with a consumer that never takes
// anything, nothing is stored but the list of files.
func TestNothingIsStoredBeforeItIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, withStorage)
		r.metrics.answer = func(int) error { return errNotNow }
		r.logs.answer = r.metrics.answer
		r.append(r.path("p", 0), rows(0, 5))
		r.start()
		r.settle()
		assert.Equal(t, []string{"files"}, storedKeys(t, r))
		r.halt()

		again := rigIn(t, r.dir, withStorage).start()
		again.settle()
		again.expect("p", span(0, 5))
		again.stop()
	})
}

// TestShutdownWithAHangingConsumer returns within the deadline; what it holds is
// read again.
func TestShutdownWithAHangingConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, withStorage)
		release := make(chan struct{})
		r.logs.answer = func(int) error { <-release; return errNotNow }
		r.append(r.path("p", 0), rows(0, 5))
		r.start()
		r.settle()
		begin := time.Now()
		require.ErrorIs(t, r.parts[0].Shutdown(context.Background()), errHanging)
		assert.LessOrEqual(t, time.Since(begin), shutdown.Timeout)
		close(release)
		synctest.Wait()
		r.halted = true
		require.NoError(t, r.storage.Shutdown(context.Background()))

		again := rigIn(t, r.dir, withStorage).start()
		again.settle()
		again.expect("p", span(0, 5))
		again.stop()
	})
}

// TestShutdownKeepsItsDeadline that the context gives.
func TestShutdownKeepsItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		release := make(chan struct{})
		r.logs.answer = func(int) error { <-release; return errNotNow }
		r.append(r.path("p", 0), rows(0, 5))
		r.start()
		r.settle()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		begin := time.Now()
		require.ErrorIs(t, r.parts[0].Shutdown(ctx), errHanging)
		assert.LessOrEqual(t, time.Since(begin), time.Second)
		require.ErrorIs(t, r.parts[1].Shutdown(ctx), errHanging)
		close(release)
		synctest.Wait()
		r.halted = true
	})
}
