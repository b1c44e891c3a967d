// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/chart/container"
)

// The release and namespace of every rendering.
const (
	release   = "demo"
	namespace = "llm"
)

func distribution(elements ...string) string {
	return filepath.Join(append([]string{container.Repository(), "distribution"}, elements...)...)
}

var folder = distribution("helm", "otelcol-fpm")

// helm is the helm that distribution/scripts/chart.sh installs, or FPM_HELM.
// Without one the test is skipped, in continuous integration it fails.
func helm(t *testing.T) string {
	t.Helper()
	path := os.Getenv("FPM_HELM")
	if path == "" {
		found, _ := filepath.Glob(filepath.Join(container.Repository(), ".tools", "helm-v*"))
		if len(found) > 0 {
			path = found[len(found)-1]
		}
	}
	if _, err := os.Stat(path); err != nil {
		say := t.Skipf
		if os.Getenv("CI") == "true" {
			say = t.Fatalf
		}
		say("there is no helm: run `make chart`, or set FPM_HELM")
	}
	return path
}

// template renders the chart.
func template(t *testing.T, arguments ...string) (text string, err error) {
	t.Helper()
	return templateOf(t, folder, arguments...)
}

// templateOf renders a copy of the chart. A helm built from its module believes in an old
// Kubernetes without extensions, so both are said.
func templateOf(t *testing.T, chart string, arguments ...string) (text string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), helm(t), append([]string{
		"template", release, chart, "--namespace", namespace,
		"--kube-version", "1.33.0", "--api-versions", "monitoring.coreos.com/v1",
	}, arguments...)...)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		err = errors.New(stderr.String())
	}
	return string(out), err
}

// refused is what helm says of values that the chart does not take.
func refused(t *testing.T, values string, arguments ...string) string {
	t.Helper()
	_, err := template(t, append([]string{"--values", file(t, values)}, arguments...)...)
	require.Error(t, err, "the chart takes\n%s", values)
	return err.Error()
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// cases are the files in ci/, by the name of what they show.
func cases(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "ci", "*-values.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	byName := map[string]string{}
	for _, path := range files {
		byName[strings.TrimSuffix(filepath.Base(path), "-values.yaml")] = path
	}
	return byName
}

// render renders one of ci/ and decodes it.
func render(t *testing.T, name string, arguments ...string) objects {
	t.Helper()
	path, ok := cases(t)[name]
	require.True(t, ok, "there is no ci/%s-values.yaml", name)
	text, err := template(t, append([]string{"--values", path}, arguments...)...)
	require.NoError(t, err)
	return decode(t, text)
}

var separator = regexp.MustCompile(`(?m)^---\n`)

// documents are the objects of a rendered text, each with its comments.
func documents(text string) []string {
	var found []string
	for _, document := range separator.Split(text, -1) {
		if strings.TrimSpace(document) != "" {
			found = append(found, document)
		}
	}
	return found
}
