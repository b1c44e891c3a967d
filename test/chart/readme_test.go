// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"github.com/otelcol-fpm/otelcol-fpm/test/chart/container"
)

var fence = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")

func blocks(t *testing.T, path, language string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var found []string
	for _, match := range fence.FindAllStringSubmatch(string(text), -1) {
		if match[1] == language {
			found = append(found, match[2])
		}
	}
	require.NotEmpty(t, found)
	return found
}

// Each YAML block of the chart's README is what it says: part of a pod, an object,
// or values, whose configuration the binary takes.
func TestREADMEBlocksAreRight(t *testing.T) {
	readme := filepath.Join(folder, "README.md")
	kinds := map[string]int{}
	for _, block := range blocks(t, readme, "yaml") {
		var keys map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(block), &keys))
		switch {
		case keys["kind"] != nil:
			kinds["object"]++
			object, _, err := strict.Decode([]byte(block), nil, nil)
			require.NoError(t, err)
			assert.IsType(t, &networkingv1.NetworkPolicy{}, object)
		case keys["ports"] != nil:
			kinds["container"]++
			require.NoError(t, yaml.UnmarshalStrict([]byte(block), &corev1.Container{}))
		default:
			kinds["values"]++
			text, err := template(t, "--values", file(t, block))
			require.NoError(t, err)
			config := file(t, decode(t, text).config.Data["config.yaml"])
			command := exec.CommandContext(t.Context(), container.Binary(t, "otelcol-fpm"), "validate", "--config", config,
				"--feature-gates=+extension.healthcheck.useComponentStatus")
			command.Env = append(os.Environ(), "MY_POD_IP=127.0.0.1", "K8S_NODE_NAME="+nodeName)
			out, err := command.CombinedOutput()
			assert.NoError(t, err, "%s", out)
		}
	}
	assert.Equal(t, map[string]int{"object": 1, "container": 1, "values": 1}, kinds)
}

// pluginREADME says how TokenSpeed's plugin meets the chart.
var pluginREADME = filepath.Join(container.Repository(), "plugins", "tokenspeed", "README.md")

// helm takes the arguments that the READMEs install with.
func TestREADMEInstallsTheChart(t *testing.T) {
	for readme, language := range map[string]string{filepath.Join(folder, "README.md"): "console", pluginREADME: "sh"} {
		found := false
		for _, block := range blocks(t, readme, language) {
			for _, line := range strings.Split(strings.ReplaceAll(block, "\\\n", " "), "\n") {
				arguments, ok := strings.CutPrefix(strings.TrimPrefix(line, "$ "), "helm install ")
				if !ok {
					continue
				}
				found = true
				command := exec.CommandContext(t.Context(), helm(t), append([]string{"template", "--kube-version", "1.33.0"}, strings.Fields(arguments)...)...)
				command.Dir = container.Repository()
				out, err := command.CombinedOutput()
				assert.NoError(t, err, "%s", out)
			}
		}
		assert.True(t, found, readme)
	}
}

// The line that makes a PrometheusRule of the alerts does, and the dashboard is where
// the line before says.
func TestREADMEBringsDashboardAndAlerts(t *testing.T) {
	made := false
	for _, block := range blocks(t, filepath.Join(folder, "README.md"), "console") {
		for _, line := range strings.Split(block, "\n") {
			if _, rest, ok := strings.Cut(line, "--from-file="); ok {
				assert.FileExists(t, filepath.Join(container.Repository(), rest))
			}
			makes, _, ok := strings.Cut(strings.TrimPrefix(line, "$ "), " | kubectl apply")
			if !ok {
				continue
			}
			made = true
			command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", makes)
			command.Dir = container.Repository()
			text, err := command.Output()
			require.NoError(t, err)
			var rule, alerts map[string]any
			require.NoError(t, yaml.UnmarshalStrict(text, &rule))
			read(t, distribution("alerts", "fpm.rules.yaml"), &alerts)
			assert.Equal(t, "PrometheusRule", rule["kind"])
			assert.Equal(t, alerts, rule["spec"])
		}
	}
	assert.True(t, made)
}

// Each YAML block of the plugin's README that is of Kubernetes is an object, or
// part of a pod.
func TestPluginREADMEIsRight(t *testing.T) {
	kinds := map[string]int{}
	for _, block := range blocks(t, pluginREADME, "yaml") {
		var keys map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(block), &keys))
		switch {
		case keys["kind"] != nil:
			kinds["object"]++
			_, _, err := strict.Decode([]byte(block), nil, nil)
			require.NoError(t, err)
		case keys["containers"] != nil:
			kinds["pod"]++
			require.NoError(t, yaml.UnmarshalStrict([]byte(block), &corev1.PodSpec{}))
		}
	}
	assert.Equal(t, map[string]int{"object": 1, "pod": 1}, kinds)
}

// The table of variables in distribution/README.md has the defaults of config.yaml.
func TestREADMENamesTheVariablesOfTheShippedConfiguration(t *testing.T) {
	config, err := os.ReadFile(distribution("config.yaml"))
	require.NoError(t, err)
	readme, err := os.ReadFile(distribution("README.md"))
	require.NoError(t, err)
	found := variable.FindAllStringSubmatch(string(config), -1)
	require.NotEmpty(t, found)
	for _, match := range found {
		value := strings.TrimPrefix(match[2], ":-")
		assert.Regexp(t, "(?m)^\\| `"+match[1]+"` \\| `"+regexp.QuoteMeta(value)+"`", string(readme))
	}
}
