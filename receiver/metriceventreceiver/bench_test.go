// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.uber.org/zap"

	"github.com/otelcol-fpm/otelcol-fpm/receiver/metriceventreceiver/internal/metadata"
)

// benchIntake is an intake with a delivery that nobody runs.
func benchIntake(b *testing.B, change func(c *Config)) *intake {
	b.Helper()
	builder, err := metadata.NewTelemetryBuilder(componenttest.NewNopTelemetrySettings())
	if err != nil {
		b.Fatal(err)
	}
	counters := ledger{counters: builder}
	config := createDefaultConfig().(*Config)
	change(config)
	lines := &log{logger: zap.NewNop()}
	return &intake{
		producers: newProducers(config), ledger: counters, log: lines, maxEvents: config.Batch.MaxEvents,
		delivery: &delivery{queue: newQueue(queueEvents, config.Batch.MaxEvents), ledger: counters, log: lines, next: consumertest.NewNop()},
	}
}

// BenchmarkEvents is what an event costs from the frames of a message to the
// metrics of a batch: 512 events a message, 16 messages a batch.
func BenchmarkEvents(b *testing.B) {
	in := benchIntake(b, func(*Config) {})
	var events []any
	for i := range 512 {
		switch i % 3 {
		case 0:
			events = append(events, observes(3))
		case 1:
			events = append(events, wireEvent(pairs{{"metric", "tokenspeed:generation_tokens_total"}, {"operation", "inc"}}))
		default:
			events = append(events, wireEvent(pairs{{"value", 0.5}}))
		}
	}
	frames := framesOf(wireMessage(1, 0, 0, events...))
	var d decoder
	done := 0
	b.ReportAllocs()
	for b.Loop() {
		for range 16 {
			in.message(&d, frames, time.Now())
			done += 512
		}
		for _, c := range in.delivery.queue.take(8192) {
			for i := range c {
				in.delivery.batch.add(&c[i])
			}
		}
		in.delivery.batch.metrics(testNow)
		in.delivery.batch.end(true)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(done), "ns/event")
}

// BenchmarkSeriesMemory is what a series with three labels costs while it is
// remembered.
func BenchmarkSeriesMemory(b *testing.B) {
	const series = 100_000
	for b.Loop() {
		in := benchIntake(b, func(*Config) {})
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var d decoder
		for first := 0; first < series; first += 1000 {
			events := make([]any, 1000)
			for i := range events {
				events[i] = wireEvent(pairs{{"labels", pairs{{"model_name", "llama"}, {"app_key", "a"}, {"dp_rank", fmt.Sprint(first + i)}}}})
			}
			in.message(&d, framesOf(wireMessage(1, int64(first), 0, events...)), time.Now())
		}
		in.delivery.queue.take(series)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/series, "B/series")
		runtime.KeepAlive(in)
	}
}
