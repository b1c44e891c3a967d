// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"
)

func TestPatternBase(t *testing.T) {
	for text, base := range map[string]string{
		"/var/log/dynamo/fpm.*.jsonl.gz":    "/var/log/dynamo",
		"/var/log/*/fpm.*.jsonl.gz":         "/var/log",
		"/var/log/dynamo/fpm.jsonl.gz":      "/var/log/dynamo",
		"/var/log/node-?/[ab]/fpm.jsonl.gz": "/var/log",
		"*.jsonl.gz":                        ".",
		"traces/*.jsonl.gz":                 "traces",
		"/*":                                "/",
	} {
		assert.Equal(t, base, newPattern(text, false).base, text)
	}
}

// TestSymlinks: what a link leads to is read once, under its own name, and only
// inside of the directory, unless that is allowed.
func TestSymlinks(t *testing.T) {
	for _, test := range []struct {
		name   string
		lay    func(t *testing.T, in, out string)
		want   int // rows of p
		follow int // with follow_symlinks
	}{
		{"a link to a file that is matched too", func(t *testing.T, in, _ string) {
			require.NoError(t, os.Symlink("fpm.p.000000.jsonl.gz", filepath.Join(in, "latest.jsonl.gz")))
		}, 3, 3},
		{"an absolute link inside", func(t *testing.T, in, _ string) {
			require.NoError(t, os.Symlink(filepath.Join(in, "fpm.p.000000.jsonl.gz"), filepath.Join(in, "latest.jsonl.gz")))
		}, 3, 3},
		{"two links to a file that is not matched", func(t *testing.T, in, _ string) {
			require.NoError(t, os.Rename(filepath.Join(in, "fpm.p.000000.jsonl.gz"), filepath.Join(in, "hidden")))
			require.NoError(t, os.Symlink("hidden", filepath.Join(in, "a.jsonl.gz")))
			require.NoError(t, os.Symlink("hidden", filepath.Join(in, "b.jsonl.gz")))
		}, 3, 3},
		{"a link out of the directory", func(t *testing.T, in, out string) {
			require.NoError(t, os.Rename(filepath.Join(in, "fpm.p.000000.jsonl.gz"), filepath.Join(out, "x")))
			require.NoError(t, os.Symlink(filepath.Join(out, "x"), filepath.Join(in, "a.jsonl.gz")))
		}, 0, 3},
		{"a relative link out of the directory", func(t *testing.T, in, out string) {
			require.NoError(t, os.Rename(filepath.Join(in, "fpm.p.000000.jsonl.gz"), filepath.Join(out, "x")))
			require.NoError(t, os.Symlink("../out/x", filepath.Join(in, "a.jsonl.gz")))
		}, 0, 3},
		{"a link over a directory that leads out", func(t *testing.T, in, out string) {
			require.NoError(t, os.Rename(filepath.Join(in, "fpm.p.000000.jsonl.gz"), filepath.Join(out, "x")))
			require.NoError(t, os.Symlink("../out", filepath.Join(in, "d")))
			require.NoError(t, os.Symlink("d/x", filepath.Join(in, "a.jsonl.gz")))
		}, 0, 3},
		{"a link to nothing", func(t *testing.T, in, _ string) {
			require.NoError(t, os.Symlink("nothing", filepath.Join(in, "a.jsonl.gz")))
		}, 3, 3},
		{"a link to itself", func(t *testing.T, in, _ string) {
			require.NoError(t, os.Symlink("a.jsonl.gz", filepath.Join(in, "a.jsonl.gz")))
		}, 3, 3},
		{"a directory, a pipe and a socket's file", func(t *testing.T, in, _ string) {
			require.NoError(t, os.Mkdir(filepath.Join(in, "fpm.p.000001.jsonl.gz"), 0o755))
			require.NoError(t, syscall.Mkfifo(filepath.Join(in, "fpm.p.000002.jsonl.gz"), 0o644))
		}, 3, 3},
	} {
		for _, follow := range []bool{false, true} {
			name, want := test.name, test.want
			if follow {
				name, want = name+", followed", test.follow
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					top := t.TempDir()
					in, out := filepath.Join(top, "in"), filepath.Join(top, "out")
					require.NoError(t, os.Mkdir(in, 0o755))
					require.NoError(t, os.Mkdir(out, 0o755))
					r := rigIn(t, in, func(c *Config) { c.FollowSymlinks = follow })
					r.append(r.path("p", 0), rows(0, 3))
					test.lay(t, in, out)
					r.start()
					r.settle()
					time.Sleep(time.Minute) // what is refused is told once
					assert.Equal(t, want, r.logs.total())
					if want == 0 {
						require.Len(t, r.messages("Not a file that is read"), 1)
						assert.Equal(t, errLeadsOut.Error(), r.messages("Not a file that is read")[0].ContextMap()["error"])
					}
					r.stop()
				})
			})
		}
	}
}

// TestLinkThatMoves: a link to the latest segment brings nothing twice.
func TestLinkThatMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		latest := filepath.Join(r.dir, "latest.jsonl.gz")
		r.start()
		for i := range 4 {
			r.append(r.path("p", i), rows(int64(i)*5, int64(i)*5+5))
			_ = os.Remove(latest)
			require.NoError(t, os.Symlink(filepath.Base(r.path("p", i)), latest))
			r.settle()
		}
		r.expect("p", span(0, 20))
		r.stop()
	})
}

// TestLinkSwappedBehindTheScan: a file that becomes a link out of the directory
// after it was looked at is not opened.
func TestLinkSwappedBehindTheScan(t *testing.T) {
	top := t.TempDir()
	in := filepath.Join(top, "in")
	require.NoError(t, os.Mkdir(in, 0o755))
	secret := filepath.Join(top, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	path := filepath.Join(in, "a.jsonl.gz")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	matches, refused, err := newPattern(filepath.Join(in, "*"), false).find()
	require.NoError(t, err)
	require.Empty(t, refused)
	require.Len(t, matches, 1)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink(secret, path))
	_, err = openFile(matches[0].path, matches[0].base, false)
	require.ErrorIs(t, err, errLeadsOut)
	file, err := openFile(matches[0].path, matches[0].base, true)
	require.NoError(t, err)
	require.NoError(t, file.Close())
}

// TestPipeIsNotWaitedFor: opening a pipe would block until somebody writes.
func TestPipeIsNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.jsonl.gz")
	require.NoError(t, syscall.Mkfifo(path, 0o644))
	opened, err := openFile(path, dir, false)
	require.NoError(t, err)
	defer opened.Close()
	assert.ErrorIs(t, new(reader).recognise(new(file), opened), errNotRegular)
}

// TestTroubleIsAStatus: a directory that cannot be searched, until it can.
func TestTroubleIsAStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		path := filepath.Join(r.dir, "traces")
		r.cfg.Include = []string{filepath.Join(path, "*.jsonl.gz"), filepath.Join(r.dir, "none", "*.jsonl.gz")}
		require.NoError(t, os.WriteFile(path, nil, 0o600)) // no directory
		r.start()
		r.settle()
		recoverable, ok := componentstatus.StatusRecoverableError, componentstatus.StatusOK
		assert.Equal(t, []componentstatus.Status{recoverable, recoverable}, r.host.reported(), "one for each signal, and not again")
		require.Len(t, r.messages("cannot be looked for"), 1)
		fields := r.messages("cannot be looked for")[0].ContextMap()
		assert.Equal(t, r.cfg.Include[0], fields["include"])
		assert.Contains(t, fields["error"], path)

		require.NoError(t, os.Remove(path))
		r.settle()
		assert.Equal(t, []componentstatus.Status{recoverable, recoverable, ok, ok}, r.host.reported())
		require.NoError(t, os.Mkdir(path, 0o755))
		r.append(filepath.Join(path, "a.jsonl.gz"), rows(0, 3))
		r.settle()
		r.expect("p", span(0, 3))
		r.stop()
		assert.Len(t, r.host.reported(), 4)
	})
}

// TestUnreadableFile is tried again, does not hold up the others, and is a
// trouble of the status meanwhile.
func TestUnreadableFile(t *testing.T) {
	r := newRig(t, nil)
	r.append(r.path("p", 0), rows(0, 3))
	r.append(r.path("p", 1), rows(3, 6))
	r.start()
	r.halt()
	read := r.core.reader // is this goroutine's now
	poll := func() {
		read.scan(t.Context(), time.Now())
		for read.pass(t.Context()) {
		}
		require.True(t, read.flush(t.Context()))
	}
	poll()
	f := read.files[r.path("p", 0)]
	base := f.base
	f.base = filepath.Join(r.dir, "none") // stands for a disk that fails
	require.NoError(t, os.WriteFile(f.base, nil, 0o600))
	r.append(r.path("p", 0), rows(10, 13)) // somebody still writes the first one
	r.append(r.path("p", 1), rows(6, 9))
	poll()
	poll()
	r.expect("p", span(0, 9))
	require.Len(t, r.messages("cannot be read"), 1)
	assert.Len(t, read.status.troubles, 1)

	f.base = base
	poll()
	r.expect("p", append(span(0, 9), 10, 11, 12))
	assert.Empty(t, read.status.troubles)
	r.checkLedger()
}

// TestFileLimit: more files than can be followed are told of.
func TestFileLimit(t *testing.T) {
	r := newRig(t, nil).start()
	r.halt()
	read := r.core.reader
	for i := range maxFiles {
		read.files[r.path("x", i)] = &file{}
	}
	read.meet(map[string]match{r.path("p", 0): {path: r.path("p", 0)}})
	assert.Len(t, read.files, maxFiles)
	require.Len(t, r.messages("More files than can be followed"), 1)
	assert.Equal(t, int64(1), r.messages("More files than can be followed")[0].ContextMap()["not_read"])
}
