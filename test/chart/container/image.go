// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package container runs the built Collector as a container runtime would, for
// tests on machines that have none.
//
// Build follows the last stage of distribution/Dockerfile: it lays the files that
// the stage copies into a folder, with their owners, and takes entry point,
// command, environment and user. What an earlier stage makes is taken from where
// it is already: the binary from FPM_BIN (bin/otelcol-fpm by default), the CA
// bundle from this machine. Start then runs the entry point with that folder as
// its root, that user, /proc, and the volumes of the test, so a file that the image
// lacks is lacking here too, and one that it must not write cannot be written. That
// needs root and mounts; where they are not to be had the test is skipped, in
// continuous integration (CI=true) it fails.
package container

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Image is a root file system and how to run it.
type Image struct {
	Root        string
	From        string
	Entrypoint  []string
	Command     []string
	Environment []string
	UID, GID    int
	Ports       []int
}

// Repository is the root of the checkout.
func Repository() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}

// Binary is the built Collector, or with the name of another command that one
// beside it. Without it the test fails.
func Binary(tb testing.TB, name string) string {
	tb.Helper()
	path := os.Getenv("FPM_BIN")
	if path == "" {
		path = filepath.Join(Repository(), "bin", "otelcol-fpm")
	}
	path = filepath.Join(filepath.Dir(path), name)
	require.FileExists(tb, path, "run `make build`, or set FPM_BIN")
	return path
}

// Build makes the image that distribution/Dockerfile describes.
func Build(tb testing.TB) *Image {
	tb.Helper()
	if out, err := exec.Command("unshare", "--mount", "mount", "-t", "tmpfs", "none", os.TempDir()).CombinedOutput(); err != nil {
		say := tb.Skipf
		if os.Getenv("CI") == "true" {
			say = tb.Fatalf
		}
		say("cannot mount, so cannot run the Collector in a root file system of its own: %v %s", err, out)
	}
	all := dockerfile(tb)
	last := all[len(all)-1]
	image := &Image{Root: tb.TempDir(), From: last.from}
	for _, i := range last.instructions {
		image.apply(tb, i)
	}
	return image
}

// BuildCommands are the shell commands of the stages before the last, which make
// what the image is made of.
func BuildCommands(tb testing.TB) []string {
	tb.Helper()
	all := dockerfile(tb)
	var commands []string
	for _, s := range all[:len(all)-1] {
		for _, i := range s.instructions {
			if i.word == "RUN" {
				commands = append(commands, mount.ReplaceAllString(i.rest, ""))
			}
		}
	}
	return commands
}

// mount is a flag of RUN that only a build engine understands.
var mount = regexp.MustCompile(`--mount=\S+\s+`)

func dockerfile(tb testing.TB) []stage {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(Repository(), "distribution", "Dockerfile"))
	require.NoError(tb, err)
	all, err := stages(string(text))
	require.NoError(tb, err)
	return all
}

func (i *Image) apply(tb testing.TB, in instruction) {
	tb.Helper()
	switch in.word {
	case "LABEL":
	case "COPY":
		c, err := parseCopy(in.rest)
		require.NoError(tb, err)
		i.copy(tb, c)
	case "ENV":
		i.Environment = append(i.Environment, in.rest)
	case "USER":
		i.UID, i.GID = owner(tb, in.rest)
	case "EXPOSE":
		for _, word := range strings.Fields(in.rest) {
			port, err := strconv.Atoi(word)
			require.NoError(tb, err)
			i.Ports = append(i.Ports, port)
		}
	case "ENTRYPOINT":
		words, err := execForm(in.rest)
		require.NoError(tb, err)
		i.Entrypoint = words
	case "CMD":
		words, err := execForm(in.rest)
		require.NoError(tb, err)
		i.Command = words
	default:
		tb.Fatalf("the last stage of the Dockerfile has %s, which a scratch image cannot run", in.word)
	}
}

func (i *Image) copy(tb testing.TB, c copied) {
	tb.Helper()
	uid, gid := 0, 0
	if c.owner != "" {
		uid, gid = owner(tb, c.owner)
	}
	target := filepath.Join(i.Root, c.target)
	require.NoError(tb, os.MkdirAll(filepath.Dir(target), 0o755))
	source := filepath.Join(Repository(), c.source)
	switch {
	case c.stage != "" && c.source == "/out/data":
		require.NoError(tb, os.Mkdir(target, 0o755))
		require.NoError(tb, os.Chown(target, uid, gid))
		return
	case c.stage != "" && c.source == "/out/otelcol-fpm":
		source = Binary(tb, "otelcol-fpm")
	case c.stage != "":
		source = c.source
	}
	info, err := os.Stat(source)
	require.NoError(tb, err)
	contents, err := os.ReadFile(source)
	require.NoError(tb, err)
	require.NoError(tb, os.WriteFile(target, contents, info.Mode().Perm()))
	require.NoError(tb, os.Chown(target, uid, gid))
}

func owner(tb testing.TB, text string) (uid, gid int) {
	tb.Helper()
	user, group, ok := strings.Cut(text, ":")
	require.True(tb, ok, "%s must be numeric user:group", text)
	uid, err := strconv.Atoi(user)
	require.NoError(tb, err)
	gid, err = strconv.Atoi(group)
	require.NoError(tb, err)
	return uid, gid
}
