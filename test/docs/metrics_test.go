// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

var update = flag.Bool("update", false, "write what is generated in docs/")

// docs/metrics.md has the table of metrics that the code has.
func TestMetricsPage(t *testing.T) {
	const begin, end = "<!-- metrics table, generated: begin -->\n", "<!-- metrics table, generated: end -->"
	page := filepath.Join(root(t), "docs", "metrics.md")
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found)
	table, after, found := strings.Cut(rest, end)
	require.True(t, found)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+begin+fpm.MetricsTable()+end+after), 0o600))
		return
	}
	assert.Equal(t, fpm.MetricsTable(), table, "run the test with -update")
}
