// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package tokenspeed

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
	"github.com/otelcol-fpm/otelcol-fpm/test/python"
)

const (
	processes = 4
	threads   = 8
)

// patience is for an engine with a million events.
const patience = 5 * time.Minute

// engine is a running engine.py.
type engine struct {
	*harness.Process
	// dir is where its producers write what they did, and look for gate and hold.
	dir string
	// events are what each thread emits at least.
	events int
}

// interpreter is a Python that has all that the tests import.
func interpreter(t *testing.T) string {
	t.Helper()
	path := python.Path(t)
	if out, err := exec.Command(path, "-c", "import prometheus_client").CombinedOutput(); err != nil {
		say := t.Skipf
		if os.Getenv("CI") == "true" {
			say = t.Fatalf
		}
		say("no prometheus_client for %s (pip install -r test/requirements.txt): %v %s", path, err, out)
	}
	return path
}

// startEngine starts an engine with the plugin installed and configured by
// settings. more are arguments of engine.py.
func startEngine(t *testing.T, dir string, settings map[string]any, events int, more ...string) *engine {
	t.Helper()
	config, err := json.Marshal(settings)
	require.NoError(t, err)
	plugin := filepath.Join(harness.Root(), "plugins", "tokenspeed")
	paths := strings.Join([]string{
		install(t, plugin), filepath.Join(plugin, "src"), filepath.Join(plugin, "tests", "stub"),
	}, string(os.PathListSeparator))
	args := []string{
		"PYTHONPATH=" + paths, "PYTHONDONTWRITEBYTECODE=1", interpreter(t), script("engine.py"),
		"--config", string(config), "--folder", dir, "--events", strconv.Itoa(events),
		"--processes", strconv.Itoa(processes), "--threads", strconv.Itoa(threads),
	}
	return &engine{harness.Start(t, "the engine", "env", append(args, more...)...), dir, events}
}

func script(name string) string { return filepath.Join(harness.Root(), "test", "tokenspeed", name) }

// install makes a folder with what an installer writes about the plugin, by
// which the engine finds it; pyproject.toml has the entry point.
func install(t *testing.T, plugin string) string {
	t.Helper()
	project, err := os.ReadFile(filepath.Join(plugin, "pyproject.toml"))
	require.NoError(t, err)
	_, entries, found := strings.Cut(string(project), `[project.entry-points."tokenspeed.plugins"]`+"\n")
	require.True(t, found, "pyproject.toml names no entry point")
	entries, _, _ = strings.Cut(entries, "\n\n")
	site := t.TempDir()
	info := filepath.Join(site, "tokenspeed_otelcol-0.dist-info")
	require.NoError(t, os.Mkdir(info, 0o700))
	for name, text := range map[string]string{
		"METADATA":         "Metadata-Version: 2.1\nName: tokenspeed-otelcol\nVersion: 0\n",
		"entry_points.txt": "[tokenspeed.plugins]\n" + strings.ReplaceAll(entries, `"`, "") + "\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(info, name), []byte(text), 0o600))
	}
	return site
}

// account is what one producer process did, as it says itself.
type account struct {
	PID     int              `json:"pid"`
	Emitted int              `json:"emitted"`
	Sent    int              `json:"sent"`
	Dropped map[string]int   `json:"dropped"`
	Slowest float64          `json:"slowest_emit_seconds"`
	Refused map[string]int   `json:"refused"`
	Series  []observedSeries `json:"series"`
	// page is that of its prometheus_client, when there was one.
	page page
}

// observedSeries are totals of what was observed, without what must be rejected.
type observedSeries struct {
	Metric    string            `json:"metric"`
	Labels    map[string]string `json:"labels"`
	Operation string            `json:"operation"`
	Count     uint64            `json:"count"`
	Sum       float64           `json:"sum"`
	Last      float64           `json:"last"`
}

func (a *account) dropped() int { return total(a.Dropped) }

func total(counts map[string]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// accounts waits for the engine to end, and reads what its producers did.
// Emitted = sent + dropped holds for each of them.
func (e *engine) accounts(t *testing.T) []account {
	t.Helper()
	harness.WaitFor(t, patience, "the engine does not end", e.Ended)
	require.Contains(t, e.Log(), "\nended\n", "the engine failed")
	all := make([]account, processes)
	for i := range all {
		a := &all[i]
		text, err := os.ReadFile(filepath.Join(e.dir, fmt.Sprintf("producer-%d.json", i)))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, a))
		if reference, err := os.Open(filepath.Join(e.dir, fmt.Sprintf("producer-%d.prom", i))); err == nil {
			a.page = parse(t, reference, a.PID)
			require.NoError(t, reference.Close())
		}
		require.GreaterOrEqual(t, a.Emitted, threads*e.events, "producer %d", a.PID)
		require.Equal(t, a.Emitted, a.Sent+a.dropped(), "producer %d: emitted, and sent + dropped %v", a.PID, a.Dropped)
		// The operator reads the same in the log of the engine.
		require.Contains(t, e.Log(), fmt.Sprintf("producer %d: otelcol metric output closed: sent %d, dropped %d", i, a.Sent, a.dropped()))
	}
	return all
}

// hold keeps the engine's threads going until it is released.
func hold(t *testing.T, dir string) (release func()) { return mark(t, filepath.Join(dir, "hold")) }

// pause stops all emitting, and returns when the plugins have sent everything.
func (e *engine) pause(t *testing.T) (goOn func()) {
	t.Helper()
	before := strings.Count(e.Log(), " paused")
	goOn = mark(t, filepath.Join(e.dir, "gate"))
	harness.Wait(t, "the engine does not pause", func() bool {
		return strings.Count(e.Log(), " paused") == before+processes
	})
	return goOn
}

func mark(t *testing.T, path string) (remove func()) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	return func() { require.NoError(t, os.Remove(path)) }
}
