// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
	"github.com/otelcol-fpm/otelcol-fpm/internal/segment"
)

// busyEngine makes the forward passes of one rank under a changing load, as
// logs of batch records each: what a receiver sends of one engine.
func busyEngine(passes, batch int) (all []plog.Logs) {
	random := rand.New(rand.NewPCG(1, 2))
	at := time.UnixMilli(1782777601250)
	decode, kv := int64(40), int64(600_000)
	for counter := 0; counter < passes; counter += batch {
		logs := plog.NewLogs()
		resource := logs.ResourceLogs().AppendEmpty()
		describeWorker(resource.Resource(), "gpu-7:20380")
		scope := resource.ScopeLogs().AppendEmpty()
		for i := range batch {
			wall := 0.008 + 0.0001*float64(decode) + 0.002*random.ExpFloat64()
			at = at.Add(time.Duration(wall * 1e9))
			prefill, tokens, variance := int64(0), int64(0), 0.0
			if random.IntN(5) == 0 {
				prefill, tokens = 1+random.Int64N(3), 128+random.Int64N(8000)
				variance = float64(prefill-1) * random.Float64() * 1e5
			}
			decode = max(1, decode+random.Int64N(5)-2)
			kv = max(decode*100, kv+decode+random.Int64N(20_000)-10_000)
			queued := random.Int64N(4)
			entry := scope.LogRecords().AppendEmpty()
			entry.SetEventName(fpm.EventForwardPass)
			entry.SetObservedTimestamp(pcommon.NewTimestampFromTime(at))
			entry.SetTimestamp(entry.ObservedTimestamp())
			entry.Attributes().PutInt(fpm.AttrDPRank, 0)
			entry.Attributes().PutInt(fpm.AttrSequence, int64(counter+i))
			body := entry.Body().SetEmptyMap()
			body.PutInt("version", 1)
			body.PutStr("worker_id", "")
			body.PutInt("dp_rank", 0)
			body.PutInt("counter_id", int64(counter+i))
			body.PutDouble("wall_time", wall)
			scheduled := body.PutEmptyMap("scheduled_requests")
			scheduled.PutInt("num_prefill_requests", prefill)
			scheduled.PutInt("sum_prefill_tokens", tokens)
			scheduled.PutDouble("var_prefill_length", variance)
			scheduled.PutInt("sum_prefill_kv_tokens", tokens/4)
			scheduled.PutInt("num_decode_requests", decode)
			scheduled.PutInt("sum_decode_kv_tokens", kv)
			scheduled.PutDouble("var_decode_kv_tokens", float64(kv)*random.Float64()*10)
			waiting := body.PutEmptyMap("queued_requests")
			waiting.PutInt("num_prefill_requests", queued)
			waiting.PutInt("sum_prefill_tokens", queued*1500)
			waiting.PutDouble("var_prefill_length", float64(queued)*random.Float64()*1e5)
			waiting.PutInt("num_decode_requests", 0)
			waiting.PutInt("sum_decode_kv_tokens", 0)
			waiting.PutDouble("var_decode_kv_tokens", 0)
		}
		all = append(all, logs)
	}
	return all
}

// BenchmarkRowText is the work on the pipeline's goroutine: validation and the
// event's text, for a row.
func BenchmarkRowText(b *testing.B) {
	batches := busyEngine(4000, 20)
	in := newIntake()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%20 == 0 {
			in.logs(batches[i/20%len(batches)], modeFull, func(*intake) {})
		}
	}
}

// BenchmarkReconstruct is the same for a pass that comes as metrics.
func BenchmarkReconstruct(b *testing.B) {
	metrics := pmetric.NewMetrics()
	resource := metrics.ResourceMetrics().AppendEmpty()
	describeWorker(resource.Resource(), "gpu-7:20380")
	builder := fpm.NewWorkerMetrics(resource.ScopeMetrics().AppendEmpty(), fpm.ExplicitForm([]float64{0.01, 0.1}), 20)
	links := fpm.Links{Began: 1}
	for i := range int64(20) {
		builder.Pass(fpm.Pass{Record: &fpm.Record{CounterID: i, WallTime: 0.0123, Scheduled: fpm.Requests{NumDecodeRequests: 40}}, Time: pcommon.Timestamp(i+2) * 1e6, CounterStart: 1}, &links)
	}
	in := newIntake()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%20 == 0 {
			in.metrics(metrics, modeFull, func(*intake) {})
		}
	}
}

// BenchmarkFull is all that a row costs from the consumer to the file, the
// deflating included, at several batch sizes.
func BenchmarkFull(b *testing.B) {
	for _, batch := range []int{1, 20, 1000} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			batches := busyEngine(4000, batch)
			r := newRig(b, func(cfg *Config) { cfg.QueueSize = 1 << 20 }).start(nil)
			b.ReportAllocs()
			b.ResetTimer()
			rows := 0
			for ; rows < b.N; rows += batch {
				for r.core().queueLength() > 4096 {
					time.Sleep(50 * time.Microsecond) // or the queue would grow, as it does not in practice
				}
				require.NoError(b, r.logs.ConsumeLogs(b.Context(), batches[rows/batch%len(batches)]))
			}
			r.took(rows)
			r.stop() // writes what is left, inside the measured time
		})
	}
}

// BenchmarkCompression weighs the levels. The members are those of a sampled
// row, of a second at 10 and at 100 passes, and about the largest there are.
func BenchmarkCompression(b *testing.B) {
	in := newIntake()
	var rows [][]byte
	for _, logs := range busyEngine(4000, 20) {
		in.logs(logs, modeFull, func(*intake) {
			for i := range in.records {
				rows = append(rows, fpm.AppendRow(nil, int64(len(rows))*12, in.event(&in.records[i])))
			}
		})
	}
	for _, members := range []int{1, 10, 100, 1000} {
		for level := 1; level <= 9; level++ {
			b.Run(fmt.Sprintf("rows=%d/level=%d", members, level), func(b *testing.B) {
				compressor, err := segment.NewCompressor(level)
				require.NoError(b, err)
				set := segment.NewSet(segment.Options{Path: b.TempDir() + "/fpm", RollBytes: 1 << 40, MaxSegments: 1, DirectoryMode: 0o755})
				writer, _ := set.Open("p")
				var text []byte
				written, packed, lines := int64(0), int64(0), 0
				for i := 0; b.Loop(); i++ {
					text = append(text, rows[i%len(rows)]...)
					if (i+1)%members > 0 {
						continue
					}
					report, err := writer.Write(compressor, text, time.Time{})
					require.NoError(b, err)
					written, packed, lines = written+report.Text, packed+report.File, lines+report.Lines
					text = text[:0]
				}
				for _, closed := range writer.Close().Closed {
					require.NoError(b, closed.Finish())
				}
				if lines > 0 {
					b.ReportMetric(float64(written)/float64(packed), "ratio")
					b.ReportMetric(float64(packed)/float64(lines), "B/row")
					b.ReportMetric(float64(written)/float64(lines), "text-B/row")
				}
			})
		}
	}
}
