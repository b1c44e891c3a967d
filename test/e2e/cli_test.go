// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// healthGate is needed by configs that use health_check's http: form.
const healthGate = "--feature-gates=+extension.healthcheck.useComponentStatus"

func TestComponents(t *testing.T) {
	t.Parallel()
	out, err := cli(t, "components")
	require.NoError(t, err, out)
	type component struct {
		Name      string
		Stability map[string]string
	}
	var list struct{ Receivers, Processors, Exporters []component }
	require.NoError(t, yaml.Unmarshal([]byte(out), &list))
	stability := func(all []component, name string) map[string]string {
		for _, c := range all {
			if c.Name == name {
				for signal, level := range c.Stability {
					if level == "Undefined" {
						delete(c.Stability, signal)
					}
				}
				return c.Stability
			}
		}
		t.Errorf("no component %s:\n%s", name, out)
		return nil
	}
	alpha := func(signals ...string) map[string]string {
		levels := map[string]string{}
		for _, s := range signals {
			levels[s] = "Alpha"
		}
		return levels
	}
	levels := stability(list.Receivers, "fpm")
	assert.Equal(t, alpha("metrics", "logs"), only(levels, "metrics", "logs"))
	levels = stability(list.Processors, "gauge_dedup")
	assert.Equal(t, alpha("metrics"), only(levels, "metrics"))
	levels = stability(list.Exporters, "fpm_trace")
	assert.Equal(t, alpha("metrics", "logs"), only(levels, "metrics", "logs"))
}

func only(levels map[string]string, signals ...string) map[string]string {
	out := map[string]string{}
	for _, s := range signals {
		out[s] = levels[s]
	}
	return out
}

// configs are the shipped configurations.
func configs(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "config", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// sideEffects are system calls that validation must not make: sockets of the
// network, and files opened for writing or made.
var sideEffects = regexp.MustCompile(`(?m)^.*(socket\(AF_INET|socket\(AF_INET6|bind\(|connect\(|listen\(|openat?\(.*(O_WRONLY|O_RDWR|O_CREAT)|mkdir(at)?\(|unlink(at)?\(|rename(at2?)?\().*$`)

func TestShippedConfigsValidateWithoutSideEffects(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err == nil {
		err = exec.Command(strace, "-o", os.DevNull, "true").Run()
	}
	canTrace := err == nil
	for _, config := range configs(t) {
		t.Run(filepath.Base(config), func(t *testing.T) {
			t.Parallel()
			config, err := filepath.Abs(config)
			require.NoError(t, err)
			folder := t.TempDir()
			trace := filepath.Join(folder, "strace.log")
			args := []string{binary(t), "validate", healthGate, "--config", config}
			if canTrace {
				args = append([]string{strace, "-f", "-o", trace, "-e", "trace=network,file,desc"}, args...)
			}
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Dir = folder
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			left, err := os.ReadDir(folder)
			require.NoError(t, err)
			for _, entry := range left {
				assert.Equal(t, "strace.log", entry.Name(), "validate made something")
			}
			if !canTrace {
				t.Skip("strace cannot be used here: system calls were not checked")
			}
			calls, err := os.ReadFile(trace)
			require.NoError(t, err)
			require.Contains(t, string(calls), filepath.Base(config), "strace saw nothing")
			for _, call := range sideEffects.FindAllString(string(calls), -1) {
				if !strings.Contains(call, "/dev/null") {
					t.Errorf("validate: %s", call)
				}
			}
		})
	}
}

func TestUnknownKeyIsAnError(t *testing.T) {
	t.Parallel()
	for name, override := range map[string]string{
		"fpm":         "receivers: {fpm: {dp_sice: 2}}",
		"gauge_dedup": "processors: {gauge_dedup: {refresh: 1s}}",
		"fpm_trace":   "exporters: {fpm_trace: {rollbytes: 1}}",
	} {
		out, err := cli(t, "validate", healthGate, "--config", filepath.Join(root, "config", "quickstart.yaml"), "--config", "yaml:"+override)
		require.Error(t, err, name)
		key := regexp.MustCompile(`dp_sice|refresh|rollbytes`).FindString(override)
		assert.Contains(t, out, key, name)
		assert.NotContains(t, out, "panic")
	}
}
