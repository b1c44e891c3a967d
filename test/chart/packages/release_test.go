// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/chart/container"
)

// A release built here and one built elsewhere, with nothing compiled before, are
// the same files, and the image's binary is the release's. Takes as long as compiling
// the distribution twice.
func TestReleaseIsReproducible(t *testing.T) {
	if os.Getenv("FPM_TEST_LONG") != "1" {
		t.Skip("compiles the distribution twice: set FPM_TEST_LONG=1")
	}
	here, elsewhere := t.TempDir(), t.TempDir()
	release := func(repository, output string, environment ...string) {
		command := exec.CommandContext(t.Context(), filepath.Join(repository, "distribution", "scripts", "dist.sh"), output)
		command.Env = append(append(os.Environ(), "SOURCE_DATE_EPOCH="+epoch, "ARCHITECTURES="+runtime.GOARCH), environment...)
		run(t, command)
	}
	release(container.Repository(), here)
	checkout, cache := copied(t), t.TempDir()
	release(checkout, elsewhere, "GOCACHE="+cache, "GOFLAGS=-buildvcs=false", "TZ=Asia/Tokyo")
	first := sums(t, here)
	assert.Equal(t, first, sums(t, elsewhere))
	assert.Len(t, first, 7, "binary, archive, deb, rpm, bill of materials, chart, checksums")
	run(t, verify(here))

	out := t.TempDir()
	for _, text := range container.BuildCommands(t) {
		command := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(text, "/out", out))
		command.Dir = checkout
		command.Env = append(os.Environ(), "GOCACHE="+cache, "TARGETOS=linux", "TARGETARCH="+runtime.GOARCH)
		run(t, command)
	}
	built, err := os.ReadFile(filepath.Join(out, "otelcol-fpm"))
	require.NoError(t, err)
	released, err := os.ReadFile(one(t, here, "*_"+runtime.GOARCH))
	require.NoError(t, err)
	assert.True(t, bytes.Equal(built, released), "the image has another binary than the release")
}

func verify(folder string) *exec.Cmd {
	command := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	command.Dir = folder
	return command
}

// copied is a copy of the checkout's files at another path, without its history.
func copied(t *testing.T) string {
	t.Helper()
	repository, target := container.Repository(), filepath.Join(t.TempDir(), "elsewhere")
	list := exec.CommandContext(t.Context(), "git", "-C", repository, "ls-files", "-co", "--exclude-standard", "-z")
	out, err := list.Output()
	require.NoError(t, err)
	for _, name := range strings.Split(strings.Trim(string(out), "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join(repository, name))
		if os.IsNotExist(err) {
			continue // deleted and not yet committed
		}
		require.NoError(t, err)
		text, err := os.ReadFile(filepath.Join(repository, name))
		require.NoError(t, err)
		path := filepath.Join(target, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, text, info.Mode().Perm()))
	}
	require.NoError(t, os.Symlink(filepath.Join(repository, ".tools"), filepath.Join(target, ".tools")))
	return target
}
