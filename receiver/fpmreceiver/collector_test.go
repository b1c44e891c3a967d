// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

// spoiler is an exporter that changes what it gets at once, as the Prometheus
// exporter does.
type spoiler struct {
	component.StartFunc
	component.ShutdownFunc
	mu     sync.Mutex
	points int
}

func (*spoiler) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

func (s *spoiler) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.points += len(pointsOf(md))
	for _, rm := range md.ResourceMetrics().All() {
		rm.Resource().Attributes().Clear()
		for _, sm := range rm.ScopeMetrics().All() {
			sm.Scope().SetName("spoiled")
			for _, m := range sm.Metrics().All() {
				m.SetName("spoiled")
				if m.Type() == pmetric.MetricTypeHistogram {
					for _, p := range m.Histogram().DataPoints().All() {
						p.Attributes().PutStr("spoiled", "yes")
						p.ExplicitBounds().SetAt(0, -1)
						p.BucketCounts().SetAt(0, 99)
					}
				}
			}
		}
	}
	return nil
}

// reader is an exporter that keeps what it gets and reads it later, from another
// goroutine, as one with a queue does.
type reader struct {
	component.StartFunc
	metrics metricsSink
	logs    logsSink
	queue   chan func()
	reading sync.WaitGroup
}

func (*reader) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (r *reader) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	r.queue <- func() { pointsOf(md) }
	return r.metrics.ConsumeMetrics(ctx, md)
}

func (r *reader) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	r.queue <- func() { _ = (&plog.ProtoMarshaler{}).LogsSize(ld) }
	return r.logs.ConsumeLogs(ctx, ld)
}

func (r *reader) Shutdown(context.Context) error {
	close(r.queue)
	r.reading.Wait()
	return nil
}

// One receiver serves two metrics pipelines, one of which changes what it gets,
// and a logs pipeline, in a whole Collector. (This is for the race detector.)
func TestPipelinesDoNotShareWhatTheyChange(t *testing.T) {
	const ranks, count = 4, 300
	spoils := &spoiler{}
	reads := &reader{queue: make(chan func(), 1<<16)}
	reads.reading.Go(func() {
		for read := range reads.queue {
			time.Sleep(time.Millisecond)
			read()
		}
	})
	nothing := func() component.Config { return &struct{}{} }
	spoilers := exporter.NewFactory(component.MustNewType("spoiler"), nothing,
		exporter.WithMetrics(func(context.Context, exporter.Settings, component.Config) (exporter.Metrics, error) {
			return spoils, nil
		}, component.StabilityLevelAlpha))
	readers := exporter.NewFactory(component.MustNewType("reader"), nothing,
		exporter.WithMetrics(func(context.Context, exporter.Settings, component.Config) (exporter.Metrics, error) {
			return reads, nil
		}, component.StabilityLevelAlpha),
		exporter.WithLogs(func(context.Context, exporter.Settings, component.Config) (exporter.Logs, error) {
			return struct {
				component.StartFunc
				component.ShutdownFunc
				consumer.Logs
			}{Logs: reads}, nil
		}, component.StabilityLevelAlpha))

	endpoints := ""
	for rank := range ranks {
		engine := publish(t, "PUB", func(conn net.Conn) {
			for n := range int64(count) {
				_, _ = conn.Write(wire(busy("w", rank, n).frames()))
				time.Sleep(time.Millisecond)
			}
			untilClosed(conn)
		})
		endpoints += fmt.Sprintf("{endpoint: %q}, ", engine.endpoint())
	}
	config := `yaml:
receivers:
  fpm:
    batch: {timeout: 10ms}
    endpoints: [` + endpoints + `]
exporters: {spoiler: , reader: }
service:
  telemetry: {metrics: {level: none}, logs: {level: error}}
  pipelines:
    metrics/spoiled: {receivers: [fpm], exporters: [spoiler]}
    metrics/read: {receivers: [fpm], exporters: [reader]}
    logs: {receivers: [fpm], exporters: [reader]}
`
	fpmFactory := NewFactory()
	collector, err := otelcol.NewCollector(otelcol.CollectorSettings{
		Factories: func() (otelcol.Factories, error) {
			return otelcol.Factories{
				Receivers: map[component.Type]receiver.Factory{fpmFactory.Type(): fpmFactory},
				Exporters: map[component.Type]exporter.Factory{spoilers.Type(): spoilers, readers.Type(): readers},
				Telemetry: otelconftelemetry.NewFactory(),
			}, nil
		},
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs: []string{config}, ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()},
		}},
		DisableGracefulShutdown: true,
	})
	require.NoError(t, err)
	ran := make(chan error, 1)
	go func() { ran <- collector.Run(context.Background()) }()
	require.Eventually(t, func() bool {
		return len(reads.logs.records()) == ranks*count && len(counters(reads.metrics.points())) == ranks*count
	}, 60*time.Second, 50*time.Millisecond)
	collector.Shutdown()
	require.NoError(t, <-ran)

	all := reads.metrics.points()
	wellFormed(t, all)
	contiguous(t, all)
	spoils.mu.Lock()
	defer spoils.mu.Unlock()
	assert.Len(t, all, spoils.points)
	for _, p := range all {
		assert.NotEqual(t, "spoiled", p.metric)
		assert.NotContains(t, p.attributes, "spoiled")
	}
}
