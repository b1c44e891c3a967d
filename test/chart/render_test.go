// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write the rendered examples anew")

func TestLint(t *testing.T) {
	for name, path := range cases(t) {
		t.Run(name, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), helm(t), "lint", "--strict", "--kube-version", "1.33.0", folder, "--values", path).CombinedOutput()
			assert.NoError(t, err, "%s", out)
		})
	}
}

// The rendered examples show what the chart makes of each file in ci/, and make a
// change of the templates visible. -update writes them.
func TestRenderedExamples(t *testing.T) {
	examples := filepath.Join(folder, "examples")
	for name, path := range cases(t) {
		t.Run(name, func(t *testing.T) {
			text, err := template(t, "--values", path)
			require.NoError(t, err)
			text = "# helm template " + release + " . --namespace " + namespace + " --values ci/" + filepath.Base(path) + "\n" + text
			golden := filepath.Join(examples, name+".yaml")
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(text), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err, "distribution/scripts/chart.sh update writes it")
			assert.Equal(t, string(want), text, "distribution/scripts/chart.sh update writes the examples anew")
		})
	}
	files, err := filepath.Glob(filepath.Join(examples, "*.yaml"))
	require.NoError(t, err)
	for _, path := range files {
		assert.Contains(t, cases(t), strings.TrimSuffix(filepath.Base(path), ".yaml"), "%s is of no file in ci/", path)
	}
}

func TestEveryObjectIsOfItsType(t *testing.T) {
	for name := range cases(t) {
		t.Run(name, func(t *testing.T) { render(t, name) })
	}
}

// Two versions that must agree with the one in the manifest of the distribution.
func TestChartVersionIsTheDistributions(t *testing.T) {
	var manifest struct {
		Dist struct{ Version string }
	}
	read(t, filepath.Join(distribution(), "..", "builder-config.yaml"), &manifest)
	var chart struct {
		Version    string
		AppVersion string `yaml:"appVersion"`
	}
	read(t, filepath.Join(folder, "Chart.yaml"), &chart)
	assert.Equal(t, manifest.Dist.Version, chart.AppVersion)
	assert.Equal(t, manifest.Dist.Version, chart.Version)
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, into))
}
