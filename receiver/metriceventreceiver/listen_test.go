// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// socketPath is the path of a socket to be, in a directory of its own.
func socketPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "s")
}

func TestListenAtSocket(t *testing.T) {
	dead := func(t *testing.T, path string) {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
		require.NoError(t, err)
		l.SetUnlinkOnClose(false)
		require.NoError(t, l.Close())
	}
	tests := map[string]struct {
		before func(t *testing.T, path string)
		want   string // part of the error; %s is the path
	}{
		"nothing there":       {func(*testing.T, string) {}, ""},
		"a dead socket":       {dead, ""},
		"a live socket":       {func(t *testing.T, path string) { serve(t, path) }, "another process listens at the socket "},
		"a file":              {func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600)) }, " is no socket (mode -rw-------) and is left as it is"},
		"a directory":         {func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }, " is no socket (mode drwx------) and is left as it is"},
		"a link":              {func(t *testing.T, path string) { require.NoError(t, os.Symlink("elsewhere", path)) }, " is no socket (mode Lrwxrwxrwx) and is left as it is"},
		"no directory for it": {func(t *testing.T, path string) { require.NoError(t, os.Remove(filepath.Dir(path))) }, "bind: no such file or directory"},
		"a file for a directory": {func(t *testing.T, path string) {
			require.NoError(t, os.Remove(filepath.Dir(path)))
			require.NoError(t, os.WriteFile(filepath.Dir(path), nil, 0o600))
		}, "not a directory"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := socketPath(t)
			test.before(t, path)
			l, err := listen(t.Context(), address{"unix", path}, 0o640)
			if test.want != "" {
				require.ErrorContains(t, err, test.want)
				assert.Contains(t, err.Error(), "cannot listen at ipc://"+path+": ")
				if name == "a file" {
					assert.FileExists(t, path)
				}
				return
			}
			require.NoError(t, err)
			info, err := os.Stat(path)
			require.NoError(t, err)
			assert.Equal(t, fs.FileMode(0o640), info.Mode().Perm())
			conn, err := net.Dial("unix", path)
			require.NoError(t, err)
			conn.Close()
			require.NoError(t, l.Close())
			assert.NoFileExists(t, path, "the file goes with the listener")
		})
	}
}

func serve(t *testing.T, path string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
}

func TestListenAtPort(t *testing.T) {
	l, err := listen(t.Context(), address{"tcp", "127.0.0.1:0"}, 0)
	require.NoError(t, err)
	defer l.Close()
	taken := l.Addr().String()
	for bind, want := range map[string]string{
		taken:         "cannot listen at tcp://" + taken + ": bind: address already in use",
		"192.0.2.1:0": "cannot listen at tcp://192.0.2.1:0: bind: cannot assign requested address",
	} {
		_, err := listen(t.Context(), address{"tcp", bind}, 0)
		assert.ErrorContains(t, err, want)
	}
}
