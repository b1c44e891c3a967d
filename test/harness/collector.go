// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

// HealthGate makes the health page show the state of each component, as the
// shipped configurations expect.
const HealthGate = "--feature-gates=+extension.healthcheck.useComponentStatus"

// Collector is a running Collector.
type Collector struct {
	*Process
	// Telemetry is the address of its metrics of itself, Health that of its
	// health page.
	Telemetry, Health string
	// Dir is its working folder.
	Dir string
	// Config is what it was started with; started with it once more, a Collector
	// goes on in the same folder.
	Config CollectorConfig
}

// CollectorConfig says how to run a Collector.
type CollectorConfig struct {
	// File is a file of config/, or a whole configuration in YAML.
	File string
	// Override is a YAML document that is merged last: what a test must have for
	// itself, as ports.
	Override string
	// Env is added to the environment, NAME=value.
	Env []string
	// Dir is the working folder; empty makes one.
	Dir string
}

// StartCollector starts a Collector and waits until it is ready.
func StartCollector(tb testing.TB, config CollectorConfig) *Collector {
	tb.Helper()
	c := launch(tb, config)
	Wait(tb, "the Collector is not ready", func() bool {
		if c.Ended() {
			tb.Fatalf("the Collector did not start: %v", c.err)
		}
		return strings.Contains(c.Log(), "Everything is ready")
	})
	return c
}

// started are the files of config/ that were run.
var started sync.Map

// Started says whether a Collector was run with a file of config/.
func Started(name string) bool {
	_, found := started.Load(name)
	return found
}

func launch(tb testing.TB, config CollectorConfig) *Collector {
	tb.Helper()
	port := ports.Block(tb, 2)
	c := &Collector{
		Telemetry: fmt.Sprintf("127.0.0.1:%d", port),
		Health:    fmt.Sprintf("127.0.0.1:%d", port+1),
	}
	if config.Dir == "" {
		config.Dir = tb.TempDir()
	}
	c.Dir, c.Config = config.Dir, config
	file := "yaml:" + config.File
	if !strings.Contains(config.File, "\n") {
		file = Config(config.File)
		started.Store(config.File, true)
	}
	own := fmt.Sprintf(`
extensions: {health_check: {http: {endpoint: %q}}}
service:
  telemetry:
    metrics:
      readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %d}}}}]
`, c.Health, port)
	args := []string{HealthGate, "--config", file, "--config", "yaml:" + own}
	if config.Override != "" {
		args = append(args, "--config", "yaml:"+config.Override)
	}
	c.Process = start(tb, "the Collector", c.Dir, config.Env, Binary(tb), args...)
	return c
}

// FailToStart runs a Collector that must not start, and returns what it said.
func FailToStart(tb testing.TB, config CollectorConfig) string {
	tb.Helper()
	c := launch(tb, config)
	Wait(tb, "the Collector does not give up", c.Ended)
	if c.err == nil {
		tb.Errorf("the Collector ended as if all was well")
	}
	return c.Log()
}

// Until waits until the Collector's metrics of itself satisfy a condition, and
// returns them.
func (c *Collector) Until(tb testing.TB, failure string, condition func(Page) bool) Page {
	tb.Helper()
	var p Page
	Wait(tb, failure, func() bool {
		p = Scrape(tb, c.Telemetry)
		return condition(p)
	})
	return p
}

// Delivered waits until the fpm receiver has delivered n messages to its
// pipelines of a signal.
func (c *Collector) Delivered(tb testing.TB, signal string, n int) {
	tb.Helper()
	c.Until(tb, fmt.Sprintf("%d messages did not get through to %s", n, signal), func(p Page) bool {
		return p.Count("otelcol_receiver_fpm_delivered", "signal", signal) >= n
	})
}

// CLI runs a subcommand of the Collector to its end.
func CLI(tb testing.TB, args ...string) (output string, err error) {
	tb.Helper()
	ctx, stop := context.WithTimeout(tb.Context(), Patience)
	defer stop()
	out, err := exec.CommandContext(ctx, Binary(tb), args...).CombinedOutput()
	return string(out), err
}
