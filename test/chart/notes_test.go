// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// notes renders what `helm install` prints at its end, which helm template leaves
// out: in a copy of the chart where they are the data of a ConfigMap.
func notes(t *testing.T, values string) string {
	t.Helper()
	const carrier = `apiVersion: v1
kind: ConfigMap
metadata: {name: notes}
data:
  notes: |
    {{- tpl (.Files.Get "notes") . | nindent 4 }}
`
	chart := t.TempDir()
	require.NoError(t, os.CopyFS(chart, os.DirFS(folder)))
	require.NoError(t, os.Rename(filepath.Join(chart, "templates", "NOTES.txt"), filepath.Join(chart, "notes")))
	require.NoError(t, os.WriteFile(filepath.Join(chart, "templates", "notes.yaml"), []byte(carrier), 0o600))
	text, err := templateOf(t, chart, "--values", values, "--show-only", "templates/notes.yaml")
	require.NoError(t, err)
	var made struct{ Data struct{ Notes string } }
	require.NoError(t, yaml.Unmarshal([]byte(text), &made))
	require.NotEmpty(t, made.Data.Notes)
	return made.Data.Notes
}

// The notes say where the data comes from, how to look, and what will go wrong.
func TestNotes(t *testing.T) {
	const (
		nameThePort = "ports: [{name: fpm, containerPort: 20380}]"
		noScrape    = "Nothing scrapes the page yet"
		gone        = "gone with their pod"
		replicas    = "keep one replica"
	)
	said := map[string][]string{
		"alternate-config":    {noScrape},
		"daemonset":           {nameThePort},
		"daemonset-agent":     {nameThePort},
		"daemonset-traces":    {nameThePort, noScrape},
		"dynamo":              nil,
		"engines":             {gone, noScrape},
		"full":                {gone},
		"gateway":             {gone},
		"shared-claim":        nil,
		"statefulset":         nil,
		"statefulset-gateway": nil,
		"tokenspeed":          nil,
	}
	for name, path := range cases(t) {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, said, name)
			text := notes(t, path)
			assert.NotContains(t, text, "<no value>")
			assert.NotContains(t, text, "\n\n\n")
			assert.Contains(t, text, ":13133/proxy/status?verbose")
			for _, sentence := range []string{nameThePort, noScrape, gone, replicas} {
				assert.Equal(t, slices.Contains(said[name], sentence), strings.Contains(text, sentence), "%q in\n%s", sentence, text)
			}
		})
	}
	text := notes(t, file(t, "mode: deployment\nreplicaCount: 2\notlp: {receiver: {enabled: true}}"))
	assert.Contains(t, text, replicas)
}
