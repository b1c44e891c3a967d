// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-fpm/otelcol-fpm/exporter/fpmtraceexporter"
	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
	"github.com/otelcol-fpm/otelcol-fpm/internal/histogramconfig"
	"github.com/otelcol-fpm/otelcol-fpm/receiver/fpmtracereceiver/internal/metadata"
)

// traceWriter is an fpm_trace exporter that writes into a directory.
type traceWriter struct {
	t       *testing.T
	dir     string
	logs    exporter.Logs
	metrics exporter.Metrics
}

func newTraceWriter(t *testing.T) *traceWriter {
	w := &traceWriter{t: t, dir: t.TempDir()}
	factory := fpmtraceexporter.NewFactory()
	cfg := factory.CreateDefaultConfig().(*fpmtraceexporter.Config)
	cfg.Path = filepath.Join(w.dir, "fpm")
	cfg.Mode = "full"
	cfg.RollBytes = 20_000
	cfg.MaxSegments = 1_000_000
	cfg.QueueSize = 1_000_000
	settings := exportertest.NewNopSettings(factory.Type())
	var err error
	w.logs, err = factory.CreateLogs(t.Context(), settings, cfg)
	require.NoError(t, err)
	w.metrics, err = factory.CreateMetrics(t.Context(), settings, cfg)
	require.NoError(t, err)
	require.NoError(t, w.logs.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, w.metrics.Start(t.Context(), componenttest.NewNopHost()))
	return w
}

// close ends the writer and returns the events of its rows.
func (w *traceWriter) close() map[string][]string {
	require.NoError(w.t, w.logs.Shutdown(context.Background()))
	require.NoError(w.t, w.metrics.Shutdown(context.Background()))
	return w.events()
}

// events are those of all rows, by producer and worker: rows of one batch are
// put together by worker.
func (w *traceWriter) events() map[string][]string {
	events := map[string][]string{}
	files, err := filepath.Glob(filepath.Join(w.dir, "*"))
	require.NoError(w.t, err)
	for _, path := range files { // in the order of their names
		file, err := os.Open(path)
		require.NoError(w.t, err)
		reader, err := gzip.NewReader(file)
		require.NoError(w.t, err)
		text, err := io.ReadAll(reader)
		require.NoError(w.t, err)
		require.NoError(w.t, file.Close())
		for line := range strings.Lines(string(text)) {
			var row struct {
				Event json.RawMessage
			}
			require.NoError(w.t, json.Unmarshal([]byte(line), &row))
			var event struct {
				Source struct {
					ProducerID string `json:"producer_id"`
				}
				FPM struct {
					WorkerID string `json:"worker_id"`
				}
			}
			require.NoError(w.t, json.Unmarshal(row.Event, &event))
			key := event.Source.ProducerID + " " + event.FPM.WorkerID
			events[key] = append(events[key], string(row.Event))
		}
	}
	return events
}

// copyTrace reads a directory of traces with the receiver into a writer, by
// logs or by metrics.
func copyTrace(t *testing.T, dir string, w *traceWriter, by signal) {
	cfg := createDefaultConfig().(*Config)
	cfg.Include, cfg.Mode = []string{filepath.Join(dir, "*.jsonl.gz")}, modeOnce
	factory := NewFactory()
	settings := receivertest.NewNopSettings(metadata.Type)
	var (
		part component.Component
		err  error
	)
	if by == signalLogs {
		part, err = factory.CreateLogs(t.Context(), settings, cfg, w.logs)
	} else {
		part, err = factory.CreateMetrics(t.Context(), settings, cfg, w.metrics)
	}
	require.NoError(t, err)
	core := part.(*traceReceiver)
	require.NoError(t, part.Start(t.Context(), componenttest.NewNopHost()))
	core.running.Wait()
	require.NoError(t, part.Shutdown(context.Background()))
}

// stream makes random forward passes.
type stream struct{ *rand.Rand }

func (s stream) count() int64 { return s.Int64() >> s.IntN(63) }

func (s stream) measure() float64 {
	return s.ExpFloat64() * math.Pow(10, float64(s.IntN(40)-20))
}

func (s stream) text() string {
	runes := []rune("abc-._ äöü€𝄞\n\"\\\x00\u2028<&")
	text := make([]rune, s.IntN(12))
	for i := range text {
		text[i] = runes[s.IntN(len(runes))]
	}
	return string(text)
}

func (s stream) fill(value pcommon.Value, depth int) {
	switch s.IntN(8 - 2*min(1, depth/3)) {
	case 0:
		value.SetInt(s.count())
	case 1:
		value.SetInt(-s.count())
	case 2:
		value.SetDouble(math.Float64frombits(s.Uint64() &^ (1 << 62))) // never NaN or Inf, which become null
	case 3:
		value.SetStr(s.text())
	case 4:
		value.SetBool(s.IntN(2) == 0)
	case 5: // null
	case 6:
		list := value.SetEmptySlice()
		for range s.IntN(4) {
			s.fill(list.AppendEmpty(), depth+1)
		}
	default:
		nested := value.SetEmptyMap()
		for range s.IntN(4) {
			s.fill(nested.PutEmpty("k"+s.text()), depth+1)
		}
	}
}

func (s stream) record(r *fpm.Record) {
	for i := range fpm.Metrics[:fpm.Gauges] {
		metric := &fpm.Metrics[i]
		if count := metric.Count(r); count != nil {
			*count = s.count()
		} else {
			*metric.Value(r) = s.measure()
		}
	}
	if s.IntN(4) > 0 {
		r.WallTime = s.ExpFloat64()
	}
	r.CounterID = s.count()
}

func (s stream) body(dst pcommon.Map, r *fpm.Record) {
	unknown := func(dst pcommon.Map) {
		for range s.IntN(2) {
			s.fill(dst.PutEmpty("x-"+s.text()), 0)
		}
	}
	unknown(dst)
	dst.PutInt("version", 1)
	dst.PutStr("worker_id", r.WorkerID)
	dst.PutInt("dp_rank", r.DPRank)
	dst.PutInt("counter_id", r.CounterID)
	if r.HasTimingScope {
		dst.PutStr("timing_scope", r.TimingScope)
	}
	if s.IntN(5) == 0 {
		dst.PutInt("wall_time", 0)
	} else {
		dst.PutDouble("wall_time", r.WallTime)
	}
	for _, name := range []string{"scheduled_requests", "queued_requests"} {
		group := dst.PutEmptyMap(name)
		for i := range fpm.Metrics[:fpm.Gauges] {
			metric := &fpm.Metrics[i]
			of, field, _ := strings.Cut(metric.Field, ".")
			if of != name {
				continue
			}
			unknown(group)
			if count := metric.Count(r); count != nil {
				group.PutInt(field, *count)
			} else {
				group.PutDouble(field, *metric.Value(r))
			}
		}
	}
	unknown(dst)
}

// TestRoundTripOfLogs: rows that the exporter wrote from random records, read
// and written again, have the same events byte by byte: identity, capture mode,
// time and record.
func TestRoundTripOfLogs(t *testing.T) {
	for seed := range uint64(3) {
		s := stream{rand.New(rand.NewPCG(seed, 9))}
		first := newTraceWriter(t)
		at := began
		for range 60 {
			logs := plog.NewLogs()
			for range 1 + s.IntN(3) {
				resource := logs.ResourceLogs().AppendEmpty()
				// Names that are made alike as files, and unlike again.
				producer := []string{"a", "b/c", "b.c", "", "ü€", "4192"}[s.IntN(6)]
				resource.Resource().Attributes().PutStr(fpm.AttrServiceNamespace, "ns "+producer)
				resource.Resource().Attributes().PutStr(fpm.AttrServiceName, "backend")
				resource.Resource().Attributes().PutStr(fpm.AttrServiceInstanceID, producer)
				scope := resource.ScopeLogs().AppendEmpty()
				for range s.IntN(30) {
					at = at.Add(time.Duration(s.IntN(30)) * time.Millisecond) // also none, and then back
					if s.IntN(50) == 0 {
						at = at.Add(-time.Second)
					}
					record := fpm.Record{WorkerID: []string{"", "w\n" + producer}[s.IntN(2)], DPRank: s.Int64N(4), HasTimingScope: s.IntN(3) == 0, TimingScope: s.text()}
					s.record(&record)
					entry := scope.LogRecords().AppendEmpty()
					entry.SetEventName(fpm.EventForwardPass)
					entry.SetObservedTimestamp(pcommon.NewTimestampFromTime(at))
					if s.IntN(3) == 0 {
						entry.Attributes().PutStr(fpm.AttrCaptureMode, fpm.CaptureSampled)
					}
					s.body(entry.Body().SetEmptyMap(), &record)
				}
			}
			require.NoError(t, first.logs.ConsumeLogs(t.Context(), logs))
		}
		written := first.close()
		require.Len(t, written, 12)

		second := newTraceWriter(t)
		copyTrace(t, first.dir, second, signalLogs)
		again := second.close()
		requireSameRows(t, written, again)
	}
}

// TestRoundTripOfMetrics: the same by way of metrics, for full traces whose rows
// are at least a millisecond apart.
func TestRoundTripOfMetrics(t *testing.T) {
	s := stream{rand.New(rand.NewPCG(1, 10))}
	first := newTraceWriter(t)
	at := pcommon.NewTimestampFromTime(began)
	histogram := histogramconfig.Default()
	form := histogram.Form()
	links := map[fpm.RankAttributes]*fpm.Links{}
	for range 40 {
		metrics := pmetric.NewMetrics()
		resource := metrics.ResourceMetrics().AppendEmpty()
		producer := fmt.Sprint("p", s.IntN(4))
		resource.Resource().Attributes().PutStr(fpm.AttrServiceNamespace, "default")
		resource.Resource().Attributes().PutStr(fpm.AttrServiceName, "backend")
		resource.Resource().Attributes().PutStr(fpm.AttrServiceInstanceID, producer)
		resource.Resource().Attributes().PutStr(fpm.AttrWorkerID, "worker "+producer)
		worker := fpm.NewWorkerMetrics(resource.ScopeMetrics().AppendEmpty(), form, 20)
		for range 20 {
			at += pcommon.Timestamp(1+s.IntN(30)) * pcommon.Timestamp(time.Millisecond)
			record := fpm.Record{WorkerID: "worker " + producer, DPRank: s.Int64N(4), HasTimingScope: s.IntN(3) == 0, TimingScope: "model_step_cuda"}
			if !record.HasTimingScope {
				record.TimingScope = ""
			}
			s.record(&record)
			key := record.Attributes()
			if links[key] == nil {
				links[key] = &fpm.Links{Began: at - 1}
			}
			worker.Pass(fpm.Pass{Record: &record, Time: at, CounterStart: at - 1}, links[key])
		}
		require.NoError(t, first.metrics.ConsumeMetrics(t.Context(), metrics))
	}
	written := first.close()
	require.Len(t, written, 4)

	second := newTraceWriter(t)
	copyTrace(t, first.dir, second, signalMetrics)
	again := second.close()
	requireSameRows(t, written, again)
}

func requireSameRows(t *testing.T, written, again map[string][]string) {
	t.Helper()
	require.Len(t, again, len(written))
	for key := range written {
		require.Len(t, again[key], len(written[key]), "%q", key)
		for i := range written[key] {
			require.Equal(t, written[key][i], again[key][i], "row %d of %q", i, key)
		}
	}
}
