// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func faultyBench(t *testing.T, change func(*Options)) (*bench, *faultFS) {
	t.Helper()
	faults := newFaultFS()
	return newBench(t, func(o *Options) {
		o.FS = faults
		if change != nil {
			change(o)
		}
	}), faults
}

// TestFullDiskAtEveryByte fills the disk after the n-th byte of the second
// member, for each n: the file ends where the first member ends, nothing of
// the second is left, and when there is room again the same lines are written
// once.
func TestFullDiskAtEveryByte(t *testing.T) {
	for room := range 30 {
		b, faults := faultyBench(t, nil)
		w := b.open("p")
		b.write(w, "first\n")
		faults.room = room
		report, err := b.tryWrite(w, "second\nthird\n")
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.Zero(t, report.Lines)
		require.Empty(t, report.Troubles)
		require.Equal(t, "first\n", b.readAll())

		faults.room = -1
		require.Equal(t, 2, b.write(w, "second\nthird\n").Lines)
		b.close(w)
		require.Equal(t, []string{"fpm.p.000000.jsonl.gz"}, b.files())
		require.Equal(t, "first\nsecond\nthird\n", b.readAll())
	}
}

// TestFullDiskAtTheFirstMember: an empty file is no gzip file, so none is left
// lying about, however often it is tried.
func TestFullDiskAtTheFirstMember(t *testing.T) {
	b, faults := faultyBench(t, nil)
	w := b.open("p")
	for room := range 20 {
		faults.room = room
		_, err := b.tryWrite(w, "row\n")
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.Empty(t, b.files())
	}
	faults.room = -1
	b.write(w, "row\n")
	b.close(w)
	assert.Equal(t, "row\n", b.read("fpm.p.000000.jsonl.gz"), "tries use no index up")
}

func TestFullDiskAtARoll(t *testing.T) {
	b, faults := faultyBench(t, func(o *Options) { o.RollBytes = 12 })
	w := b.open("p")
	b.write(w, "first\n")
	faults.create = syscall.ENOSPC
	report, err := b.tryWrite(w, "second\nthird\n")
	require.ErrorIs(t, err, syscall.ENOSPC)
	assert.Zero(t, report.Lines)
	assert.Equal(t, 1, report.Rolls)
	faults.create = nil
	report = b.write(w, "second\nthird\n")
	assert.Equal(t, 2, report.Lines)
	assert.Equal(t, 1, report.Rolls, "the roll that had happened is not counted twice")
	b.close(w)
	assert.Equal(t, "first\nsecond\nthird\n", b.readAll())
}

// TestPartOfABatch: what went into the segment before the roll stays written.
func TestPartOfABatch(t *testing.T) {
	b, faults := faultyBench(t, func(o *Options) { o.RollBytes = 12 })
	w := b.open("p")
	faults.room = 40
	report, err := b.tryWrite(w, "first\nline\nsecond\nmore\n")
	require.ErrorIs(t, err, syscall.ENOSPC)
	assert.Equal(t, 2, report.Lines)
	assert.Equal(t, int64(len("first\nline\n")), report.Text)
	faults.room = -1
	b.write(w, "second\nmore\n")
	b.close(w)
	assert.Equal(t, "first\nline\nsecond\nmore\n", b.readAll())
}

func TestNothingIsAppendedBehindATornMember(t *testing.T) {
	for name, fault := range map[string]func(*faultFS){
		"short write":     func(f *faultFS) { f.short = true },
		"disk full":       func(f *faultFS) { f.room = 7 },
		"input or output": func(f *faultFS) { f.write = syscall.EIO },
	} {
		t.Run(name+" and the file cannot be cut", func(t *testing.T) {
			b, faults := faultyBench(t, nil)
			w := b.open("p")
			b.write(w, "first\n")
			fault(faults)
			faults.truncate = syscall.EIO
			report, err := b.tryWrite(w, "second\n")
			require.Error(t, err)
			require.Len(t, report.Troubles, 1)
			require.ErrorIs(t, report.Troubles[0], syscall.EIO)
			*faults = *newFaultFS()
			b.write(w, "second\n")
			b.close(w)
			assert.Equal(t, []string{"fpm.p.000000.jsonl.gz", "fpm.p.000001.jsonl.gz"}, b.files())
			assert.Equal(t, "second\n", b.read("fpm.p.000001.jsonl.gz"))
			text, _ := readSegment(filepath.Join(b.dir, "fpm.p.000000.jsonl.gz"))
			assert.Equal(t, "first\n", text[:strings.LastIndexByte(text, '\n')+1], "reads up to the last good member")
		})
		t.Run(name, func(t *testing.T) {
			b, faults := faultyBench(t, nil)
			w := b.open("p")
			b.write(w, "first\n")
			fault(faults)
			_, err := b.tryWrite(w, "second\n")
			require.Error(t, err)
			*faults = *newFaultFS()
			b.write(w, "second\n")
			b.close(w)
			assert.Equal(t, "first\nsecond\n", b.read("fpm.p.000000.jsonl.gz"))
		})
	}

	t.Run("after a restart", func(t *testing.T) {
		b := newBench(t, nil)
		w := b.open("p")
		b.write(w, "first\n")
		path := filepath.Join(b.dir, "fpm.p.000000.jsonl.gz")
		file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = file.Write([]byte{0x1f, 0x8b, 8, 0})
		require.NoError(t, errors.Join(err, file.Close()))

		next := benchIn(t, b.dir, nil)
		w2 := next.open("p")
		next.write(w2, "second\n")
		next.close(w2)
		assert.Equal(t, "second\n", b.read("fpm.p.000001.jsonl.gz"))

		// And the first writer, were it still alive, would not go on either.
		report := b.write(w, "third\n")
		require.Len(t, report.Troubles, 1)
		assert.ErrorContains(t, report.Troubles[0], "was changed by someone else")
		b.close(w)
		assert.Equal(t, "third\n", b.read("fpm.p.000002.jsonl.gz"))
	})
}

func TestSegmentTakenAway(t *testing.T) {
	for name, test := range map[string]struct {
		take func(t *testing.T, dir, path string)
		says string
	}{
		"removed": {func(t *testing.T, _, path string) { require.NoError(t, os.Remove(path)) }, "was removed"},
		"replaced": {func(t *testing.T, _, path string) {
			require.NoError(t, os.Rename(path, path+".moved"))
			require.NoError(t, os.WriteFile(path, nil, 0o600))
		}, "was replaced"},
		"cut":               {func(t *testing.T, _, path string) { require.NoError(t, os.Truncate(path, 3)) }, "was changed"},
		"directory removed": {func(t *testing.T, dir, _ string) { require.NoError(t, os.RemoveAll(dir)) }, "was removed"},
	} {
		t.Run(name, func(t *testing.T) {
			b := benchIn(t, filepath.Join(t.TempDir(), "traces"), nil)
			w := b.open("p")
			b.write(w, "first\n")
			test.take(t, b.dir, filepath.Join(b.dir, "fpm.p.000000.jsonl.gz"))
			report := b.write(w, "second\n")
			require.Len(t, report.Troubles, 1)
			assert.ErrorContains(t, report.Troubles[0], test.says)
			assert.Equal(t, 1, report.Lines)
			b.close(w)
			assert.Equal(t, "second\n", b.read("fpm.p.000001.jsonl.gz"))
		})
	}
}

func TestPermissionLost(t *testing.T) {
	b, faults := faultyBench(t, func(o *Options) { o.RollBytes = 1 })
	w := b.open("p")
	b.write(w, "first\n")
	faults.create = syscall.EACCES
	_, err := b.tryWrite(w, "second\n")
	require.ErrorIs(t, err, syscall.EACCES)
	assert.ErrorContains(t, err, fmt.Sprintf("running as uid %d", os.Getuid()))
	assert.ErrorContains(t, err, b.dir+" has mode drwx")
	faults.create = nil
	b.write(w, "second\n")
	b.close(w)
	assert.Equal(t, "first\nsecond\n", b.readAll())
}

func TestPrepareTriesAgain(t *testing.T) {
	b, faults := faultyBench(t, nil)
	for _, fault := range []*error{&faults.create, &faults.list} {
		*fault = syscall.EACCES
		require.ErrorIs(t, b.set.Prepare(), syscall.EACCES)
		*fault = nil
	}
	probe := filepath.Join(b.dir, fmt.Sprintf(".fpm.write-probe-%d", os.Getpid()))
	require.NoError(t, os.WriteFile(probe, nil, 0o600), "left by a killed process of the same number")
	require.NoError(t, b.set.Prepare())
	require.NoError(t, b.set.Prepare())
	assert.Equal(t, 2, faults.lists)
	assert.Empty(t, b.files(), "the probe is gone")

	blocked := NewSet(Options{Path: filepath.Join(b.dir, "file", "fpm"), DirectoryMode: 0o755})
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, "file"), nil, 0o600))
	require.ErrorIs(t, blocked.Prepare(), syscall.ENOTDIR)
}

func TestDirectoryMode(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	require.NoError(t, NewSet(Options{Path: filepath.Join(dir, "fpm"), DirectoryMode: 0o700}).Prepare())
	info, err := os.Stat(dir)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

func TestPruneThatFails(t *testing.T) {
	b, faults := faultyBench(t, func(o *Options) { o.RollBytes, o.MaxSegments = 1, 2 })
	w := b.open("p")
	b.write(w, "1\n")
	b.write(w, "2\n")
	faults.remove = syscall.EACCES
	report := b.write(w, "3\n")
	assert.Equal(t, 1, report.Lines)
	require.Len(t, report.Troubles, 1)
	require.ErrorIs(t, report.Troubles[0], syscall.EACCES)
	faults.remove = nil
	assert.Equal(t, 2, b.write(w, "4\n").Pruned, "made up for at the next segment")
	assert.Equal(t, "3\n4\n", b.readAll())
	faults.remove = syscall.EACCES
	_, err := b.set.Retain(Retention{MaxTotalBytes: 1}, start)
	require.ErrorIs(t, err, syscall.EACCES)
	b.close(w)
}

func TestFinishTellsOfErrors(t *testing.T) {
	for name, fault := range map[string]func(*faultFS){
		"sync":  func(f *faultFS) { f.sync = syscall.EIO },
		"close": func(f *faultFS) { f.closing = syscall.EIO },
	} {
		t.Run(name, func(t *testing.T) {
			b, faults := faultyBench(t, nil)
			w := b.open("p")
			b.write(w, "row\n")
			fault(faults)
			report := w.Close()
			err := report.Closed[0].Finish()
			require.ErrorIs(t, err, syscall.EIO)
			assert.ErrorContains(t, err, "fpm.p.000000.jsonl.gz")
		})
	}
}

func TestSyncTimes(t *testing.T) {
	for _, test := range []struct {
		sync            Sync
		failsAt, finish bool
	}{{SyncNever, false, false}, {SyncRoll, false, true}, {SyncFlush, true, true}} {
		b, faults := faultyBench(t, func(o *Options) { o.Sync = test.sync })
		w := b.open("p")
		b.write(w, "first\n")
		faults.sync = syscall.EIO
		_, err := b.writeOnly(w, "second\n")
		assert.Equal(t, test.failsAt, err != nil)
		if !test.failsAt {
			err := w.Close().Closed[0].Finish()
			assert.Equal(t, test.finish, err != nil)
			continue
		}
		// What was not synced is written again, into a file that is not in doubt.
		faults.sync = nil
		b.write(w, "second\n")
		b.close(w)
		assert.Equal(t, "first\n", b.read("fpm.p.000000.jsonl.gz"))
		assert.Equal(t, "second\n", b.read("fpm.p.000001.jsonl.gz"))
	}
}

// writeOnly leaves closed segments unfinished.
func (b *bench) writeOnly(w *Writer, lines string) (Report, error) {
	return w.Write(b.compressor, []byte(lines), start)
}

func TestCompressorLetsGoOfALargeBuffer(t *testing.T) {
	c, err := NewCompressor(1)
	require.NoError(t, err)
	random := make([]byte, 4<<20)
	for i := range random {
		random[i] = byte(i * i >> 7 * 31)
	}
	_, err = c.member(append(random, []byte(strings.Repeat("x", 100))...))
	require.NoError(t, err)
	_, err = c.member([]byte("small\n"))
	require.NoError(t, err)
	assert.LessOrEqual(t, c.out.Cap(), keepBuffer)
	_, err = NewCompressor(10)
	require.Error(t, err)
}
