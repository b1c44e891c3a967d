// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/chart/container"
)

func packaged(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(container.Repository(), "distribution", "packages", name)
}

// systemd takes every line of the unit, and finds little to complain about.
func TestUnit(t *testing.T) {
	program(t, "systemd-analyze")
	text, err := os.ReadFile(packaged(t, "otelcol-fpm.service"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "ExecStart=/usr/bin/otelcol-fpm ")
	unit := filepath.Join(t.TempDir(), "otelcol-fpm.service")
	installed := strings.Replace(string(text), "/usr/bin/otelcol-fpm", container.Binary(t, "otelcol-fpm"), 1)
	require.NoError(t, os.WriteFile(unit, []byte(installed), 0o600))

	output := run(t, exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", unit))
	for _, line := range strings.Split(output, "\n") {
		assert.NotContains(t, line, "otelcol-fpm.service", "systemd complains")
	}
	// Tenths of the exposure level: 0 is sealed, 100 is open.
	run(t, exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=true", "--threshold=20", unit))
}

// What the unit's environment file starts is what the shipped configuration needs.
func TestEnvironmentFileStartsTheShippedConfiguration(t *testing.T) {
	text, err := os.ReadFile(packaged(t, "otelcol-fpm.env"))
	require.NoError(t, err)
	var options []string
	variables := map[string]string{}
	for _, line := range strings.Split(string(text), "\n") {
		if name, value, ok := strings.Cut(strings.TrimPrefix(line, "#"), "="); ok && !strings.Contains(name, " ") {
			variables[name] = strings.Trim(value, `"`)
		}
		if value, ok := strings.CutPrefix(line, "OTELCOL_OPTIONS="); ok {
			options = strings.Fields(strings.Trim(value, `"`))
		}
	}
	require.NotEmpty(t, options)
	config, err := os.ReadFile(filepath.Join(container.Repository(), "distribution", "config.yaml"))
	require.NoError(t, err)
	for name, value := range variables {
		switch name {
		case "OTELCOL_OPTIONS":
		case "DYN_FPM_TRACE", "DYN_FPM_MODE":
			assert.Contains(t, string(config), "${env:"+name+":-")
		default:
			assert.Contains(t, string(config), "${env:"+name+":-"+value+"}", "the default that the file tells")
		}
	}
	image := container.Build(t)
	address := container.Address()
	c := image.Start(t, container.Spec{
		Arguments:   options,
		Environment: []string{"LISTEN_ADDRESS=" + address, "DYN_FPM_TRACE=1"},
		Volumes:     []string{"/var/lib/otelcol-fpm"},
		ReadOnly:    true,
	})
	assert.Contains(t, c.Get(t, "http://"+address+":13133/status"), `"healthy":true`)
	c.Stop(t)
}

// The scripts of both packages tell an installation, an upgrade and a removal
// apart. deb and rpm say it with arguments of their own.
func TestScripts(t *testing.T) {
	program(t, "unshare")
	if out, err := exec.Command("unshare", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("cannot pretend that systemd runs: %v %s", err, out)
	}
	install := []string{"systemd-sysusers /usr/lib/sysusers.d/otelcol-fpm.conf", "systemctl daemon-reload", "systemctl enable --now otelcol-fpm.service"}
	upgrade := []string{"systemd-sysusers /usr/lib/sysusers.d/otelcol-fpm.conf", "systemctl daemon-reload", "systemctl try-restart otelcol-fpm.service"}
	remove := []string{"systemctl disable --now otelcol-fpm.service"}
	for name, test := range map[string]struct {
		script    string
		arguments []string
		without   bool // systemd
		want      []string
	}{
		"deb installs":               {"postinstall.sh", []string{"configure", ""}, false, install},
		"deb upgrades":               {"postinstall.sh", []string{"configure", "0.0.9-1"}, false, upgrade},
		"rpm installs":               {"postinstall.sh", []string{"1"}, false, install},
		"rpm upgrades":               {"postinstall.sh", []string{"2"}, false, upgrade},
		"an image installs":          {"postinstall.sh", []string{"configure", ""}, true, install[:1]},
		"deb removes":                {"preremove.sh", []string{"remove"}, false, remove},
		"deb upgrades, old package":  {"preremove.sh", []string{"upgrade", "1.0-1"}, false, nil},
		"rpm removes":                {"preremove.sh", []string{"0"}, false, remove},
		"rpm upgrades, old package":  {"preremove.sh", []string{"1"}, false, nil},
		"an image removes":           {"preremove.sh", []string{"remove"}, true, nil},
		"after a removal":            {"postremove.sh", []string{"remove"}, false, []string{"systemctl daemon-reload"}},
		"after a removal, in images": {"postremove.sh", []string{"remove"}, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for _, command := range []string{"systemctl", "systemd-sysusers"} {
				text := "#!/bin/sh\necho " + command + " \"$@\" >>" + folder + "/calls\n"
				require.NoError(t, os.WriteFile(filepath.Join(folder, command), []byte(text), 0o700))
			}
			prepare := "mount -t tmpfs none /run; mkdir -p /run/systemd/system; "
			if test.without {
				prepare = "mount -t tmpfs none /run; "
			}
			words := append([]string{"--mount", "sh", "-c", prepare + `exec sh "$@"`, "sh", packaged(t, test.script)}, test.arguments...)
			command := exec.CommandContext(t.Context(), "unshare", words...)
			command.Env = []string{"PATH=" + folder + ":/usr/sbin:/usr/bin:/sbin:/bin"}
			run(t, command)
			calls, _ := os.ReadFile(filepath.Join(folder, "calls"))
			var got []string
			if text := strings.TrimSpace(string(calls)); text != "" {
				got = strings.Split(text, "\n")
			}
			assert.Equal(t, test.want, got)
		})
	}
}
