// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package container

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStagesOfADockerfile(t *testing.T) {
	one := func(from string, instructions ...instruction) stage { return stage{from, instructions} }
	for name, test := range map[string]struct {
		text string
		want []stage
		err  string
	}{
		"two stages": {
			"# syntax=x\nFROM a AS x\nRUN y\n\nFROM scratch\n# c\nuser 1:1\n",
			[]stage{one("a AS x", instruction{"RUN", "y"}), one("scratch", instruction{"USER", "1:1"})},
			"",
		},
		"continuation lines": {"FROM scratch\nLABEL a=1 \\\n  # c\n  b=2\n", []stage{one("scratch", instruction{"LABEL", "a=1  b=2"})}, ""},
		"no argument":        {"FROM scratch\nCMD\n", nil, `"CMD" is no instruction`},
		"no stage":           {"RUN x\n", nil, `"RUN x" stands before any FROM`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := stages(test.text)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}

// What users and charts rely on.
func TestImageContract(t *testing.T) {
	image := Build(t)
	assert.Equal(t, "scratch", image.From)
	assert.Equal(t, []string{"/otelcol-fpm"}, image.Entrypoint, "the binary lies at the root under its own name")
	assert.Equal(t, 10001, image.UID)
	assert.Equal(t, 10001, image.GID)
	assert.Contains(t, image.Command, "--config=/etc/otelcol-fpm/config.yaml")
	assert.Subset(t, image.Ports, []int{13133, 9464, 8888})

	bundle, err := os.ReadFile(filepath.Join(image.Root, "etc/ssl/certs/ca-certificates.crt"))
	require.NoError(t, err)
	assert.Contains(t, string(bundle), "BEGIN CERTIFICATE")
	shipped, err := os.ReadFile(filepath.Join(Repository(), "distribution", "config.yaml"))
	require.NoError(t, err)
	inside, err := os.ReadFile(filepath.Join(image.Root, "etc/otelcol-fpm/config.yaml"))
	require.NoError(t, err)
	assert.Equal(t, string(shipped), string(inside))

	info, err := os.Stat(filepath.Join(image.Root, "var/lib/otelcol-fpm"))
	require.NoError(t, err)
	assert.Equal(t, uint32(10001), info.Sys().(*syscall.Stat_t).Uid, "traces must be writable without a volume")
}

// The image builds the binary with the flags that make it reproducible.
func TestDockerfileBuildsAsTheMakefile(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile(filepath.Join(Repository(), path))
		require.NoError(t, err)
		return string(text)
	}
	const flags = "-trimpath -buildvcs=false -ldflags='-s -w'"
	for _, file := range []string{"distribution/Dockerfile", "distribution/scripts/dist.sh", "scripts/build-distribution.sh"} {
		assert.Contains(t, read(file), flags, file)
		assert.Contains(t, read(file), "CGO_ENABLED=0", file)
	}
	ignored := strings.Split(read("distribution/Dockerfile.dockerignore"), "\n")
	for _, path := range []string{"distribution/config.yaml", "LICENSE", "distribution/otelcol-fpm/main.go", "go.mod"} {
		assert.FileExists(t, filepath.Join(Repository(), path))
		assert.False(t, slices.Contains(ignored, path))
	}
}

// `docker run` with nothing else: the health page answers and an absent engine
// is no reason to say otherwise.
func TestImageRunsWithoutArguments(t *testing.T) {
	image := Build(t)
	address := Address()
	c := image.Start(t, Spec{Environment: []string{"LISTEN_ADDRESS=" + address, "DYN_FPM_TRACE=1"}})
	assert.Contains(t, c.Get(t, "http://"+address+":13133/status"), `"healthy":true`)
	c.Get(t, "http://"+address+":9464/metrics")
	c.Wait(t, "http://"+address+":8888/metrics", "otelcol_process_uptime")
	c.Stop(t)
}

func TestImageAnswersItsCommands(t *testing.T) {
	image := Build(t)
	for _, command := range [][]string{
		{"--version"},
		{"components"},
		{"validate", "--config=/etc/otelcol-fpm/config.yaml", "--feature-gates=+extension.healthcheck.useComponentStatus"},
	} {
		output, err := image.Run(t, Spec{Arguments: command, ReadOnly: true})
		assert.NoError(t, err, "%v: %s", command, output)
	}
}

// The image's user may write its data folder and nothing else.
func TestImageIsNotWritable(t *testing.T) {
	image := Build(t)
	require.NoError(t, filepath.WalkDir(image.Root, func(path string, d os.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		inside := strings.TrimPrefix(path, image.Root)
		if inside != "" && inside != "/var/lib/otelcol-fpm" {
			assert.Equal(t, uint32(0), info.Sys().(*syscall.Stat_t).Uid, inside)
			assert.Zero(t, info.Mode().Perm()&0o022, inside)
		}
		return nil
	}))
}
