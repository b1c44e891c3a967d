// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"
)

// TestFullInOrderUnderConcurrentProducers: many pipelines at once, each
// producer's rows in order, none lost, none in another's file.
func TestFullInOrderUnderConcurrentProducers(t *testing.T) {
	r := newRig(t, func(cfg *Config) {
		cfg.FlushInterval = 5 * time.Millisecond
		cfg.RollBytes = 100_000
		cfg.MaxSegments = 1000
	}).start(nil)
	const producers, batches, batch = 8, 40, 25
	var wait sync.WaitGroup
	for producer := range producers {
		wait.Go(func() {
			for i := range int64(batches) {
				r.send("p"+strconv.Itoa(producer), counted(i*batch, (i+1)*batch)...)
			}
		})
	}
	wait.Wait()
	r.stop()
	for producer := range producers {
		rows := r.rows(fmt.Sprintf("fpm.p%d.", producer))
		assert.Equal(t, span(0, batches*batch), counters(rows))
		for i := range rows {
			assert.Equal(t, "p"+strconv.Itoa(producer), rows[i].Event.Source.ProducerID)
			if i > 0 {
				assert.GreaterOrEqual(t, rows[i].Timestamp, rows[i-1].Timestamp)
			}
		}
	}
	assert.Positive(t, r.sum("rolls", ""))
}

func TestRollAndPrune(t *testing.T) {
	r := newRig(t, func(cfg *Config) { cfg.RollBytes, cfg.MaxSegments = 10_000, 3 }).start(nil)
	for i := range int64(10) {
		r.send("4192", counted(i*10, i*10+10)...)
	}
	r.stop()
	files := r.files()
	assert.Len(t, files, 3)
	rows := r.rows("")
	assert.Equal(t, span(rows[0].Event.FPM.CounterID, 100), counters(rows), "the newest, without a hole")
	assert.Equal(t, int64(100), r.sum("rows", outcomeWritten))
	rolls := r.sum("rolls", "")
	assert.Equal(t, fmt.Sprintf("fpm.4192.%06d.jsonl.gz", rolls), files[2])
	assert.Equal(t, rolls+1-3, r.sum("pruned", ""))
	assert.Greater(t, r.sum("bytes", "uncompressed"), 5*r.sum("bytes", "compressed"))
}

// TestShutdownKeepsTheLimits: a full queue is written at shutdown, whole and
// in segments of the usual size.
func TestShutdownKeepsTheLimits(t *testing.T) {
	r := newRig(t, func(cfg *Config) { cfg.RollBytes, cfg.MaxSegments, cfg.FlushInterval = 2000, 10_000, time.Hour }).start(nil)
	r.send("4192", counted(0, 4000)...)
	r.stop()
	assert.Equal(t, span(0, 4000), counters(r.rows("")))
	for _, name := range r.files() {
		assert.LessOrEqual(t, len(r.rows(name)), 3, "%s holds at most 2000 bytes of rows", name)
	}
}

// TestQueueSizeDropsTheOldest: a producer whose disk does not answer keeps its
// newest rows; what is being written stays as well.
func TestQueueSizeDropsTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := &faults{}
		release := make(chan struct{})
		r := newRig(t, func(cfg *Config) { cfg.QueueSize = 100 }).start(fs)
		fs.set(func(f *faults) { f.write = func() error { <-release; return nil } })
		r.send("4192", counted(0, 10)...)
		time.Sleep(r.cfg.FlushInterval)
		synctest.Wait() // 0…9 are being written
		r.send("4192", counted(10, 300)...)
		assert.Equal(t, 100, r.core().queueLength())
		close(release)
		r.stop()
		assert.Equal(t, append(span(0, 10), span(210, 300)...), counters(r.rows("")))
		assert.Equal(t, int64(200), r.sum("dropped", reasonQueueFull))
	})
}

func TestQueueBytesDropsTheOldestOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(cfg *Config) { cfg.QueueBytes, cfg.FlushInterval = 500_000, time.Hour }).start(&faults{create: func() error { return syscall.EACCES }})
		for i := range int64(20) {
			r.send("a", pass{counter: i, pad: 50_000})
			r.send("b", pass{counter: i, pad: 50_000})
			if i == 0 { // from the first failed attempt on, nothing is being written
				time.Sleep(r.cfg.FlushInterval)
				synctest.Wait()
			}
		}
		core := r.core()
		core.mu.Lock()
		assert.LessOrEqual(t, core.queue.bytes, r.cfg.QueueBytes)
		core.mu.Unlock()
		core.fs.(*faults).set(func(f *faults) { f.create = nil })
		r.stop()
		a, b := counters(r.rows("fpm.a.")), counters(r.rows("fpm.b."))
		assert.Len(t, append(a, b...), 9)
		assert.Equal(t, span(16, 20), a)
		assert.Equal(t, span(15, 20), b)
		assert.Equal(t, int64(31), r.sum("dropped", reasonQueueFull))
	})
}

// TestARowLargerThanQueueBytes goes alone: it does not drive others out.
func TestARowLargerThanQueueBytes(t *testing.T) {
	for _, mode := range []string{modeFull, modeSampled} {
		r := newRig(t, func(cfg *Config) { cfg.Mode, cfg.QueueBytes = mode, 100_000 }).start(nil)
		r.send("4192", pass{counter: 1}, pass{counter: 2, pad: 200_000}, pass{counter: 3, rank: 1})
		r.stop()
		assert.Equal(t, []int64{1, 3}, counters(r.rows("")))
		assert.Equal(t, int64(1), r.sum("dropped", reasonQueueFull))
	}
}

// TestWriteErrors: while the disk fails the exporter lives and keeps the
// newest rows; when it works again they are written; the status says both.
func TestWriteErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := &faults{}
		r := newRig(t, func(cfg *Config) { cfg.QueueSize = 50 }).start(fs)
		r.send("4192", counted(0, 10)...)
		time.Sleep(r.cfg.FlushInterval)
		synctest.Wait()
		fs.set(func(f *faults) { f.write = func() error { return syscall.ENOSPC } })
		for i := range int64(10) {
			r.send("4192", counted(10+i*10, 20+i*10)...)
			time.Sleep(r.cfg.FlushInterval)
			synctest.Wait()
		}
		assert.Equal(t, int64(10), r.sum("rows", outcomeWritten))
		assert.Equal(t, int64(50), r.sum("dropped", reasonQueueFull))
		assert.Equal(t, int64(10), r.sum("write_errors", ""))
		assert.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError, componentstatus.StatusRecoverableError}, r.host.reported(), "once, to both signals")

		fs.set(func(f *faults) { f.write = nil })
		time.Sleep(r.cfg.FlushInterval)
		synctest.Wait()
		assert.Equal(t, append(span(0, 10), span(60, 110)...), counters(r.rows("fpm.4192.000000")), "the file was cut back, and goes on")
		assert.Equal(t, componentstatus.StatusOK, r.host.reported()[2])
		r.stop()
		assert.Len(t, r.host.reported(), 4)
	})
}

func TestRowsThatCannotBeWrittenAtShutdownAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := &faults{}
		r := newRig(t, nil).start(fs)
		r.send("4192", counted(0, 10)...)
		fs.set(func(f *faults) { f.create = func() error { return syscall.EROFS } })
		r.stop()
		assert.Equal(t, int64(10), r.sum("dropped", reasonWriteError))
		assert.Empty(t, r.files())
	})
}

// TestUnwritablePath: one clear error with path, uid and mode, a recoverable
// status, and the exporter takes records all the same.
func TestUnwritablePath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := &faults{create: func() error { return syscall.EACCES }}
		r := newRig(t, nil).start(fs)
		synctest.Wait()
		require.Len(t, r.said.All(), 1)
		said := fmt.Sprint(r.said.All()[0].ContextMap()["error"])
		assert.Contains(t, said, fmt.Sprintf("running as uid %d", os.Getuid()))
		assert.Contains(t, said, r.dir+" has mode drwx")
		assert.Equal(t, componentstatus.StatusRecoverableError, r.host.reported()[0])

		r.send("4192", counted(0, 10)...)
		time.Sleep(time.Minute)
		fs.set(func(f *faults) { f.create = nil })
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, span(0, 10), counters(r.rows("")))
		assert.Equal(t, componentstatus.StatusOK, r.host.reported()[len(r.host.reported())-1])
		r.stop()
	})
}

func TestSegmentRemovedUnderUs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil).start(nil)
		r.send("4192", counted(0, 10)...)
		time.Sleep(r.cfg.FlushInterval)
		synctest.Wait()
		require.NoError(t, os.RemoveAll(r.dir))
		r.send("4192", counted(10, 20)...)
		time.Sleep(r.cfg.FlushInterval)
		synctest.Wait()
		assert.Equal(t, span(10, 20), counters(r.rows("fpm.4192.000001")))
		assert.Equal(t, int64(1), r.sum("write_errors", ""))
		assert.Contains(t, fmt.Sprint(r.said.All()[0].ContextMap()["error"]), "was removed while it was written")
		r.stop()
	})
}

// TestMaxOpenProducers: the writer used least recently makes room; one opened
// again is a new writer, whose rows are counted from its beginning.
func TestMaxOpenProducers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(cfg *Config) { cfg.MaxOpenProducers = 2 }).start(nil)
		r.send("a", pass{counter: 1})
		r.send("b", pass{counter: 1})
		time.Sleep(time.Second)
		r.send("a", pass{counter: 2})
		r.send("c", pass{counter: 1}) // b closes
		synctest.Wait()
		core := r.core()
		core.mu.Lock()
		assert.Len(t, core.producers.open, 2)
		assert.Contains(t, core.producers.open, "a")
		assert.Empty(t, core.producers.closing)
		core.mu.Unlock()
		r.send("b", pass{counter: 2})
		r.stop()
		assert.Equal(t, []int64{1, 2}, counters(r.rows("fpm.a.000000")))
		assert.Equal(t, int64(1000), r.rows("fpm.a.")[1].Timestamp)
		assert.Equal(t, []int64{1}, counters(r.rows("fpm.b.000000")))
		assert.Equal(t, []int64{2}, counters(r.rows("fpm.b.000001")))
		assert.Equal(t, int64(0), r.rows("fpm.b.000001")[0].Timestamp)
	})
}

// TestManyMoreProducersThanOpenOnes loses nothing and mixes nothing up, with
// writers that close while others write.
func TestManyMoreProducersThanOpenOnes(t *testing.T) {
	r := newRig(t, func(cfg *Config) {
		cfg.MaxOpenProducers, cfg.MaxSegments, cfg.Fsync, cfg.FlushInterval = 4, 1000, fsyncNever, time.Millisecond
	}).start(nil)
	var wait sync.WaitGroup
	const pipelines, producers, rounds = 4, 12, 15
	for pipeline := range pipelines {
		wait.Go(func() {
			for i := range int64(rounds) {
				for producer := range producers {
					if producer%pipelines == pipeline {
						r.send("p"+strconv.Itoa(producer), counted(i*10, i*10+10)...)
					}
				}
			}
		})
	}
	wait.Wait()
	r.stop()
	assert.Equal(t, int64(r.taken), r.sum("rows", outcomeWritten)+r.sum("dropped", reasonProducerLimit))
	for producer := range producers {
		rows := r.rows(fmt.Sprintf("fpm.p%d.", producer))
		for i := 1; i < len(rows); i++ {
			require.Greater(t, rows[i].Event.FPM.CounterID, rows[i-1].Event.FPM.CounterID, "in order over the writers of a producer")
		}
	}
}

// TestAProducerComesBackWhileItCloses: its new writer waits for the old one,
// and takes the name over from it.
func TestAProducerComesBackWhileItCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := &faults{}
		release := make(chan struct{})
		r := newRig(t, func(cfg *Config) { cfg.MaxOpenProducers = 2 }).start(fs)
		fs.set(func(f *faults) { f.write = func() error { <-release; return nil } })
		r.send("a", pass{counter: 1})
		r.send("b", pass{counter: 1})
		r.send("c", pass{counter: 1}) // a closes
		r.send("a", pass{counter: 2}) // b closes
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Zero(t, r.sum("rows", ""))
		close(release)
		r.stop()
		assert.Equal(t, []int64{1}, counters(r.rows("fpm.a.000000")))
		assert.Equal(t, []int64{2}, counters(r.rows("fpm.a.000001")))
		assert.Empty(t, r.said.All())
	})
}

// TestClosingWritersAreBounded: with a disk that does not answer, ids that come
// and go cost neither goroutines nor memory without end.
func TestClosingWritersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := &faults{}
		release := make(chan struct{})
		r := newRig(t, func(cfg *Config) { cfg.MaxOpenProducers = 3 }).start(fs)
		fs.set(func(f *faults) { f.write = func() error { <-release; return nil } })
		for i := range 20 {
			r.send("p"+strconv.Itoa(i), pass{counter: 1})
		}
		for range 20 {
			for i := range 4 {
				r.send("p"+strconv.Itoa(i), pass{counter: 2})
			}
		}
		synctest.Wait()
		core := r.core()
		core.mu.Lock()
		assert.Len(t, core.producers.open, 3)
		assert.Equal(t, 3, core.producers.ending)
		core.mu.Unlock()
		assert.Positive(t, r.sum("dropped", reasonProducerLimit))
		close(release)
		r.stop()
	})
}

func TestAlikeProducerIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(cfg *Config) { cfg.MaxSegments = 1 }).start(nil)
		for i := range int64(3) {
			r.send("a/b", pass{counter: i})
			r.send("a.b", pass{counter: 10 + i})
			time.Sleep(time.Second)
		}
		r.stop()
		files := r.files()
		require.Len(t, files, 2)
		assert.Regexp(t, `^fpm\.a_b-[0-9a-f]{8}\.000000\.jsonl\.gz$`, files[0])
		assert.Equal(t, "fpm.a_b.000000.jsonl.gz", files[1])
		assert.Equal(t, []int64{10, 11, 12}, counters(r.rows("a_b-")))
		assert.Equal(t, []int64{0, 1, 2}, counters(r.rows("a_b.")))
		assert.Equal(t, "a.b", r.rows("a_b-")[0].Event.Source.ProducerID, "rows keep the raw id")
		assert.Len(t, r.said.FilterMessageSnippet("same file name").All(), 1)
	})
}

// TestNoAttributeLeavesTheDirectory: whatever stands in any attribute, files
// are made in one place only.
func TestNoAttributeLeavesTheDirectory(t *testing.T) {
	parent := t.TempDir()
	r := rigIn(t, filepath.Join(parent, "traces"), nil).start(nil)
	for _, evil := range []string{"../evil", "/etc/evil", "..", "", "a/../../evil", strings.Repeat("../", 200), strings.Repeat("x", 300), "\x00", "jsonl", "\xff"} {
		logs := logsOf(evil, pass{worker: evil})
		if evil == "\xff" {
			logs = logsOf(evil, pass{})
		}
		attributes := logs.ResourceLogs().At(0).Resource().Attributes()
		for key := range attributes.All() {
			attributes.PutStr(key, evil)
		}
		require.NoError(t, r.logs.ConsumeLogs(t.Context(), logs))
		r.took(1)
	}
	r.stop()
	entries, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	for _, name := range r.files() {
		assert.Regexp(t, `^fpm\.[A-Za-z0-9_-]+\.000000\.jsonl\.gz$`, name)
	}
	assert.Len(t, r.rows(""), 10)
	assert.Contains(t, r.files(), "fpm.jsonl.000000.jsonl.gz")
	assert.Contains(t, r.files(), "fpm.unknown.000000.jsonl.gz")
}

func TestMaxAgeReachesDeadAndIdleProducers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(cfg *Config) { cfg.MaxAge = time.Hour })
		dead := filepath.Join(r.dir, "fpm.dead.000007.jsonl.gz")
		foreign := filepath.Join(r.dir, "other.dead.000007.jsonl.gz")
		for _, path := range []string{dead, foreign} {
			require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
			require.NoError(t, os.Chtimes(path, time.Now(), time.Now()))
		}
		r.start(nil)
		r.send("idle", pass{counter: 1})
		r.send("live", pass{counter: 1})
		time.Sleep(55 * time.Minute)
		r.send("live", pass{counter: 2})
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		assert.Len(t, r.files(), 4)
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{"fpm.live.000000.jsonl.gz", "other.dead.000007.jsonl.gz"}, r.files())
		assert.Equal(t, int64(2), r.sum("pruned", ""))
		r.send("idle", pass{counter: 2})
		r.stop()
		assert.Equal(t, []int64{2}, counters(r.rows("fpm.idle.")))
	})
}

func TestMaxTotalBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(cfg *Config) { cfg.MaxTotalBytes, cfg.RollBytes, cfg.MaxSegments = 1, 5000, 100 }).start(nil)
		for i := range int64(10) {
			r.send("4192", counted(i*5, i*5+5)...)
			time.Sleep(r.cfg.FlushInterval)
			synctest.Wait()
		}
		assert.Len(t, r.files(), 1, "the active segment is never removed")
		assert.Equal(t, r.sum("rolls", ""), r.sum("pruned", ""))
		r.stop()
		assert.Equal(t, int64(50), r.sum("rows", outcomeWritten))
	})
}

// TestFsyncIsOffTheWritePath: while the sync of a closed segment hangs, rows go
// on to the next one.
func TestFsyncIsOffTheWritePath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := &faults{}
		release := make(chan struct{})
		r := newRig(t, func(cfg *Config) { cfg.RollBytes, cfg.MaxSegments = 1, 100 }).start(fs)
		synced := 0
		fs.set(func(f *faults) { f.sync = func() error { <-release; synced++; return nil } })
		for i := range int64(10) {
			r.send("4192", pass{counter: i})
			time.Sleep(r.cfg.FlushInterval)
			synctest.Wait()
			assert.Equal(t, i+1, r.sum("rows", outcomeWritten))
		}
		assert.Zero(t, synced)
		close(release)
		r.stop()
		assert.Equal(t, 10, synced, "every closed segment, the last one at shutdown too")
	})
}

func TestFsyncWords(t *testing.T) {
	for word, want := range map[string]int{fsyncNever: 0, fsyncRoll: 1, fsyncFlush: 3 + 1} {
		synctest.Test(t, func(t *testing.T) {
			fs := &faults{}
			synced := 0
			fs.sync = func() error { synced++; return nil }
			r := newRig(t, func(cfg *Config) { cfg.Fsync = word }).start(fs)
			for i := range int64(3) {
				r.send("4192", pass{counter: i})
				time.Sleep(r.cfg.FlushInterval)
				synctest.Wait()
			}
			r.stop()
			assert.Equal(t, want, synced, word)
		})
	}
}

func TestSyncErrorIsCounted(t *testing.T) {
	r := newRig(t, nil).start(&faults{sync: func() error { return syscall.EIO }})
	r.send("4192", pass{counter: 1})
	r.stop()
	assert.Equal(t, int64(1), r.sum("write_errors", ""))
	assert.Contains(t, fmt.Sprint(r.said.All()[0].ContextMap()["error"]), "fpm.4192.000000.jsonl.gz")
}

func TestDirectoryPermissionsOfTheTrace(t *testing.T) {
	parent := t.TempDir()
	r := rigIn(t, filepath.Join(parent, "made"), func(cfg *Config) { cfg.DirectoryPermissions = "0700" }).start(nil)
	r.send("4192", pass{})
	r.stop()
	info, err := os.Stat(r.dir)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}
