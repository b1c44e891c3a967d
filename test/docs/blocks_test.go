// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package docs holds the documentation to its word: the built binary is run with
// every YAML block, and every command is run.
package docs

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
)

const healthGate = "--feature-gates=+extension.healthcheck.useComponentStatus"

// root is the folder of the module.
func root(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs("../..")
	require.NoError(t, err)
	return folder
}

// binary is the built distribution.
func binary(t *testing.T) string {
	t.Helper()
	path := os.Getenv("FPM_BIN")
	if path == "" {
		path = filepath.Join(root(t), "bin", "otelcol-fpm")
	}
	require.FileExists(t, path, "build it with `make build`")
	return path
}

// A block may be indented, as in a list.
var fence = regexp.MustCompile("(?ms)^ *```([a-z]*)\n(.*?)^ *```$")

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// blocks are the fenced blocks of a language in a Markdown file.
func blocks(t *testing.T, file, language string) []string {
	t.Helper()
	var found []string
	for _, match := range fence.FindAllStringSubmatch(read(t, file), -1) {
		if match[1] == language {
			found = append(found, match[2])
		}
	}
	return found
}

// documents are the Markdown files whose YAML is the Collector's.
func documents(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"README.md", "docs/*.md", "receiver/*/README.md", "processor/*/README.md", "exporter/*/README.md", "plugins/*/README.md"} {
		matches, err := filepath.Glob(filepath.Join(root(t), pattern))
		require.NoError(t, err)
		files = append(files, matches...)
	}
	require.NotEmpty(t, files)
	return files
}

// eachConfiguration runs a test for each YAML block that is, or shows a part of,
// the Collector's configuration.
func eachConfiguration(t *testing.T, test func(t *testing.T, block string)) {
	t.Helper()
	for _, file := range documents(t) {
		for i, block := range blocks(t, file, "yaml") {
			if !isConfiguration(t, block) {
				continue
			}
			name, err := filepath.Rel(root(t), file)
			require.NoError(t, err)
			t.Run(name+"#"+strconv.Itoa(i+1), func(t *testing.T) { test(t, block) })
		}
	}
}

func isConfiguration(t *testing.T, block string) bool {
	t.Helper()
	var keys map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(block), &keys), "the block is no YAML map:\n%s", block)
	return keys["receivers"] != nil || keys["processors"] != nil || keys["exporters"] != nil
}

func TestEveryYAMLBlockIsValid(t *testing.T) {
	eachConfiguration(t, func(t *testing.T, block string) {
		config := filepath.Join(t.TempDir(), "config.yaml")
		require.NoError(t, os.WriteFile(config, complete(t, block), 0o600))
		output, err := exec.CommandContext(t.Context(), binary(t), "validate", "--config", config, healthGate).CombinedOutput()
		assert.NoError(t, err, "%s\nof the block\n%s", output, block)
	})
}

// What is valid may still not start. Addresses and folders are others, so that
// nothing meets what runs elsewhere.
func TestEveryYAMLBlockRuns(t *testing.T) {
	binary(t)
	eachConfiguration(t, func(t *testing.T, block string) {
		switch {
		case strings.Contains(block, "k8s_observer"):
			t.Skip("needs an API server; test/pipelines and test/chart have one, and run the like")
		case strings.Contains(block, "exit_when_done"):
			t.Skip("ends by itself; receiver/fpmtracereceiver runs it into a Prometheus server")
		}
		t.Parallel()
		folder, err := os.MkdirTemp("", "fpm") //nolint:usetesting // short, for the paths of sockets
		require.NoError(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(folder) })
		config := address.ReplaceAllStringFunc(string(complete(t, block)), func(string) string { return harness.Address(t) })
		config = absolute.ReplaceAllStringFunc(config, func(path string) string {
			path = filepath.Join(folder, path)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			return path
		})
		collector := harness.StartCollector(t, harness.CollectorConfig{File: config, Dir: folder})
		time.Sleep(200 * time.Millisecond) // it minds signals right after it says that it is ready
		collector.Stop(t)
	})
}

var (
	address  = regexp.MustCompile(`\b(?:[0-9.]+|gateway\.example\.com|prometheus|backend):\d+\b`)
	absolute = regexp.MustCompile(`/(?:var|run|tmp)/[\w./*-]+`)
)

// complete makes a whole configuration of a block that shows a part of one: its
// components get a pipeline, with nop where a side is missing.
func complete(t *testing.T, block string) []byte {
	t.Helper()
	var config map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(block), &config), "the block is no YAML map:\n%s", block)
	if config["service"] != nil {
		return []byte(block)
	}
	pipeline := map[string]any{}
	for _, kind := range []string{"receivers", "processors", "exporters"} {
		var ids []string
		section, _ := config[kind].(map[string]any)
		for id := range section {
			ids = append(ids, id)
		}
		if len(ids) == 0 && kind != "processors" {
			stock := map[string]string{"receivers": "otlp", "exporters": "nop"}[kind]
			settings := map[string]any{}
			if kind == "receivers" {
				settings["protocols"] = map[string]any{"http": map[string]any{"endpoint": "127.0.0.1:0"}}
			}
			config[kind] = map[string]any{stock: settings}
			ids = []string{stock}
		}
		if len(ids) > 0 {
			pipeline[kind] = ids
		}
	}
	service := map[string]any{"pipelines": map[string]any{"metrics": pipeline}}
	if extensions, _ := config["extensions"].(map[string]any); len(extensions) > 0 {
		var ids []string
		for id := range extensions {
			ids = append(ids, id)
		}
		service["extensions"] = ids
	}
	config["service"] = service
	text, err := yaml.Marshal(config)
	require.NoError(t, err)
	return text
}

func TestREADMENamesWhatTheBinaryHas(t *testing.T) {
	output, err := exec.CommandContext(t.Context(), binary(t), "components").Output()
	require.NoError(t, err)
	var components map[string]any
	require.NoError(t, yaml.Unmarshal(output, &components))
	readme, err := os.ReadFile(filepath.Join(root(t), "README.md"))
	require.NoError(t, err)
	for _, kind := range []string{"receivers", "processors", "exporters", "connectors", "extensions"} {
		entries, _ := components[kind].([]any)
		require.NotEmpty(t, entries, kind)
		for _, entry := range entries {
			name := entry.(map[string]any)["name"].(string)
			assert.True(t, bytes.Contains(readme, []byte("`"+name+"`")), "README.md does not name %s of %s", name, kind)
		}
	}
	assert.Contains(t, string(readme), "about 137 MB")
}
