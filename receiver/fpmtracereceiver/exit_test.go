// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusremotewriteexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/transformprocessor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"

	"github.com/otelcol-fpm/otelcol-fpm/exporter/fpmtraceexporter"
	"github.com/otelcol-fpm/otelcol-fpm/processor/gaugededupprocessor"
)

// exitConfig tells a process of this test that it is the Collector.
const exitConfig = "FPM_TRACE_EXIT_CONFIG"

// TestExitWhenDone: a Collector whose receivers are done ends by itself, with
// code 0, and with everything delivered that was on its way; also when they are
// done before it has started.
func TestExitWhenDone(t *testing.T) {
	if config := os.Getenv(exitConfig); config != "" {
		runCollector(config)
	}
	for _, test := range []struct {
		name string
		rows int64
	}{
		{"rows", 5000},
		{"nothing to be read", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, nil)
			if test.rows > 0 {
				r.append(r.path("p", 0), rows(0, test.rows/2), rows(test.rows/2, test.rows))
			}
			out := t.TempDir()
			config := filepath.Join(out, "config.yaml")
			require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `
receivers:
  fpm_trace: {include: [%q], mode: once, exit_when_done: true}
  fpm_trace/second: {include: [%q], mode: once, exit_when_done: true}
exporters:
  fpm_trace: {path: %q, mode: full}
service:
  pipelines: {logs: {receivers: [fpm_trace, fpm_trace/second], exporters: [fpm_trace]}}
  telemetry: {metrics: {level: none}}
`, r.cfg.Include[0], filepath.Join(r.dir, "none*"), filepath.Join(out, "fpm")), 0o600))
			process := exec.Command(os.Args[0], "-test.run", "^TestExitWhenDone$")
			process.Env = append(os.Environ(), exitConfig+"="+config)
			var said strings.Builder
			process.Stdout, process.Stderr = &said, &said
			require.NoError(t, process.Start())
			timer := time.AfterFunc(30*time.Second, func() { _ = process.Process.Kill() })
			defer timer.Stop()
			require.NoError(t, process.Wait(), said.String())
			assert.Contains(t, said.String(), "Done: ")
			assert.Contains(t, said.String(), "Shutdown complete")
			assert.NotContains(t, said.String(), "\terror\t")

			w := &traceWriter{t: t, dir: out}
			require.NoError(t, os.Remove(config))
			assert.Len(t, w.events()["p p"], int(test.rows))
		})
	}
}

// runCollector is the main function of a distribution with what the test needs.
func runCollector(config string) {
	command := otelcol.NewCommand(otelcol.CollectorSettings{
		BuildInfo: component.NewDefaultBuildInfo(),
		Factories: func() (f otelcol.Factories, err error) {
			f.Telemetry = otelconftelemetry.NewFactory()
			if f.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](NewFactory()); err != nil {
				return f, err
			}
			f.Processors, err = otelcol.MakeFactoryMap[processor.Factory](gaugededupprocessor.NewFactory(), transformprocessor.NewFactory())
			if err != nil {
				return f, err
			}
			f.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](fpmtraceexporter.NewFactory(), prometheusremotewriteexporter.NewFactory())
			return f, err
		},
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs:              []string{"file:" + config},
			ProviderFactories: []confmap.ProviderFactory{envprovider.NewFactory(), fileprovider.NewFactory()},
		}},
	})
	command.SetArgs([]string{})
	if err := command.Execute(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}
