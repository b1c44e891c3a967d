// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The README shows what the program prints: its usage, and the golden files.
func TestReadmeShowsWhatIsPrinted(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	printed := func(name string) string {
		text, err := os.ReadFile(filepath.Join(testdata, name+".txt"))
		require.NoError(t, err)
		return string(text)
	}
	want := string(text)
	for before, output := range map[string]string{
		"```\nusage: fpmbench": usage,
		"```console\n$ fpmbench show benchmark_results_merged.json\n":                    printed("show"),
		"```console\n$ fpmbench compare before_merged.json after_merged.json\n":          printed("compare"),
		"```console\n$ fpmbench compare before_merged.json after_merged.json; echo $?\n": printed("compare_refused") + "3\n",
	} {
		head := strings.TrimSuffix(before, "usage: fpmbench")
		pattern := regexp.MustCompile("(?s)" + regexp.QuoteMeta(before) + ".*?```\n")
		require.Regexp(t, pattern, want)
		want = pattern.ReplaceAllLiteralString(want, head+output+"```\n")
	}
	if *update {
		require.NoError(t, os.WriteFile("README.md", []byte(want), 0o600))
		return
	}
	assert.Equal(t, want, string(text), "go test -run TestReadme -update")
	for _, flag := range []string{"--json", "--fail-over", "--allow-different"} {
		assert.Contains(t, string(text), flag)
	}
}
