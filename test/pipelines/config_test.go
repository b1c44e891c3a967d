// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
)

// elsewhere are the files of config/ that other packages run.
var elsewhere = map[string]string{
	"quickstart.yaml": "test/e2e",
}

// TestMain fails when a whole run of the package has left a file of config/
// out.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	whole := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" &&
		flag.Lookup("test.list").Value.String() == "" && !testing.Short()
	if code == 0 && whole && os.Getenv("CI") == "true" {
		code = everyFileWasRun()
	}
	os.Exit(code)
}

func everyFileWasRun() int {
	files, _ := filepath.Glob(harness.Config("*.yaml"))
	for _, file := range files {
		name := filepath.Base(file)
		if elsewhere[name] == "" && !harness.Started(name) {
			fmt.Fprintf(os.Stderr, "no test has run config/%s\n", name)
			return 1
		}
	}
	return 0
}

// A newcomer reads the first lines of a file and knows whether it is his.
func TestEveryFileSaysWhoNeedsIt(t *testing.T) {
	for name, text := range files(t) {
		var header []string
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "#") {
				break
			}
			header = append(header, line)
		}
		said := strings.Join(header, "")
		for _, opener := range []string{"# Who needs it: ", "# What it does: ", "# What to change: "} {
			_, rest, found := strings.Cut(said, opener)
			assert.True(t, found, "config/%s does not say, in this order, %q", name, opener)
			said = rest
		}
	}
}

// An engine without requests for an hour keeps its totals on the page.
func TestPagesOutliveAnIdleHour(t *testing.T) {
	pages := 0
	for name, text := range files(t) {
		var config struct {
			Exporters map[string]struct {
				MetricExpiration string `yaml:"metric_expiration"`
			} `yaml:"exporters"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(text), &config), name)
		if exporter, found := config.Exporters["prometheus"]; found {
			pages++
			expiration, err := time.ParseDuration(exporter.MetricExpiration)
			require.NoError(t, err, "metric_expiration in config/%s", name)
			assert.Greater(t, expiration, time.Hour, "metric_expiration in config/%s", name)
		}
	}
	assert.Positive(t, pages)
}

// Who starts a file for the first time meets no warning of a setting that will
// mean something else one day.
func TestFilesStartWithoutAWarning(t *testing.T) {
	loopback := regexp.MustCompile(`127\.0\.0\.1:\d+`)
	for name, text := range files(t) {
		if name == "kubernetes-node-agent.yaml" || name == "clickhouse.yaml" {
			continue // do not start without their servers
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			collector := harness.StartCollector(t, harness.CollectorConfig{
				File: loopback.ReplaceAllStringFunc(text, func(string) string { return harness.Address(t) }),
			})
			time.Sleep(200 * time.Millisecond) // it minds signals right after it says that it is ready
			for line := range strings.Lines(collector.Log()) {
				if !strings.Contains(line, "grpc_log") { // the gateway is away
					assert.NotContains(t, line, "\twarn\t")
				}
			}
			collector.Stop(t)
		})
	}
}

// files are the texts of config/, by name.
func files(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(harness.Config("*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	texts := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		texts[filepath.Base(path)] = string(text)
	}
	return texts
}
