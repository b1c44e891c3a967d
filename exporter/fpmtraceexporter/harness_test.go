// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-fpm/otelcol-fpm/exporter/fpmtraceexporter/internal/metadata"
	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
	"github.com/otelcol-fpm/otelcol-fpm/internal/segment"
	"github.com/otelcol-fpm/otelcol-fpm/internal/shared"
)

// rig is an exporter with a directory of its own, whose ledger is checked.
type rig struct {
	t         testing.TB
	dir       string
	cfg       *Config
	instances *shared.Instances[*instance]
	logs      exporter.Logs
	metrics   exporter.Metrics
	host      *statusHost
	telemetry *componenttest.Telemetry
	said      *observer.ObservedLogs
	settings  exporter.Settings

	mu    sync.Mutex
	taken int // records the exporter took
}

// newRig makes an exporter that is not started yet.
func newRig(t testing.TB, change func(*Config)) *rig {
	return rigIn(t, t.TempDir(), change)
}

func rigIn(t testing.TB, dir string, change func(*Config)) *rig {
	r := &rig{
		t: t, dir: dir, instances: &shared.Instances[*instance]{},
		host: &statusHost{}, telemetry: componenttest.NewTelemetry(),
	}
	factory := newFactory(r.instances)
	r.cfg = factory.CreateDefaultConfig().(*Config)
	r.cfg.Path = filepath.Join(dir, "fpm")
	r.cfg.Mode = modeFull
	if change != nil {
		change(r.cfg)
	}
	require.NoError(t, r.cfg.Validate())
	core, said := observer.New(zap.InfoLevel)
	r.said = said
	r.settings = exportertest.NewNopSettings(metadata.Type)
	r.settings.TelemetrySettings = r.telemetry.NewTelemetrySettings()
	r.settings.Logger = zap.New(core)
	var err error
	r.logs, err = factory.CreateLogs(context.Background(), r.settings, r.cfg)
	require.NoError(t, err)
	r.metrics, err = factory.CreateMetrics(context.Background(), r.settings, r.cfg)
	require.NoError(t, err)
	return r
}

// start starts both signals, with faults between the exporter and the disk if
// any.
func (r *rig) start(fs segment.FS) *rig {
	r.core().fs = fs
	require.NoError(r.t, r.logs.Start(context.Background(), r.host))
	require.NoError(r.t, r.metrics.Start(context.Background(), r.host))
	return r
}

// instance is the one of the rig's configuration, nil when it is forgotten.
func (r *rig) instance() *instance {
	var forget func()
	found := r.instances.Of(r.cfg, func(made func()) *instance {
		forget = made
		return nil
	})
	if forget != nil {
		forget()
	}
	return found
}

// core is the one exporter behind both signals.
func (r *rig) core() *traceExporter {
	return r.instance().exporter
}

func (r *rig) stop() {
	r.t.Helper()
	require.NoError(r.t, r.stopWithin(context.Background()))
	r.checkLedger()
}

func (r *rig) stopWithin(ctx context.Context) error {
	if err := r.metrics.Shutdown(ctx); err != nil {
		return err
	}
	return r.logs.Shutdown(ctx)
}

// send sends log records of one producer.
func (r *rig) send(producer string, passes ...pass) {
	r.t.Helper()
	require.NoError(r.t, r.logs.ConsumeLogs(context.Background(), logsOf(producer, passes...)))
	r.took(len(passes))
}

func (r *rig) took(records int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken += records
}

// pass is a forward pass in short.
type pass struct {
	worker  string
	rank    int64
	counter int64
	// pad makes the row longer, by an unknown key.
	pad int
	at  time.Time
}

func counted(from, to int64) (passes []pass) {
	for counter := from; counter < to; counter++ {
		passes = append(passes, pass{counter: counter})
	}
	return passes
}

func logsOf(producer string, passes ...pass) plog.Logs {
	logs := plog.NewLogs()
	resource := logs.ResourceLogs().AppendEmpty()
	describeWorker(resource.Resource(), producer)
	scope := resource.ScopeLogs().AppendEmpty()
	for _, pass := range passes {
		entry := scope.LogRecords().AppendEmpty()
		entry.SetEventName(fpm.EventForwardPass)
		entry.SetObservedTimestamp(pcommon.NewTimestampFromTime(pass.at))
		body := entry.Body().SetEmptyMap()
		body.PutInt("version", 1)
		body.PutStr("worker_id", pass.worker)
		body.PutInt("dp_rank", pass.rank)
		body.PutInt("counter_id", pass.counter)
		body.PutDouble("wall_time", 0.0123)
		for _, name := range []string{"scheduled_requests", "queued_requests"} {
			group := body.PutEmptyMap(name)
			group.PutInt("num_prefill_requests", 1)
			group.PutInt("sum_prefill_tokens", 512)
			group.PutDouble("var_prefill_length", 0)
			if name == "scheduled_requests" {
				group.PutInt("sum_prefill_kv_tokens", 64)
			}
			group.PutInt("num_decode_requests", pass.counter%64)
			group.PutInt("sum_decode_kv_tokens", 16384+pass.counter)
			group.PutDouble("var_decode_kv_tokens", 100.25)
		}
		if pass.pad > 0 {
			body.PutStr("pad", strings.Repeat("x", pass.pad))
		}
	}
	return logs
}

func describeWorker(resource pcommon.Resource, producer string) {
	resource.Attributes().PutStr(fpm.AttrServiceNamespace, "default")
	resource.Attributes().PutStr(fpm.AttrServiceName, "backend")
	resource.Attributes().PutStr(fpm.AttrServiceInstanceID, producer)
	resource.Attributes().PutStr(fpm.AttrWorkerID, producer)
}

// row is what the tests look at in a row.
type row struct {
	Timestamp int64
	Event     struct {
		Schema string
		Source struct {
			Namespace, Component string
			ProducerID           string `json:"producer_id"`
		}
		CaptureMode      string `json:"capture_mode"`
		ObservedAtUnixMS int64  `json:"observed_at_unix_ms"`
		FPM              struct {
			WorkerID  string `json:"worker_id"`
			DPRank    int64  `json:"dp_rank"`
			CounterID int64  `json:"counter_id"`
		}
	}
}

// rows reads all segments whose names contain part, in the order of their
// names.
func (r *rig) rows(part string) (rows []row) {
	r.t.Helper()
	for _, name := range r.files() {
		if !strings.Contains(name, part) {
			continue
		}
		file, err := os.Open(filepath.Join(r.dir, name))
		require.NoError(r.t, err)
		reader, err := gzip.NewReader(file)
		require.NoError(r.t, err, name)
		text, err := io.ReadAll(reader)
		require.NoError(r.t, err, name)
		require.NoError(r.t, file.Close())
		for line := range strings.Lines(string(text)) {
			require.True(r.t, strings.HasSuffix(line, "\n"))
			var parsed row
			require.NoError(r.t, json.Unmarshal([]byte(line), &parsed))
			rows = append(rows, parsed)
		}
	}
	return rows
}

func (r *rig) files() (names []string) {
	r.t.Helper()
	entries, err := os.ReadDir(r.dir)
	require.NoError(r.t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func counters(rows []row) (counters []int64) {
	for i := range rows {
		counters = append(counters, rows[i].Event.FPM.CounterID)
	}
	return counters
}

func span(from, to int64) (counters []int64) {
	for counter := from; counter < to; counter++ {
		counters = append(counters, counter)
	}
	return counters
}

// sum adds a counter's points up, those with the given value of their one
// attribute, or all.
func (r *rig) sum(name, value string) (total int64) {
	r.t.Helper()
	found, err := r.telemetry.GetMetric("otelcol_exporter_fpm_trace_" + name)
	if err != nil {
		return 0 // nothing was counted
	}
	for _, point := range found.Data.(metricdata.Sum[int64]).DataPoints {
		if value == "" || point.Attributes.ToSlice()[0].Value.AsString() == value {
			total += point.Value
		}
	}
	return total
}

// checkLedger: records taken = rows{written} + rows{superseded} + dropped.
func (r *rig) checkLedger() {
	r.t.Helper()
	assert.Equal(r.t, int64(r.taken), r.sum("rows", "")+r.sum("dropped", ""),
		"written %d, superseded %d, dropped %d", r.sum("rows", outcomeWritten), r.sum("rows", outcomeSuperseded), r.sum("dropped", ""))
}

// statusHost remembers the status that was reported.
type statusHost struct {
	mu     sync.Mutex
	events []*componentstatus.Event
}

func (*statusHost) GetExtensions() map[component.ID]component.Component { return nil }

func (h *statusHost) Report(event *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, event)
}

func (h *statusHost) reported() (all []componentstatus.Status) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, event := range h.events {
		all = append(all, event.Status())
	}
	return all
}
