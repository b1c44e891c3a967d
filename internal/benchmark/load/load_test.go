// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/benchmarktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFile(t *testing.T) {
	folder := t.TempDir()
	paths := benchmarktest.New(benchmarktest.Options{}).Write(t, folder)
	link := filepath.Join(folder, "link.json")
	require.NoError(t, os.Symlink(paths[0], link))
	for _, path := range append(paths, link) {
		a, info, err := File(path, DefaultMaxBytes)
		require.NoError(t, err)
		assert.Equal(t, path, a.File)
		stat, err := os.Stat(path)
		require.NoError(t, err)
		assert.True(t, os.SameFile(stat, info))
	}
}

func TestFileRefuses(t *testing.T) {
	folder := t.TempDir()
	path := func(name string) string { return filepath.Join(folder, name) }
	require.NoError(t, os.WriteFile(path("eleven"), []byte(`{"a": "bc"}`), 0o600))
	require.NoError(t, os.WriteFile(path("cut"), []byte(`{"a": "b`), 0o600))
	require.NoError(t, os.Mkdir(path("folder"), 0o700))
	require.NoError(t, syscall.Mkfifo(path("pipe"), 0o600))
	for _, test := range []struct {
		name, want string
	}{
		{"eleven", "size: file: got 11 bytes, want at most 10"},
		{"cut", "json: line 1, column 9: got the end of the file, want the end of a string"},
		{"folder", "unreadable: file: got d---------, want a regular file"},
		{"pipe", "unreadable: file: got p---------, want a regular file"},
	} {
		_, _, err := File(path(test.name), 10)
		require.EqualError(t, err, test.want)
		var wrong *benchmark.ReadError
		assert.True(t, errors.As(err, &wrong))
	}
	_, _, err := File(path("nothing"), 10)
	require.ErrorIs(t, err, fs.ErrNotExist)

	if os.Geteuid() != 0 {
		require.NoError(t, os.WriteFile(path("closed"), []byte(`{}`), 0))
		_, _, err = File(path("closed"), 10)
		assert.ErrorContains(t, err, "unreadable: file: got open")
	}
}

// A file beyond the limit costs nothing, however large it is.
func TestLargeFileIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.json")
	file, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, file.Truncate(1<<30))
	require.NoError(t, file.Close())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err = File(path, DefaultMaxBytes)
	runtime.ReadMemStats(&after)
	require.EqualError(t, err, "size: file: got 1073741824 bytes, want at most 268435456")
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

func TestSidecarPaths(t *testing.T) {
	for said, want := range map[string][]string{
		"":                  nil,
		"/tmp/probe.json":   {"/tmp/probe.json", "/mnt/runs/probe.json"},
		"/mnt/runs/p.json":  {"/mnt/runs/p.json"},
		"/mnt//runs/p.json": {"/mnt/runs/p.json"},
	} {
		text := `{"schema_version": 2, "artifact_type": "merged", "worker_probe_path": "` + said + `"}`
		a, err := benchmark.Read("/mnt/runs/merged.json", []byte(strings.TrimSpace(text)))
		require.NoError(t, err)
		assert.Equal(t, want, SidecarPaths(a), said)
	}
}
