// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusexporter"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/confignet"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-fpm/otelcol-fpm/processor/gaugededupprocessor"
)

// page is the stock Prometheus exporter on a socket of its own.
type page struct {
	exporter.Metrics
	t      *testing.T
	socket string
}

func startPage(t *testing.T) *page {
	t.Helper()
	factory := prometheusexporter.NewFactory()
	config := factory.CreateDefaultConfig().(*prometheusexporter.Config)
	p := &page{t: t, socket: filepath.Join(filepath.Dir(socketPath(t)), "page")}
	config.ServerConfig.NetAddr = confignet.AddrConfig{Transport: confignet.TransportTypeUnix, Endpoint: p.socket}
	var err error
	p.Metrics, err = factory.CreateMetrics(t.Context(), exportertest.NewNopSettings(factory.Type()), config)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, p.Shutdown(context.Background())) })
	return p
}

// families is what a Prometheus that knows native histograms would read.
func (p *page) families() map[string]*dto.MetricFamily {
	p.t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", p.socket)
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, "http://page/metrics", http.NoBody)
	require.NoError(p.t, err)
	request.Header.Set("Accept", string(expfmt.NewFormat(expfmt.TypeProtoDelim)))
	response, err := transport.RoundTrip(request)
	require.NoError(p.t, err)
	defer response.Body.Close()
	require.Equal(p.t, http.StatusOK, response.StatusCode)
	families := map[string]*dto.MetricFamily{}
	decoder := expfmt.NewDecoder(response.Body, expfmt.ResponseFormat(response.Header))
	for {
		family := new(dto.MetricFamily)
		if err := decoder.Decode(family); errors.Is(err, io.EOF) {
			return families
		} else {
			require.NoError(p.t, err)
		}
		families[family.GetName()] = family
	}
}

// dedup is gauge_dedup as it ships for TokenSpeed.
func dedup(t *testing.T, next consumer.Metrics) consumer.Metrics {
	t.Helper()
	factory := gaugededupprocessor.NewFactory()
	config := factory.CreateDefaultConfig().(*gaugededupprocessor.Config)
	config.Tolerance = 100 * time.Millisecond
	processor, err := factory.CreateMetrics(t.Context(), processortest.NewNopSettings(factory.Type()), config, next)
	require.NoError(t, err)
	require.NoError(t, processor.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, processor.Shutdown(context.Background())) })
	return processor
}

// The names on a Prometheus page are the engine's own, the values are what it
// said; with gauge_dedup as it should be, and with stock components alone.
func TestPrometheusPage(t *testing.T) {
	const rounds = 5
	for name, pipeline := range map[string]func(t *testing.T, next consumer.Metrics) consumer.Metrics{
		"gauge_dedup": dedup,
		"stock":       func(_ *testing.T, next consumer.Metrics) consumer.Metrics { return next },
	} {
		t.Run(name, func(t *testing.T) {
			p := startPage(t)
			g := started(t, pipeline(t, p))
			engine := g.push()
			var seq int64
			for round := range int64(rounds) {
				var events []any
				for _, entry := range tokenSpeed {
					event := wireEvent(pairs{
						{"timestamp_ns", time.Now().UnixNano()}, {"metric", entry.metric}, {"operation", entry.operation.String()}, {"value", round + 1},
					})
					if entry.operation == operationObserve {
						event[fieldValue], event[fieldWeight] = 0.01, 3
						events = append(events, event)
					}
					events = append(events, event)
				}
				other := wireEvent(pairs{{"timestamp_ns", time.Now().UnixNano()}, {"metric", "myengine:work"}, {"operation", "observe"}, {"value", 0.5}, {"weight", 7}})
				events = append(events, other)
				engine.says(1, seq, events...)
				seq += int64(len(events))
				g.eventually("delivered", "", "", seq)
			}

			families := p.families()
			var names []string
			for _, entry := range tokenSpeed {
				names = append(names, entry.metric)
				require.Contains(t, families, entry.metric)
				family := families[entry.metric]
				assert.Equal(t, entry.description, family.GetHelp())
				require.Len(t, family.GetMetric(), 1, entry.metric)
				series := family.GetMetric()[0]
				assert.Equal(t, map[string]string{
					"model_name": "llama", "dp_rank": "0",
					"job": "tokenspeed", "instance": "gpu-7:1:1600000000000000000",
				}, labelsOf(series), "%s: a label without a value is none", entry.metric)
				switch entry.operation {
				case operationSet:
					assert.InDelta(t, rounds, series.GetGauge().GetValue(), 0, entry.metric)
				case operationInc:
					assert.InDelta(t, 1+2+3+4+5, series.GetCounter().GetValue(), 0, entry.metric)
				case operationObserve:
					assertHistogram(t, &entry, series.GetHistogram(), 0.01, rounds*2*3)
				}
			}
			native := families["myengine:work"].GetMetric()[0].GetHistogram()
			assert.Equal(t, uint64(rounds*7), native.GetSampleCount())
			assert.InDelta(t, rounds*7*0.5, native.GetSampleSum(), 1e-9)
			assert.NotNil(t, native.Schema, "an unknown histogram is a native one")
			names = append(names, "myengine:work", "target_info")
			slices.Sort(names)
			assert.Equal(t, names, slices.Sorted(maps.Keys(families)), "and no other name, no _ratio")
			g.ended(seq)
		})
	}
}

func labelsOf(series *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, label := range series.GetLabel() {
		if !strings.HasPrefix(label.GetName(), "otel_scope_") {
			labels[label.GetName()] = label.GetValue()
		}
	}
	return labels
}

// assertHistogram holds a histogram to one value that was observed count times.
func assertHistogram(t *testing.T, entry *catalogEntry, h *dto.Histogram, value float64, count uint64) {
	t.Helper()
	assert.Equal(t, count, h.GetSampleCount(), "%s: weights are counted", entry.metric)
	assert.InEpsilon(t, value*float64(count), h.GetSampleSum(), 1e-12, entry.metric)
	bounds := map[string]uint64{}
	for _, bucket := range h.GetBucket() {
		bounds[fmt.Sprint(bucket.GetUpperBound())] = bucket.GetCumulativeCount()
	}
	for _, bound := range entry.bounds {
		want := uint64(0)
		if value <= bound {
			want = count
		}
		assert.Equal(t, want, bounds[fmt.Sprint(bound)], "%s up to %v", entry.metric, bound)
	}
}
