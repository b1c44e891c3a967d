// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/benchmarktest"
	"github.com/otelcol-fpm/otelcol-fpm/receiver/fpmbenchmarkreceiver/internal/metadata"
	"github.com/otelcol-fpm/otelcol-fpm/receiver/fpmbenchmarkreceiver/internal/metadatatest"
)

// sink is a consumer that takes or refuses as it is told, and keeps what it
// took. What it refuses it spoils first: nobody may rely on data that was handed
// on.
type sink[T any] struct {
	mu    sync.Mutex
	taken []T
	tries int
	// answer decides on the n-th try; nil takes all.
	answer func(try int) error
}

func (s *sink[T]) consume(ctx context.Context, data T, spoil func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries++
	if s.answer != nil {
		if err := s.answer(s.tries); err != nil {
			spoil()
			return err
		}
	}
	s.taken = append(s.taken, data)
	return ctx.Err()
}

func (s *sink[T]) tell(answer func(try int) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *sink[T]) all() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.taken)
}

func (*sink[T]) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

type metricsSink struct{ sink[pmetric.Metrics] }

func (s *metricsSink) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	return s.consume(ctx, md, func() { md.ResourceMetrics().RemoveIf(func(pmetric.ResourceMetrics) bool { return true }) })
}

type logsSink struct{ sink[plog.Logs] }

func (s *logsSink) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	return s.consume(ctx, ld, func() { ld.ResourceLogs().RemoveIf(func(plog.ResourceLogs) bool { return true }) })
}

var (
	errNow  = errors.New("try again")
	errEver = consumererror.NewPermanent(errors.New("never"))
)

func always(err error) func(int) error { return func(int) error { return err } }

// point is a metric point with all that identifies its series.
type point struct {
	resource   map[string]any
	metric     string
	unit       string
	attributes map[string]any
	value      float64
	whole      bool
	time       time.Time
}

func (s *metricsSink) points() []point {
	var points []point
	for _, md := range s.all() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					for _, p := range m.Gauge().DataPoints().All() {
						one := point{
							resource: rm.Resource().Attributes().AsRaw(), metric: m.Name(), unit: m.Unit(),
							attributes: p.Attributes().AsRaw(), value: p.DoubleValue(), time: p.Timestamp().AsTime(),
						}
						if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
							one.value, one.whole = float64(p.IntValue()), true
						}
						points = append(points, one)
					}
				}
			}
		}
	}
	return points
}

// named are the points of one metric.
func named(points []point, metric string) []point {
	return slices.DeleteFunc(slices.Clone(points), func(p point) bool { return p.metric != metric })
}

func (s *logsSink) records() []plog.LogRecord {
	var records []plog.LogRecord
	for _, ld := range s.all() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, record := range sl.LogRecords().All() {
					records = append(records, record)
				}
			}
		}
	}
	return records
}

// events are the records of one name.
func events(records []plog.LogRecord, name string) []plog.LogRecord {
	return slices.DeleteFunc(slices.Clone(records), func(r plog.LogRecord) bool { return r.EventName() != "fpm.benchmark."+name })
}

func attr(t *testing.T, record plog.LogRecord, name string) any {
	t.Helper()
	value, ok := record.Attributes().Get(name)
	require.True(t, ok, "no %s", name)
	return value.AsRaw()
}

func hasAttribute(record plog.LogRecord, name string) bool {
	_, ok := record.Attributes().Get(name)
	return ok
}

// wellFormed checks what holds for all metrics.
func wellFormed(t *testing.T, batches []pmetric.Metrics) {
	t.Helper()
	for _, md := range batches {
		require.NotZero(t, md.ResourceMetrics().Len())
		for _, rm := range md.ResourceMetrics().All() {
			require.NotZero(t, rm.ScopeMetrics().Len())
			for _, sm := range rm.ScopeMetrics().All() {
				require.NotZero(t, sm.Metrics().Len())
				assert.Equal(t, metadata.ScopeName, sm.Scope().Name())
				for _, m := range sm.Metrics().All() {
					require.Equal(t, pmetric.MetricTypeGauge, m.Type())
					require.NotZero(t, m.Gauge().DataPoints().Len())
					require.NotEmpty(t, m.Description())
					seen := map[string]bool{}
					for _, p := range m.Gauge().DataPoints().All() {
						require.NotZero(t, p.Timestamp())
						require.False(t, math.IsNaN(p.DoubleValue()) || math.IsInf(p.DoubleValue(), 0))
						key := fmt.Sprint(p.Attributes().AsRaw()) // fmt sorts keys
						require.False(t, seen[key], "one series twice")
						seen[key] = true
					}
				}
			}
		}
	}
}

// host keeps the component's status.
type host struct {
	component.Host
	mu         sync.Mutex
	events     []*componentstatus.Event
	extensions map[component.ID]component.Component
}

func newHost() *host { return &host{Host: componenttest.NewNopHost()} }

func (h *host) Report(event *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, event)
}

func (h *host) GetExtensions() map[component.ID]component.Component { return h.extensions }

func (h *host) statuses() []componentstatus.Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []componentstatus.Status
	for _, event := range h.events {
		all = append(all, event.Status())
	}
	return all
}

// rig is a receiver with its surroundings; use it inside synctest.
type rig struct {
	t         *testing.T
	folder    string
	config    *Config
	metrics   *metricsSink
	logs      *logsSink
	host      *host
	telemetry *componenttest.Telemetry
	lines     *observer.ObservedLogs
	receivers []component.Component
}

func newRig(t *testing.T, folder string, edits ...func(*Config)) *rig {
	t.Helper()
	g := &rig{t: t, folder: folder, metrics: &metricsSink{}, logs: &logsSink{}, host: newHost(), telemetry: componenttest.NewTelemetry()}
	g.config = createDefaultConfig().(*Config)
	g.config.Include = []string{filepath.Join(folder, "*.json")}
	for _, edit := range edits {
		edit(g.config)
	}
	require.NoError(t, g.config.Validate())
	return g
}

func (g *rig) settings() receiver.Settings {
	settings := metadatatest.NewSettings(g.telemetry)
	settings.ID = component.NewID(metadata.Type)
	core, lines := observer.New(zapcore.WarnLevel)
	g.lines = lines
	settings.Logger = zap.New(core)
	return settings
}

func (g *rig) start() {
	g.t.Helper()
	factory, settings := NewFactory(), g.settings()
	metrics, err := factory.CreateMetrics(g.t.Context(), settings, g.config, g.metrics)
	require.NoError(g.t, err)
	logs, err := factory.CreateLogs(g.t.Context(), settings, g.config, g.logs)
	require.NoError(g.t, err)
	g.receivers = []component.Component{metrics, logs}
	for _, r := range g.receivers {
		require.NoError(g.t, r.Start(g.t.Context(), g.host))
	}
	synctest.Wait()
}

func (g *rig) stop() {
	g.t.Helper()
	for _, r := range g.receivers {
		require.NoError(g.t, r.Shutdown(context.Background()))
	}
	g.receivers = nil
}

// pass lets time go by.
func (g *rig) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (g *rig) write(name string, text []byte) {
	g.t.Helper()
	benchmarktest.WriteFile(g.t, filepath.Join(g.folder, name), text)
}

func (g *rig) remove(names ...string) {
	g.t.Helper()
	for _, name := range names {
		require.NoError(g.t, os.Remove(filepath.Join(g.folder, name)))
	}
}

// counts are the values of one counter of the internal telemetry by its only
// attribute, without zeros.
func (g *rig) counts(name string) map[string]int64 {
	g.t.Helper()
	counts := map[string]int64{}
	got, err := g.telemetry.GetMetric("otelcol_receiver_fpm_benchmark_" + name)
	if err != nil {
		return counts // nothing counted yet
	}
	for _, p := range got.Data.(metricdata.Sum[int64]).DataPoints {
		if p.Value != 0 {
			counts[p.Attributes.ToSlice()[0].Value.AsString()] = p.Value
		}
	}
	return counts
}

// settled asserts the ledger: what was looked into is accounted for.
func (g *rig) settled() {
	g.t.Helper()
	rejected := int64(0)
	for reason, count := range g.counts("rejected") {
		if reason != string(rejectedLimit) {
			rejected += count
		}
	}
	assert.Equal(g.t, g.counts("files")["rejected"], rejected)
}

// inBubble runs a test in a synctest bubble with a folder of its own.
func inBubble(t *testing.T, test func(t *testing.T, folder string)) {
	t.Helper()
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) { test(t, folder) })
}
