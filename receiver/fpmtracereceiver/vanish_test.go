// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFilesThatVanish: what was not read of them is counted, once.
func TestFilesThatVanish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.metrics = nil
		r.logs.answer = func(int) error { return errNotNow }
		for segment := range 3 {
			from := int64(segment) * 10
			r.append(r.path("p", segment), rows(from, from+5), rows(from+5, from+10))
		}
		r.start()
		r.settle()
		size := fileSize(t, r.path("p", 1))
		require.NoError(t, os.Remove(r.path("p", 0))) // is open
		require.NoError(t, os.Remove(r.path("p", 1)))
		r.logs.will(nil)
		time.Sleep(time.Minute)
		r.expect("p", append(span(0, 10), span(20, 30)...))
		assert.Equal(t, size, r.sum("skipped_bytes", "removed"))
		assert.Equal(t, int64(1), r.sum("files"))
		require.Len(t, r.messages("is gone before"), 1)
		r.stop()
	})
}

func fileSize(t testing.TB, path string) int64 {
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Size()
}

// TestDirectoryThatComesBack: a volume that is away for a while, and mounted
// again, holds the same files; nothing is read twice.
func TestDirectoryThatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		volume := filepath.Join(r.dir, "volume")
		r.cfg.Include = []string{filepath.Join(volume, "*.jsonl.gz")}
		require.NoError(t, os.Mkdir(volume, 0o755))
		path := filepath.Join(volume, "fpm.p.000000.jsonl.gz")
		r.append(path, rows(0, 5))
		r.start()
		r.settle()
		require.NoError(t, os.Rename(volume, volume+".away"))
		time.Sleep(forgetAfter / 2)
		assert.Zero(t, r.sum("files"))
		require.NoError(t, os.Rename(volume+".away", volume))
		r.append(path, rows(5, 8))
		r.settle()
		r.expect("p", span(0, 8))
		r.stop()
	})
}

// TestForgottenFile: after an hour a path is free for another file, and so is
// the memory.
func TestForgottenFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, withStorage)
		path := r.path("p", 0)
		r.append(path, rows(0, 5))
		r.start()
		r.settle()
		require.NoError(t, os.Rename(path, path+".away"))
		time.Sleep(forgetAfter + time.Minute)
		assert.Empty(t, r.core.reader.files)
		assert.Equal(t, []string{"files"}, storedKeys(t, r))
		require.NoError(t, os.Rename(path+".away", path))
		r.settle()
		r.expect("p", append(span(0, 5), span(0, 5)...))
		r.stop()
	})
}

// TestReplacedFile: another file under the same name is read from its
// beginning, be it longer or shorter; one that was cut back is not.
func TestReplacedFile(t *testing.T) {
	for _, test := range []struct {
		name    string
		replace func(r *rig, path string)
		want    []int64
	}{
		{"by a longer one", func(r *rig, path string) {
			require.NoError(r.t, os.Remove(path))
			r.append(path, rows(100, 120))
		}, append(span(0, 5), span(100, 120)...)},
		{"by a shorter one", func(r *rig, path string) {
			require.NoError(r.t, os.Remove(path))
			r.append(path, rows(100, 101))
		}, append(span(0, 5), 100)},
		{"by one renamed onto it", func(r *rig, path string) {
			r.append(path+".new", rows(100, 103))
			require.NoError(r.t, os.Rename(path+".new", path))
		}, append(span(0, 5), span(100, 103)...)},
		{"truncated and written anew", func(r *rig, path string) {
			require.NoError(r.t, os.Truncate(path, 0))
			r.append(path, rows(100, 102))
		}, append(span(0, 5), 100, 101)},
		{"truncated, later written anew", func(r *rig, path string) {
			require.NoError(r.t, os.Truncate(path, 0))
			r.settle()
			r.append(path, rows(100, 102))
		}, append(span(0, 5), 100, 101)},
		{"copied over itself", func(r *rig, path string) {
			content, err := os.ReadFile(path)
			require.NoError(r.t, err)
			require.NoError(r.t, os.Remove(path))
			r.appendBytes(path, content)
		}, span(0, 5)},
		{"cut back by its writer, who writes the rows again", func(r *rig, path string) {
			require.NoError(r.t, os.Truncate(path, int64(len(pack(r.t, rows(0, 4))))))
			r.settle()
			r.append(path, rows(4, 6))
		}, append(span(0, 5), 4, 5)},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, withStorage)
				path := r.path("p", 0)
				r.append(path, rows(0, 4), rows(4, 5))
				r.start()
				r.settle()
				test.replace(r, path)
				r.settle()
				r.expect("p", test.want)
				r.stop()

				again := rigIn(t, r.dir, withStorage).start()
				again.settle()
				assert.Zero(t, again.logs.total())
				again.stop()
			})
		})
	}
}

// TestReplacedWhileStopped: the same while nobody looks.
func TestReplacedWhileStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newRig(t, withStorage)
		path := first.path("p", 0)
		first.append(path, rows(0, 5))
		first.start()
		first.settle()
		first.stop()
		require.NoError(t, os.Remove(path))
		first.append(path, rows(100, 110))

		second := rigIn(t, first.dir, withStorage).start()
		second.settle()
		second.expect("p", span(100, 110))
		second.stop()
	})
}
