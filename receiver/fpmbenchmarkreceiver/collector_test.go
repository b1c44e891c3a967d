// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/benchmarktest"
)

// runCollector runs a whole Collector until done says so.
func runCollector(t *testing.T, yaml string, done func() bool) {
	t.Helper()
	receivers, exporters, extensions := NewFactory(), fileexporter.NewFactory(), filestorage.NewFactory()
	collector, err := otelcol.NewCollector(otelcol.CollectorSettings{
		Factories: func() (otelcol.Factories, error) {
			return otelcol.Factories{
				Receivers:  map[component.Type]receiver.Factory{receivers.Type(): receivers},
				Exporters:  map[component.Type]exporter.Factory{exporters.Type(): exporters},
				Extensions: map[component.Type]extension.Factory{extensions.Type(): extensions},
				Telemetry:  otelconftelemetry.NewFactory(),
			}, nil
		},
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs: []string{"yaml:" + yaml}, ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()},
		}},
		DisableGracefulShutdown: true,
	})
	require.NoError(t, err)
	ran := make(chan error, 1)
	go func() { ran <- collector.Run(context.Background()) }()
	require.Eventually(t, done, 30*time.Second, 20*time.Millisecond)
	collector.Shutdown()
	require.NoError(t, <-ran)
}

// In a whole Collector a run reaches the exporters of both signals, and not
// again after a restart.
func TestInACollector(t *testing.T) {
	folder, out, state := t.TempDir(), t.TempDir(), t.TempDir()
	yaml := func(start int) string {
		return fmt.Sprintf(`
receivers:
  fpm_benchmark: {include: [%q], poll_interval: 10ms, settle: 0s, storage: file_storage}
extensions:
  file_storage: {directory: %q}
exporters:
  file/metrics: {path: %q, flush_interval: 20ms}
  file/logs: {path: %q, flush_interval: 20ms}
service:
  extensions: [file_storage]
  telemetry: {metrics: {level: none}, logs: {level: error}}
  pipelines:
    metrics: {receivers: [fpm_benchmark], exporters: [file/metrics]}
    logs: {receivers: [fpm_benchmark], exporters: [file/logs]}
`, folder+"/*.json", state, fmt.Sprintf("%s/metrics%d", out, start), fmt.Sprintf("%s/logs%d", out, start))
	}
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			return nil
		}
		return text
	}
	benchmarktest.New(benchmarktest.Options{RunID: "first"}).Write(t, folder)
	runCollector(t, yaml(0), func() bool { return bytes.Contains(read("logs0"), []byte("fpm.benchmark.point")) })

	second := benchmarktest.New(benchmarktest.Options{RunID: "second", Ranks: 1})
	benchmarktest.WriteFile(t, folder+"/second.json", second.Merged.JSON())
	runCollector(t, yaml(1), func() bool { return bytes.Contains(read("logs1"), []byte("fpm.benchmark.point")) })

	for name, runs := range map[string]map[string]int{"0": {"first": 10}, "1": {"second": 5}} {
		durations, points := map[string]int{}, map[string]int{}
		for line := range bytes.Lines(read("metrics" + name)) {
			md, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(line)
			require.NoError(t, err)
			sink := &metricsSink{}
			require.NoError(t, sink.ConsumeMetrics(t.Context(), md))
			for _, p := range named(sink.points(), "fpm.benchmark.step.duration") {
				durations[p.resource["fpm.benchmark.run_id"].(string)]++
			}
		}
		for line := range bytes.Lines(read("logs" + name)) {
			ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(line)
			require.NoError(t, err)
			sink := &logsSink{}
			require.NoError(t, sink.ConsumeLogs(t.Context(), ld))
			run, _ := ld.ResourceLogs().At(0).Resource().Attributes().Get("fpm.benchmark.run_id")
			points[run.Str()] += len(events(sink.records(), "point"))
		}
		assert.Equal(t, runs, durations)
		assert.Equal(t, runs, points)
	}
}
