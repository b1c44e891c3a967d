// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

// patience bounds each wait for something that takes well under a second on an
// idle machine.
const patience = 20 * time.Second

// root is the root of the repository, seen from the tests.
const root = "../.."

// binary is the Collector under test.
func binary(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("end-to-end tests take longer than -short allows")
	}
	path := os.Getenv("FPM_BIN")
	if path == "" {
		path = filepath.Join(root, "bin", "otelcol-fpm")
	}
	path, err := filepath.Abs(path)
	require.NoError(t, err)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("there is no Collector to test at %s: run `make build`, or set FPM_BIN", path)
	}
	return path
}

// collector is a running Collector.
type collector struct {
	cmd *exec.Cmd
	log *logBuffer
	// page and telemetry are the addresses of the Prometheus exporter and of the
	// Collector's own metrics.
	page, telemetry string
	// traces is the folder of the trace segments.
	traces string
	exited chan error
}

// quickstart starts the Collector with config/quickstart.yaml, listening to
// endpoint, with ports and paths of its own. The overrides are YAML documents
// that are merged last.
func quickstart(t *testing.T, endpoint string, ranks int, overrides ...string) *collector {
	t.Helper()
	first := ports.Block(t, 3)
	c := &collector{
		page:      fmt.Sprintf("127.0.0.1:%d", first),
		telemetry: fmt.Sprintf("127.0.0.1:%d", first+1),
		traces:    filepath.Join(t.TempDir(), "traces"),
	}
	own := fmt.Sprintf(`
receivers: {fpm: {endpoint: %q, dp_size: %d}}
exporters:
  prometheus: {endpoint: %q}
  fpm_trace: {path: %q}
extensions: {health_check: {http: {endpoint: "127.0.0.1:%d"}}}
service:
  telemetry:
    metrics:
      readers:
        - pull: {exporter: {prometheus: {host: 127.0.0.1, port: %d, without_type_suffix: true, without_units: true, without_scope_info: true}}}
`, endpoint, ranks, c.page, filepath.Join(c.traces, "dynamo-fpm"), first+2, first+1)

	args := []string{"--feature-gates=+extension.healthcheck.useComponentStatus"}
	for _, config := range append([]string{filepath.Join(root, "config", "quickstart.yaml"), own}, overrides...) {
		if strings.Contains(config, "\n") {
			config = "yaml:" + config
		}
		args = append(args, "--config", config)
	}
	c.cmd = exec.Command(binary(t), args...)
	c.log = &logBuffer{}
	c.cmd.Stderr, c.cmd.Stdout = c.log, c.log
	require.NoError(t, c.cmd.Start())
	c.exited = make(chan error, 1)
	go func() { c.exited <- c.cmd.Wait() }()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		if t.Failed() {
			t.Logf("log of the Collector:\n%s", c.log.head())
		}
	})
	wait(t, "the Collector is not ready", func() bool {
		if len(c.exited) > 0 {
			t.Fatalf("the Collector did not start:\n%s", c.log.head())
		}
		return strings.Contains(c.log.String(), "Everything is ready")
	})
	return c
}

// stop ends the Collector as a service manager does, and waits for a clean end.
func (c *collector) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-c.exited:
		require.NoError(t, err, "%s", c.log.head())
	case <-time.After(patience):
		t.Fatalf("the Collector does not end:\n%s", c.log.head())
	}
	require.NotContains(t, c.log.String(), "panic")
}

// cli runs a subcommand of the Collector to its end.
func cli(t *testing.T, args ...string) (output string, err error) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	out, err := exec.CommandContext(ctx, binary(t), args...).CombinedOutput()
	return string(out), err
}

// wait waits until a condition holds. It asks in the goroutine of the test, so
// that the condition may end the test.
func wait(t *testing.T, failure string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s within %v", failure, patience)
		}
	}
}

// logBuffer collects output while it is read.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// head is the part of the output that a failed test shows: a crash says at the
// beginning why.
func (l *logBuffer) head() string {
	const enough = 8 << 10
	s := l.String()
	if len(s) > enough {
		return s[:enough] + "…"
	}
	return s
}
