// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package stocktest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusremotewriteexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/deltatocumulativeprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/intervalprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-fpm/otelcol-fpm/processor/gaugededupprocessor"
)

// collector is a Collector in this process, with two components of its own: the receiver inject, through which a test gives
// batches to the pipeline, and the exporter capture, which keeps what arrives.
type collector struct {
	t        *testing.T
	pipeline consumer.Metrics
	logs     *observer.ObservedLogs

	mu       sync.Mutex
	captured []pmetric.Metrics
}

func (c *collector) consume(md pmetric.Metrics) {
	require.NoError(c.t, c.pipeline.ConsumeMetrics(context.Background(), md))
}

func (c *collector) arrived() []pmetric.Metrics {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]pmetric.Metrics{}, c.captured...)
}

// startCollector runs a Collector with the configuration until the test ends.
func startCollector(t *testing.T, yaml string) *collector {
	c := &collector{t: t}
	core, logs := observer.New(zapcore.WarnLevel)
	c.logs = logs
	col, err := otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo:               component.NewDefaultBuildInfo(),
		DisableGracefulShutdown: true,
		Factories:               c.factories,
		SkipSettingGRPCLogger:   true,
		LoggingOptions:          []zap.Option{zap.WrapCore(func(zapcore.Core) zapcore.Core { return core })},
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs:              []string{"yaml:" + yaml, "yaml:" + telemetryOff},
			ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()},
		}},
	})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- col.Run(context.Background()) }()
	t.Cleanup(func() {
		col.Shutdown()
		require.NoError(t, <-done)
	})
	require.Eventually(t, func() bool {
		select {
		case err := <-done:
			done <- err
			t.Fatalf("the Collector ended: %v", err)
		default:
		}
		return col.GetState() == otelcol.StateRunning
	}, 10*time.Second, 5*time.Millisecond)
	return c
}

const telemetryOff = `{service: {telemetry: {metrics: {level: none}}}}`

func (c *collector) factories() (f otelcol.Factories, err error) {
	inject := receiver.NewFactory(component.MustNewType("inject"), emptyConfig, receiver.WithMetrics(
		func(_ context.Context, _ receiver.Settings, _ component.Config, next consumer.Metrics) (receiver.Metrics, error) {
			c.pipeline = next
			return nothing{}, nil
		}, component.StabilityLevelDevelopment))
	capture := exporter.NewFactory(component.MustNewType("capture"), emptyConfig, exporter.WithMetrics(
		func(context.Context, exporter.Settings, component.Config) (exporter.Metrics, error) {
			return capturing{c: c}, nil
		},
		component.StabilityLevelDevelopment))

	f.Telemetry = otelconftelemetry.NewFactory()
	if f.Receivers, err = otelcol.MakeFactoryMap(inject, prometheusreceiver.NewFactory()); err != nil {
		return f, err
	}
	if f.Processors, err = otelcol.MakeFactoryMap[processor.Factory](gaugededupprocessor.NewFactory(),
		deltatocumulativeprocessor.NewFactory(), intervalprocessor.NewFactory()); err != nil {
		return f, err
	}
	f.Exporters, err = otelcol.MakeFactoryMap(capture, prometheusexporter.NewFactory(), prometheusremotewriteexporter.NewFactory())
	return f, err
}

func emptyConfig() component.Config { return &struct{}{} }

type nothing struct {
	component.StartFunc
	component.ShutdownFunc
}

type capturing struct {
	nothing
	c *collector
}

func (capturing) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

func (e capturing) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	e.c.mu.Lock()
	defer e.c.mu.Unlock()
	kept := pmetric.NewMetrics()
	md.CopyTo(kept)
	e.c.captured = append(e.c.captured, kept)
	return nil
}

func pipelineOf(receiver, processors, exporter string) string {
	return fmt.Sprintf("service: {pipelines: {metrics: {receivers: [%s], processors: [%s], exporters: [%s]}}}", receiver, processors, exporter)
}
