// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observability

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
)

var (
	promqlBlock = regexp.MustCompile("(?ms)^ *```promql\n(.*?)^ *```$")
	code        = regexp.MustCompile("`([^`]+)`")
)

var metricName = regexp.MustCompile(`\botelcol_(?:receiver|processor|exporter|process)_\w+|\bfpm_\w+_(?:total|seconds)\b`)

// documentedNames are the metrics that docs/ and the alerts mention, and where. An
// alert gives data with one of its metrics; each must be there.
func documentedNames(t *testing.T) map[string]string {
	t.Helper()
	names := map[string]string{}
	for _, page := range append(documents(t), filepath.Join(harness.Root(), rules)) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, name := range metricName.FindAllString(string(text), -1) {
			names[name] = filepath.Base(page)
		}
	}
	require.NotEmpty(t, names)
	return names
}

func documents(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(harness.Root(), "docs", "*.md"))
	require.NoError(t, err)
	return pages
}

// documentedQueries are the blocks of PromQL in docs/, one query a block, and
// what stands as code in the columns that tables call PromQL.
func documentedQueries(t *testing.T) (queries []query) {
	t.Helper()
	for _, page := range documents(t) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		name := filepath.Base(page)
		for _, match := range promqlBlock.FindAllStringSubmatch(string(text), -1) {
			queries = append(queries, query{name, match[1]})
		}
		column := -1
		for line := range strings.Lines(string(text)) {
			cells := strings.Split(strings.TrimSpace(line), " | ")
			switch {
			case !strings.HasPrefix(line, "|"):
				column = -1
			case column < 0:
				for i, cell := range cells {
					if strings.Trim(cell, "| ") == "PromQL" {
						column = i
					}
				}
			case column < len(cells):
				for _, match := range code.FindAllStringSubmatch(cells[column], -1) {
					queries = append(queries, query{name, match[1]})
				}
			}
		}
	}
	require.NotEmpty(t, queries)
	return queries
}
