// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package observability asks everything that we give people to watch engines
// with of a Prometheus server: the queries of the dashboard, of the alerts and of
// the documentation. Each must give data.
package observability

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

// scene is a Prometheus server and all that it scrapes: engines in each of the
// states they can be in, a Collector with config/quickstart.yaml that hears
// them, a sick one that loses messages wherever they can be lost, and one that is
// down.
type scene struct {
	*harness.Prometheus
}

func newScene(t *testing.T) *scene {
	t.Helper()
	harness.Tool(t, "prometheus")
	port := ports.Block(t, 5)
	busy, silent, stale, away := harness.TCP(port), harness.TCP(port+2), harness.TCP(port+3), harness.TCP(port+4)
	harness.Simulate(t, busy, "--ranks", "2", "--rate", "50", "--faults", "gap,restart")
	harness.Simulate(t, silent, "--ranks", "1", "--start-delay", "1h")
	// It sends some bad messages, then nothing more, no heartbeats either, and stays
	// connected.
	harness.Publish(t, stale, 1, 200, 20, "--bad-every", "10", "--worker-id", "stale")

	page := harness.Address(t)
	healthy := harness.StartCollector(t, harness.CollectorConfig{File: "quickstart.yaml", Override: fmt.Sprintf(`
receivers: {fpm: {endpoint: %q, endpoints: [{endpoint: %q}, {endpoint: %q}, {endpoint: %q}]}}
exporters: {prometheus: {endpoint: %q}}
`, busy, silent, stale, away, page)})
	sick := startSick(t, busy)

	return &scene{harness.StartPrometheus(t, fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - {job_name: fpm, honor_labels: true, static_configs: [{targets: [%q]}]}
  - {job_name: otelcol-fpm, static_configs: [{targets: [%q, %q, %q]}]}
  - {job_name: node, static_configs: [{targets: [%s]}]}
`, filepath.Join(harness.Root(), rules), page, healthy.Telemetry, sick.Telemetry, harness.Address(t), strings.Join(disks(t), ", ")))}
}

// startSick starts a Collector with a queue that is too short before a pipeline
// that refuses everything, a trace that cannot be written, a gateway that is
// away, and no room for series.
func startSick(t *testing.T, engine string) *harness.Collector {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	return harness.StartCollector(t, harness.CollectorConfig{File: fmt.Sprintf(`
receivers:
  fpm: {endpoint: %[1]q, dp_size: 2, queue_size: 20}
  fpm/away: {endpoint: %[1]q, dp_size: 2}
  fpm/refuses: {endpoint: %[1]q, dp_size: 2}
processors:
  memory_limiter: {check_interval: 100ms, limit_mib: 1}
  gauge_dedup:
  gauge_dedup/full: {max_series: 3}
exporters:
  fpm_trace: {path: %[2]q, mode: full, queue_size: 10}
  otlp_grpc/away: {endpoint: %[3]q, tls: {insecure: true}, sending_queue: {queue_size: 5, num_consumers: 1}}
  otlp_grpc/refuses: {endpoint: %[3]q, tls: {insecure: true}, sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}
extensions: {health_check: {http: {status: {enabled: true}}}}
service:
  extensions: [health_check]
  pipelines:
    metrics/limited: {receivers: [fpm], processors: [memory_limiter], exporters: [otlp_grpc/away]}
    metrics/away: {receivers: [fpm/away], processors: [gauge_dedup/full], exporters: [otlp_grpc/away]}
    metrics/refuses: {receivers: [fpm/refuses], processors: [gauge_dedup], exporters: [otlp_grpc/refuses]}
    logs: {receivers: [fpm], exporters: [fpm_trace]}
    logs/away: {receivers: [fpm/away], exporters: [otlp_grpc/away]}
    logs/refuses: {receivers: [fpm/refuses], exporters: [otlp_grpc/refuses]}
`, engine, filepath.Join(file, "trace"), harness.Address(t))})
}

// disks are pages with the state of disks: that of node_exporter where it is
// installed, and one of a disk that is nearly full, which is not to be had
// otherwise.
func disks(t *testing.T) []string {
	t.Helper()
	full := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`# TYPE node_filesystem_avail_bytes gauge
node_filesystem_avail_bytes{device="/dev/test",fstype="ext4",mountpoint="/var/lib/otelcol-fpm"} 3
# TYPE node_filesystem_size_bytes gauge
node_filesystem_size_bytes{device="/dev/test",fstype="ext4",mountpoint="/var/lib/otelcol-fpm"} 100
`))
	}))
	t.Cleanup(full.Close)
	targets := []string{strings.TrimPrefix(full.URL, "http://")}
	if program, err := exec.LookPath("prometheus-node-exporter"); err == nil {
		address := harness.Address(t)
		harness.Start(t, "node_exporter", program, "--web.listen-address="+address)
		targets = append(targets, address)
	}
	return targets
}
