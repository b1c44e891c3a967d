// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
)

var updateTables = flag.Bool("update-tables", false, "rewrite the generated tables of README.md")

// The tables of the README are those of the code.
func TestReadmeTables(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	want := string(text)
	for name, table := range map[string]string{"rules": benchmark.RulesTable(), "metrics": metricsTable()} {
		begin, end := "<!-- "+name+", generated: begin -->\n", "<!-- "+name+", generated: end -->"
		before, rest, ok := strings.Cut(want, begin)
		require.True(t, ok, name)
		_, after, ok := strings.Cut(rest, end)
		require.True(t, ok, name)
		want = before + begin + "\n" + table + "\n" + end + after
	}
	if *updateTables {
		require.NoError(t, os.WriteFile("README.md", []byte(want), 0o600))
		return
	}
	assert.Equal(t, want, string(text), "go test -run TestReadmeTables -update-tables")
}

// Every outcome and reason that is counted is explained.
func TestReadmeExplainsWhatIsCounted(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var names []string
	for _, o := range []outcome{fileTaken, fileDuplicate, fileIgnored, fileRejected} {
		names = append(names, `files{outcome="`+string(o)+`"}`)
	}
	for _, o := range []runOutcome{runValid, runInvalid, runIncomplete, runRefused, runLost} {
		names = append(names, `runs{outcome="`+string(o)+`"}`)
	}
	for _, reason := range []benchmark.Reason{
		benchmark.ReasonJSON, benchmark.ReasonNotFinite, benchmark.ReasonSchema, benchmark.ReasonSize, benchmark.ReasonUnreadable,
		benchmark.ReasonSidecarRun, rejectedLimit,
	} {
		names = append(names, `rejected{reason="`+string(reason)+`"}`)
	}
	for _, name := range names {
		assert.Contains(t, string(text), "`otelcol_receiver_fpm_benchmark_"+name+"`")
	}
	for _, match := range regexp.MustCompile("`otelcol_receiver_fpm_benchmark_([^`]*)`").FindAllStringSubmatch(string(text), -1) {
		assert.Contains(t, names, match[1])
	}
}
