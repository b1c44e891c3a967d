// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observability

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
)

const rules = "distribution/alerts/fpm.rules.yaml"

type alert struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	Annotations map[string]string `yaml:"annotations"`
}

func readAlerts(t *testing.T) (alerts []alert) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(harness.Root(), rules))
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Rules []alert `yaml:"rules"`
		} `yaml:"groups"`
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	for _, group := range file.Groups {
		alerts = append(alerts, group.Rules...)
	}
	require.NotEmpty(t, alerts)
	return alerts
}

func alertQueries(t *testing.T) (queries []query) {
	t.Helper()
	for _, a := range readAlerts(t) {
		queries = append(queries, query{"alert " + a.Alert, a.Expr})
	}
	return queries
}

// promtool takes the rules, and the cases beside them hold.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	promtool := harness.Tool(t, "promtool")
	folder := filepath.Join(harness.Root(), filepath.Dir(rules))
	for _, args := range [][]string{
		{"check", "rules", "--lint-fatal", "fpm.rules.yaml"},
		{"test", "rules", "fpm.rules.test.yaml"},
	} {
		command := exec.CommandContext(t.Context(), promtool, args...)
		command.Dir = folder
		out, err := command.CombinedOutput()
		assert.NoError(t, err, "promtool %v:\n%s", args, out)
	}
	cases, err := os.ReadFile(filepath.Join(folder, "fpm.rules.test.yaml"))
	require.NoError(t, err)
	for _, a := range readAlerts(t) {
		assert.Contains(t, string(cases), "alertname: "+a.Alert+"\n        exp_alerts:", "no case in which %s fires", a.Alert)
		assert.Contains(t, string(cases), "alertname: "+a.Alert+"}", "no case in which %s does not fire", a.Alert)
	}
}

// Who gets an alert finds a heading of docs/operations.md that says what to do.
func TestAlertsPointToWhatToDo(t *testing.T) {
	const page = "https://github.com/otelcol-fpm/otelcol-fpm/blob/main/docs/operations.md#"
	text, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "operations.md"))
	require.NoError(t, err)
	headings := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if heading, found := strings.CutPrefix(strings.TrimSpace(line), "### "); found {
			headings[strings.ReplaceAll(strings.ToLower(heading), " ", "-")] = true
		}
	}
	for _, a := range readAlerts(t) {
		anchor, found := strings.CutPrefix(a.Annotations["runbook_url"], page)
		require.True(t, found, "%s points to %s", a.Alert, a.Annotations["runbook_url"])
		assert.True(t, headings[anchor], "docs/operations.md has no heading for %s", anchor)
	}
}
