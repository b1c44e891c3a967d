// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// TestRefusedForNow: a consumer that refuses holds up reading, however long, and
// gets every row once.
func TestRefusedForNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.metrics.answer = func(int) error { return errNotNow }
		r.append(r.path("p", 0), rows(0, 10), rows(10, 20))
		r.start()
		time.Sleep(time.Hour)
		assert.Zero(t, r.metrics.total())
		r.expectLogs("p", nil) // the order is metrics, logs
		assert.Greater(t, r.metrics.calls, 100)
		said := r.messages("refused rows for now")
		require.NotEmpty(t, said)
		assert.LessOrEqual(t, len(said), 361, "at most one line in ten seconds")
		r.metrics.will(nil)
		r.settle()
		time.Sleep(maxRetry * 2)
		r.expect("p", span(0, 20))
		r.stop()
	})
}

func (r *rig) expectLogs(producer string, counters []int64) {
	r.t.Helper()
	assert.Equal(r.t, counters, r.logs.of(producer))
}

// TestRefusedForGood: the rows of the batch are dropped for that signal and
// counted; the other signal has them, and reading goes on.
func TestRefusedForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.metrics.answer = func(call int) error {
			if call == 2 {
				return consumererror.NewPermanent(errors.New("no"))
			}
			return nil
		}
		r.append(r.path("p", 0), rows(0, 10), rows(10, 20), rows(20, 30))
		r.start()
		r.settle()
		assert.Equal(t, append(span(0, 10), span(20, 30)...), r.metrics.of("p"))
		r.expectLogs("p", span(0, 30))
		assert.Equal(t, int64(10), r.sum("dropped", "metrics", "refused"))
		r.stop()
	})
}

// TestOnlyDeliveredPointsLinkTheNext: deltas are contiguous over what was
// delivered, not over what was refused on the way.
func TestOnlyDeliveredPointsLinkTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.metrics.answer = func(call int) error {
			switch call {
			case 2, 3, 6:
				return errNotNow
			case 5:
				return consumererror.NewPermanent(errors.New("no"))
			}
			return nil
		}
		for from := int64(0); from < 50; from += 10 {
			r.append(r.path("p", 0), rows(from, from+10))
		}
		r.start()
		r.settle()
		r.stop()
		require.Equal(t, append(span(0, 20), span(30, 50)...), r.metrics.of("p"))
		points := pointsOf(r, "p")
		for _, name := range []string{fpm.MetricDecodeTokens, fpm.MetricPrefillTokens, fpm.MetricStepDuration} {
			times, starts := points.times[name], points.starts[name]
			require.Len(t, times, 40)
			assert.Equal(t, times[:39], starts[1:], name)
		}
		starts := points.starts[fpm.MetricMessages]
		assert.Equal(t, starts[0], last2(starts), "the counter goes on")
	})
}

func last2(times []pcommon.Timestamp) pcommon.Timestamp { return times[len(times)-1] }

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

// TestStoreListsItsKeys: every key of a file is in the list, also of files that
// came and went.
func TestStoreListsItsKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, withStorage)
		r.start()
		for i := range 5 {
			r.append(r.path("p", i), rows(int64(i), int64(i)+1))
			r.settle()
			assert.Len(t, storedKeys(t, r), i+2)
		}
		known, resumed, damaged, err := r.core.reader.store.load(context.Background())
		require.NoError(t, err)
		assert.True(t, resumed)
		assert.Empty(t, damaged)
		assert.Len(t, known, 5)
		r.stop()
	})
}

// brokenStorage is a storage extension whose clients fail to write while broken.
type brokenStorage struct {
	extension.Extension
	broken atomic.Bool
}

type brokenClient struct {
	storage.Client
	of *brokenStorage
}

func (b *brokenStorage) GetClient(ctx context.Context, kind component.Kind, id component.ID, name string) (storage.Client, error) {
	client, err := b.Extension.(storage.Extension).GetClient(ctx, kind, id, name)
	return brokenClient{client, b}, err
}

func (c brokenClient) Batch(ctx context.Context, operations ...*storage.Operation) error {
	if c.of.broken.Load() {
		return errors.New("no space left on device")
	}
	return c.Client.Batch(ctx, operations...)
}

// TestStorageThatFails: reading goes on, a status tells, and positions are stored
// as soon as that is possible again, also when nothing more is read.
func TestStorageThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, withStorage)
		broken := &brokenStorage{}
		broken.broken.Store(true)
		r.wrapStorage = func(real extension.Extension) extension.Extension {
			broken.Extension = real
			return broken
		}
		r.append(r.path("p", 0), rows(0, 5), rows(5, 10))
		r.append(r.path("q", 0), rowsOf("q", 0, 5))
		r.start()
		r.settle()
		r.expect("p", span(0, 10))
		assert.Equal(t, componentstatus.StatusRecoverableError, r.host.reported()[0])
		require.NotEmpty(t, r.messages("positions cannot be stored"))
		require.NoError(t, os.Remove(r.path("q", 0)))
		time.Sleep(forgetAfter + time.Minute) // forgotten before it was ever stored
		broken.broken.Store(false)
		r.settle()
		reported := r.host.reported()
		assert.Equal(t, componentstatus.StatusOK, reported[len(reported)-1])
		r.stop()

		again := rigIn(t, r.dir, withStorage).start()
		again.settle()
		assert.Zero(t, again.logs.total())
		assert.Equal(t, []string{keyPerFile + r.path("p", 0), keyFiles}, storedKeys(t, again))
		again.stop()
	})
}

// TestListKeepsWhatIsNotSeen: a file in a directory that cannot be searched after
// a restart keeps its position, also when the list changes meanwhile.
func TestListKeepsWhatIsNotSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, withStorage)
		other := filepath.Join(r.dir, "other")
		both := func(c *Config) {
			withStorage(c)
			c.Include = []string{filepath.Join(r.dir, "*.jsonl.gz"), filepath.Join(other, "*.jsonl.gz")}
		}
		both(r.cfg)
		require.NoError(t, os.Mkdir(other, 0o755))
		r.append(filepath.Join(other, "fpm.q.000000.jsonl.gz"), rowsOf("q", 0, 5))
		r.start()
		r.settle()
		r.expect("q", span(0, 5))
		r.stop()

		require.NoError(t, os.Rename(other, other+".away"))
		require.NoError(t, os.WriteFile(other, nil, 0o600)) // cannot be searched
		again := rigIn(t, r.dir, both)
		again.append(again.path("p", 0), rows(0, 5))
		again.start()
		again.settle()
		again.expect("p", span(0, 5))
		again.stop()

		require.NoError(t, os.Remove(other))
		require.NoError(t, os.Rename(other+".away", other))
		last := rigIn(t, r.dir, both).start()
		last.settle()
		assert.Zero(t, last.logs.total())
		last.stop()
	})
}

// TestDamagedPosition: the file is read from its beginning, and the log says so.
func TestDamagedPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, withStorage)
		r.append(r.path("p", 0), rows(0, 5))
		r.append(r.path("q", 0), rowsOf("q", 0, 5))
		r.start()
		r.settle()
		require.NoError(t, r.core.reader.store.client.Set(context.Background(), keyPerFile+r.path("p", 0), []byte("{")))
		r.stop()

		again := rigIn(t, r.dir, withStorage).start()
		again.settle()
		again.expect("p", span(0, 5))
		again.expect("q", nil)
		require.Len(t, again.messages("is damaged"), 1)
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
		assert.LessOrEqual(t, time.Since(begin), shutdownTimeout)
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
