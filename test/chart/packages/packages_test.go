// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package packages opens what distribution/scripts packs: the archive, deb, rpm and
// bill of materials of a binary, and the archive of the chart. The simulated engine
// stands in for the Collector where its size does not matter; with FPM_TEST_LONG
// the whole of a release is built twice, from two places, and compared.
package packages

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/chart/container"
)

// epoch is the time that the tests give to every file.
const epoch = "1700000000"

func script(name string) string {
	return filepath.Join(container.Repository(), "distribution", "scripts", name)
}

// tools skips a test whose tools make chart and make dist have not built: to build
// them takes minutes. In continuous integration it fails.
func tools(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if found, _ := filepath.Glob(filepath.Join(container.Repository(), ".tools", name+"-v*")); len(found) == 0 {
			say := t.Skipf
			if os.Getenv("CI") == "true" {
				say = t.Fatalf
			}
			say("there is no %s: run distribution/scripts/tool.sh %s", name, name)
		}
	}
}

// program skips a test for which the machine lacks a program.
func program(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("there is no %s on this machine", name)
	}
}

func run(t *testing.T, command *exec.Cmd) string {
	t.Helper()
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s: %s", command, out)
	return string(out)
}

// pack packs the simulated engine as if it were the Collector. The shell commands
// before are the caller's, like a umask.
func pack(t *testing.T, before ...string) (output string) {
	t.Helper()
	tools(t, "nfpm", "cyclonedx-gomod")
	output = t.TempDir()
	words := append(before, `exec "$@"`)
	command := exec.CommandContext(t.Context(), "sh", "-c", strings.Join(words, "; "), "sh",
		script("package.sh"), container.Binary(t, "fpmsim"), "1.2.3", runtime.GOARCH, output)
	command.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+epoch)
	run(t, command)
	return output
}

func one(t *testing.T, folder, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, pattern))
	require.NoError(t, err)
	require.Len(t, found, 1, pattern)
	return found[0]
}

// sums are the hashes of the files in a folder, by name.
func sums(t *testing.T, folder string) map[string][32]byte {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	found := map[string][32]byte{}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		require.NoError(t, err)
		found[entry.Name()] = sha256.Sum256(text)
	}
	return found
}

func TestPackingTwiceGivesTheSameBytes(t *testing.T) {
	first := sums(t, pack(t))
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("TZ", "Asia/Tokyo")
	t.Setenv("LC_ALL", "C.UTF-8")
	second := sums(t, pack(t, "umask 0077"))
	assert.Len(t, first, 4)
	assert.Equal(t, first, second)
}

// listed reads a .tar.gz.
func listed(t *testing.T, path string) map[string]*tar.Header {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	found := map[string]*tar.Header{}
	for archive := tar.NewReader(z); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return found
		}
		require.NoError(t, err)
		found[header.Name] = header
	}
}

func TestArchiveOfABinary(t *testing.T) {
	headers := listed(t, one(t, pack(t), "*.tar.gz"))
	folder := "otelcol-fpm_1.2.3_linux_" + runtime.GOARCH + "/"
	for name, mode := range map[string]int64{"otelcol-fpm": 0o755, "LICENSE": 0o644, "README.md": 0o644, "config/quickstart.yaml": 0o644} {
		if assert.Contains(t, headers, folder+name) {
			assert.Equal(t, mode, headers[folder+name].Mode, name)
		}
	}
	for name, header := range headers {
		assert.True(t, strings.HasPrefix(name, folder), "%s lies outside of the folder", name)
		assert.Equal(t, int64(1700000000), header.ModTime.Unix(), name)
		assert.Zero(t, header.Uid+header.Gid, name)
	}
}

// files is what both packages bring, with the mode of each.
var files = map[string]os.FileMode{
	"usr/bin/otelcol-fpm":                              0o755,
	"etc/otelcol-fpm/config.yaml":                      0o644,
	"etc/otelcol-fpm/otelcol-fpm.env":                  0o600,
	"usr/lib/systemd/system/otelcol-fpm.service":       0o644,
	"usr/lib/sysusers.d/otelcol-fpm.conf":              0o644,
	"usr/share/doc/otelcol-fpm/copyright":              0o644,
	"usr/share/doc/otelcol-fpm/README.md":              0o644,
	"usr/share/doc/otelcol-fpm/config/gateway.yaml":    0o644,
	"usr/share/doc/otelcol-fpm/config/quickstart.yaml": 0o644,
}

func TestDeb(t *testing.T) {
	program(t, "dpkg-deb")
	deb := one(t, pack(t), "*.deb")
	assert.Equal(t, "otelcol-fpm_1.2.3-1_"+runtime.GOARCH+".deb", filepath.Base(deb))
	root := t.TempDir()
	run(t, exec.CommandContext(t.Context(), "dpkg-deb", "-x", deb, root))
	for name, mode := range files {
		info, err := os.Stat(filepath.Join(root, name))
		require.NoError(t, err)
		assert.Equal(t, mode, info.Mode().Perm(), name)
	}
	control := t.TempDir()
	run(t, exec.CommandContext(t.Context(), "dpkg-deb", "-e", deb, control))
	conffiles, err := os.ReadFile(filepath.Join(control, "conffiles"))
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"/etc/otelcol-fpm/config.yaml", "/etc/otelcol-fpm/otelcol-fpm.env"}, strings.Fields(string(conffiles)),
		"what users change survives an upgrade")
	for _, name := range []string{"postinst", "prerm", "postrm"} {
		assert.FileExists(t, filepath.Join(control, name))
	}
}

func TestRPM(t *testing.T) {
	program(t, "rpm")
	rpm := one(t, pack(t), "*.rpm")
	listing := run(t, exec.CommandContext(t.Context(), "rpm", "--query", "--package", "--dump", rpm))
	found := map[string][]string{}
	for _, line := range strings.Split(strings.TrimSpace(listing), "\n") {
		fields := strings.Fields(line)
		found[strings.TrimPrefix(fields[0], "/")] = fields
	}
	for name, mode := range files {
		fields, ok := found[name]
		if !assert.True(t, ok, name) {
			continue
		}
		assert.Equal(t, epoch, fields[2], name)
		assert.Equal(t, "0100"+octal(mode), fields[4], name)
		assert.Equal(t, []string{"root", "root"}, fields[5:7], name)
		assert.Equal(t, strings.HasPrefix(name, "etc/"), fields[7] == "1", "%s is a configuration file or not", name)
	}
	scripts := run(t, exec.CommandContext(t.Context(), "rpm", "--query", "--package", "--scripts", rpm))
	for _, name := range []string{"postinstall", "preuninstall", "postuninstall"} {
		assert.Contains(t, scripts, name)
	}
}

func octal(mode os.FileMode) string {
	return string([]byte{'0' + byte(mode>>6&7), '0' + byte(mode>>3&7), '0' + byte(mode&7)})
}

// The bill of materials names every module of the binary, and no time or chance.
func TestBillOfMaterials(t *testing.T) {
	text, err := os.ReadFile(one(t, pack(t), "*.cdx.json"))
	require.NoError(t, err)
	var bill struct {
		BOMFormat    string `json:"bomFormat"`
		SerialNumber string `json:"serialNumber"`
		Metadata     struct {
			Timestamp string
			Component struct{ Name, Version string }
		}
		Components []struct{ Name, Version string }
	}
	require.NoError(t, json.Unmarshal(text, &bill))
	assert.Equal(t, "CycloneDX", bill.BOMFormat)
	assert.Empty(t, bill.SerialNumber)
	assert.Empty(t, bill.Metadata.Timestamp)
	assert.Equal(t, "v1.2.3", bill.Metadata.Component.Version)
	named := map[string]bool{}
	for _, c := range bill.Components {
		named[c.Name+" "+c.Version] = true
	}
	modules := run(t, exec.CommandContext(t.Context(), "go", "version", "-m", container.Binary(t, "fpmsim")))
	count := 0
	for _, line := range strings.Split(modules, "\n") {
		if fields := strings.Fields(line); len(fields) >= 3 && fields[0] == "dep" {
			count++
			assert.True(t, named[fields[1]+" "+fields[2]], "%s %s", fields[1], fields[2])
		}
	}
	assert.Positive(t, count)
}

// The chart's archive renders as its folder does, and leaves out what only the
// checkout needs.
func TestChartArchive(t *testing.T) {
	tools(t, "helm")
	packChart := func() string {
		output := t.TempDir()
		command := exec.CommandContext(t.Context(), script("package-chart.sh"), output)
		command.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+epoch)
		run(t, command)
		return output
	}
	first := packChart()
	time.Sleep(1100 * time.Millisecond) // an archive knows whole seconds
	assert.Equal(t, sums(t, first), sums(t, packChart()))

	archive := one(t, first, "*.tgz")
	names := slices.Collect(maps.Keys(listed(t, archive)))
	assert.Contains(t, names, "otelcol-fpm/Chart.yaml")
	assert.Contains(t, names, "otelcol-fpm/values.schema.json")
	for _, name := range names {
		assert.NotContains(t, name, "/ci/")
		assert.NotContains(t, name, "/examples/")
	}
	helm := strings.TrimSpace(run(t, exec.CommandContext(t.Context(), script("tool.sh"), "helm")))
	render := func(chart string) string {
		return run(t, exec.CommandContext(t.Context(), helm, "template", "demo", chart, "--kube-version", "1.33.0"))
	}
	assert.Equal(t, render(filepath.Join(container.Repository(), "distribution", "helm", "otelcol-fpm")), render(archive))
}
