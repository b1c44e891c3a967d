// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

// TestEveryCommand runs each line of the blocks of shell in docs/, and what
// README.md has beside the quickstart, as a reader does: in the root of the
// repository, beside the Collector of the quickstart. The root is one of links,
// and the addresses are others, so that nothing meets what runs elsewhere on the
// machine.
func TestEveryCommand(t *testing.T) {
	stand := newStand(t)
	commands := 0
	for _, page := range append(pages(t), filepath.Join(root(t), "README.md")) {
		for _, block := range blocks(t, page, "sh") {
			if slices.Contains(quickstart(t), block) || block == "make test\n" {
				continue
			}
			for _, line := range strings.Split(strings.TrimSpace(block), "\n") {
				commands++
				t.Run(filepath.Base(page)+"/"+line, func(t *testing.T) { stand.run(t, line) })
			}
		}
	}
	assert.Greater(t, commands, 5)
}

// pages are the pages of docs/.
func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root(t), "docs", "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, found)
	return found
}

type stand struct {
	root      string
	addresses *strings.Replacer
}

// links is a root of the repository made of links.
func links(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for name, target := range map[string]string{
		"bin":          filepath.Dir(binary(t)),
		"config":       filepath.Join(root(t), "config"),
		"distribution": filepath.Join(root(t), "distribution"),
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(folder, name)))
	}
	return folder
}

func newStand(t *testing.T) *stand {
	t.Helper()
	folder := links(t)
	engine, page := harness.TCP(ports.Block(t, 2)), harness.Address(t)
	harness.Simulate(t, engine, "--ranks", "2", "--rate", "50")
	collector := harness.StartCollector(t, harness.CollectorConfig{
		File: "quickstart.yaml", Dir: folder,
		Override: "receivers: {fpm: {endpoint: \"" + engine + "\"}}\nexporters: {prometheus: {endpoint: \"" + page + "\"}}\n",
	})
	collector.Until(t, "no trace is written", func(p harness.Page) bool {
		return p.Count("otelcol_exporter_fpm_trace_rows", "outcome", "written") > 100
	})
	return &stand{root: folder, addresses: strings.NewReplacer(
		"127.0.0.1:9464", page, "127.0.0.1:8888", collector.Telemetry, "127.0.0.1:13133", collector.Health)}
}

// run runs a command to its end; one that starts a Collector until that is
// ready. It must end well and say something, but for validate.
func (s *stand) run(t *testing.T, line string) {
	t.Helper()
	for _, tool := range []string{"curl", "jq", "promtool"} {
		if _, err := exec.LookPath(tool); strings.Contains(line, tool+" ") && err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	ctx, stop := context.WithTimeout(t.Context(), harness.Patience)
	defer stop()
	starts, folder := strings.Contains(line, "otelcol-fpm --config"), s.root
	if starts {
		own := fmt.Sprintf("extensions: {health_check: {http: {endpoint: %q}}}\nexporters: {prometheus: {endpoint: %q}}\nservice: {telemetry: {metrics: {level: none}}}\n",
			harness.Address(t), harness.Address(t))
		line, folder = "exec env "+line+" --config 'yaml:"+own+"'", links(t)
	}
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", s.addresses.Replace(line))
	command.Dir = folder
	var printed output
	command.Stdout, command.Stderr = &printed, &printed
	require.NoError(t, command.Start())
	if starts {
		harness.Wait(t, "the Collector is not ready", func() bool { return strings.Contains(printed.String(), "Everything is ready") })
		require.NoError(t, command.Process.Signal(os.Interrupt))
	}
	assert.NoError(t, command.Wait(), "%s\n%s", line, &printed)
	assert.Equal(t, strings.Contains(line, " validate "), strings.TrimSpace(printed.String()) == "", "%s printed %s", line, &printed)
}

// The blocks of YAML that are Prometheus's configuration are fenced as yml, and
// Prometheus takes them.
func TestEveryPrometheusBlockIsValid(t *testing.T) {
	promtool := harness.Tool(t, "promtool")
	checked := 0
	for _, page := range pages(t) {
		for _, block := range blocks(t, page, "yml") {
			checked++
			folder := t.TempDir()
			require.NoError(t, os.Symlink(filepath.Join(root(t), "distribution"), filepath.Join(folder, "distribution")))
			require.NoError(t, os.WriteFile(filepath.Join(folder, "prometheus.yml"), []byte(block), 0o600))
			command := exec.CommandContext(t.Context(), promtool, "check", "config", filepath.Join(folder, "prometheus.yml"))
			out, err := command.CombinedOutput()
			assert.NoError(t, err, "%s\nof %s\n%s", out, page, block)
			assert.Contains(t, block, "honor_labels: true")
		}
	}
	assert.Positive(t, checked)
}

var (
	link        = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// What a page points to is there: files, and headings of our own pages.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	followed := 0
	for _, name := range tracked(t) {
		page := filepath.Join(root(t), name)
		for _, match := range link.FindAllStringSubmatch(fence.ReplaceAllString(read(t, page), ""), -1) {
			target, heading, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			followed++
			path := page
			if target != "" {
				path = filepath.Join(filepath.Dir(page), target)
			}
			_, err := os.Stat(path)
			if assert.NoError(t, err, "%s in %s", match[1], name) && heading != "" {
				assert.Contains(t, headings(t, path), heading, "%s in %s", match[1], name)
			}
		}
	}
	assert.Greater(t, followed, 50)
}

// headings are the anchors of a page's headings, as GitHub makes them.
func headings(t *testing.T, path string) (anchors []string) {
	t.Helper()
	for line := range strings.Lines(fence.ReplaceAllString(read(t, path), "")) {
		if strings.HasPrefix(line, "#") {
			title := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
			anchors = append(anchors, strings.ReplaceAll(notInAnchor.ReplaceAllString(title, ""), " ", "-"))
		}
	}
	return anchors
}
