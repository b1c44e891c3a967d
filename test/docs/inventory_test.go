// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// held says which test holds the blocks of a page to their word, by page and
// language. Blocks without a language, and those of text, only show something.
var held = map[string]string{
	"README.md yaml": "TestEveryYAMLBlockRuns",
	"README.md sh":   "TestQuickstart, TestEveryCommand; make test runs them",

	"docs/from-dynamo-trace.md yaml": "TestEveryYAMLBlockRuns",
	"docs/from-dynamo-trace.md sh":   "TestEveryCommand",
	"docs/from-vllm-metrics.md yaml": "TestEveryYAMLBlockRuns",
	"docs/metrics.md promql":         "test/observability TestEveryQueryGivesData",
	"docs/operations.md promql":      "test/observability TestEveryQueryGivesData",
	"docs/operations.md sh":          "TestEveryCommand",
	"docs/operations.md yml":         "TestEveryPrometheusBlockIsValid",

	"receiver/fpmreceiver/README.md yaml":             "TestEveryYAMLBlockRuns",
	"receiver/fpmbenchmarkreceiver/README.md yaml":    "TestEveryYAMLBlockRuns",
	"receiver/fpmtracereceiver/README.md yaml":        "TestEveryYAMLBlockRuns; receiver/fpmtracereceiver TestOldRowsInPrometheus, TestShiftedToNow",
	"receiver/fpmtracereceiver/README.md yml":         "receiver/fpmtracereceiver TestOldRowsInPrometheus",
	"receiver/fpmtracereceiver/README.md sh":          "receiver/fpmtracereceiver TestShiftedToNow",
	"receiver/metriceventreceiver/README.md yaml":     "TestEveryYAMLBlockRuns",
	"receiver/metriceventreceiver/README.md sh":       "plugins/tokenspeed/tests/test_install.py; the engine itself is not at hand",
	"processor/gaugededupprocessor/README.md yaml":    "TestEveryYAMLBlockRuns",
	"exporter/fpmtraceexporter/README.md yaml":        "TestEveryYAMLBlockRuns; exporter/fpmtraceexporter TestDynamosVariables",
	"plugins/tokenspeed/README.md yaml":               "TestEveryYAMLBlockRuns; test/chart TestPluginREADMEIsRight",
	"plugins/tokenspeed/README.md json":               "TestPluginTakesItsConfiguration",
	"plugins/tokenspeed/README.md sh":                 "plugins/tokenspeed/tests/test_install.py; test/chart TestREADMEInstallsTheChart; kubectl and the engine itself are not at hand",
	"plugins/tokenspeed/README.md dockerfile":         "plugins/tokenspeed/tests/test_install.py installs the same folder; Docker is not at hand",
	"cmd/fpmbench/README.md console":                  "cmd/fpmbench TestReadmeShowsWhatIsPrinted",
	"cmd/fpmsim/README.md console":                    "TestSimulatorSession",
	"distribution/README.md console":                  "test/chart/packages, test/chart/container; Docker, apt and systemd are not at hand",
	"distribution/helm/otelcol-fpm/README.md yaml":    "test/chart TestREADMEBlocksAreRight",
	"distribution/helm/otelcol-fpm/README.md console": "test/chart TestREADMEInstallsTheChart, TestREADMEBringsDashboardAndAlerts, TestPodsOfAllRenderingsBecomeReady; a cluster is not at hand",
	"test/README.md console":                          "make test runs them",
}

// No page has a block that nobody tries out.
func TestEveryBlockIsHeldToItsWord(t *testing.T) {
	found := map[string]bool{}
	for _, name := range tracked(t) {
		for _, language := range languages(t, filepath.Join(root(t), name)) {
			if language == "" || language == "text" {
				continue
			}
			found[name+" "+language] = true
			assert.Contains(t, held, name+" "+language, "nobody holds these blocks to their word")
		}
	}
	for entry := range held {
		assert.True(t, found[entry], "there are no blocks %s any more", entry)
	}
}

// tracked are all Markdown files of the repository, from its root.
func tracked(t *testing.T) []string {
	t.Helper()
	list, err := exec.CommandContext(t.Context(), "git", "-C", root(t), "ls-files", "*.md").Output()
	require.NoError(t, err)
	return strings.Fields(string(list))
}

// languages are those of the blocks of a Markdown file.
func languages(t *testing.T, file string) []string {
	t.Helper()
	var found []string
	for _, match := range fence.FindAllStringSubmatch(read(t, file), -1) {
		found = append(found, match[1])
	}
	slices.Sort(found)
	return slices.Compact(found)
}
