// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-fpm/otelcol-fpm/internal/observation"
)

func readme(t *testing.T) string {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(text)
}

// TestReadmeHasEveryKey holds the table of the README against the default configuration, both ways.
func TestReadmeHasEveryKey(t *testing.T) {
	conf := confmap.New()
	require.NoError(t, conf.Marshal(createDefaultConfig()))
	want := map[string]string{}
	for _, key := range conf.AllKeys() {
		want[strings.ReplaceAll(key, "::", ".")] = fmt.Sprint(conf.Get(key))
	}
	want["include.metrics"] = "[]"
	have := map[string]string{}
	_, table, found := strings.Cut(readme(t), "## Configuration")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1) {
		have[row[1]] = row[2]
	}
	want["series_ttl"] = strings.TrimSuffix(want["series_ttl"], "0s")
	require.Equal(t, want, have)
}

// TestReadmeHasEveryCounter looks for all names that internal telemetry can have.
func TestReadmeHasEveryCounter(t *testing.T) {
	text := readme(t)
	var names []string
	names = append(names, decisionNames[:]...)
	names = append(names, untrackedNames[:]...)
	for _, reason := range observation.Reasons() {
		names = append(names, string(reason))
	}
	for _, why := range observation.Restarts() {
		names = append(names, string(why))
	}
	for _, name := range names {
		require.Contains(t, text, "`"+name+"`")
	}
	generated, err := os.ReadFile("documentation.md")
	require.NoError(t, err)
	for _, metric := range regexp.MustCompile("(?m)^### (.*)$").FindAllStringSubmatch(string(generated), -1) {
		require.Contains(t, text, "`"+metric[1]+"`")
	}
}
