// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

// TestSizing measures what pipelines cost at different loads, and prints the
// table of docs/operations.md. Nothing may be lost meanwhile.
func TestSizing(t *testing.T) {
	if os.Getenv("FPM_TEST_LONG") != "1" {
		t.Skip("set FPM_TEST_LONG=1 to measure for some minutes")
	}
	var table strings.Builder
	table.WriteString("| pipeline | ranks | messages a second | CPU | CPU a message | memory | trace files a day and rank |\n|---|---|---|---|---|---|---|\n")
	for _, pipeline := range []struct{ file, what, override string }{
		{"prometheus-scrape.yaml", "a page for Prometheus", "exporters: {prometheus: {endpoint: %q}}"},
		{"quickstart.yaml", "the same and full traces", "exporters: {prometheus: {endpoint: %q}}"},
	} {
		for _, load := range []struct{ ranks, rate int }{{2, 50}, {8, 100}, {64, 100}} {
			endpoint := harness.TCP(ports.Block(t, load.ranks))
			engine := harness.Simulate(t, endpoint, "--ranks", strconv.Itoa(load.ranks), "--rate", strconv.Itoa(load.rate), "--profile", "batch")
			collector := harness.StartCollector(t, harness.CollectorConfig{
				File:     pipeline.file,
				Override: fpmAt(endpoint, load.ranks) + fmt.Sprintf(pipeline.override, harness.Address(t)),
			})
			table.WriteString(fmt.Sprintf("| %s | %d |", pipeline.what, load.ranks))
			measure(t, collector, load.ranks, &table)
			collector.Stop(t)
			engine.Stop(t)
		}
	}
	fmt.Print(table.String())
}

// TestQueueSizing measures how much a message takes in the queue on disk, and
// prints the second table of docs/operations.md.
func TestQueueSizing(t *testing.T) {
	if os.Getenv("FPM_TEST_LONG") != "1" {
		t.Skip("set FPM_TEST_LONG=1 to measure for half a minute")
	}
	const ranks = 8
	endpoint := harness.TCP(ports.Block(t, ranks))
	engine := harness.Simulate(t, endpoint, "--ranks", strconv.Itoa(ranks), "--rate", "100", "--profile", "batch")
	collector := harness.StartCollector(t, harness.CollectorConfig{
		File: "otlp-gateway.yaml", Override: fpmAt(endpoint, ranks),
		Env: []string{"OTLP_ENDPOINT=" + harness.Address(t)},
	})
	time.Sleep(30 * time.Second)
	page := harness.Scrape(t, collector.Telemetry)
	fmt.Println("| signal | bytes a message | a queue of 1 GiB holds, at 800 messages a second |\n|---|---|---|")
	for _, signal := range []string{"metrics", "logs"} {
		each := page.Sum("otelcol_exporter_queue_size", "data_type", signal) / page.Sum("otelcol_receiver_fpm_delivered", "signal", signal)
		assert.Positive(t, each)
		fmt.Printf("| %s | %.0f | %.1f hours |\n", signal, each, (1<<30)/each/800/3600)
	}
	engine.Stop(t)
	collector.Stop(t)
}

// measure watches a Collector for some time and adds the cells of a row.
func measure(t *testing.T, collector *harness.Collector, ranks int, table *strings.Builder) {
	t.Helper()
	const warmUp, duration = 5 * time.Second, 30 * time.Second
	time.Sleep(warmUp)
	first, began := harness.Scrape(t, collector.Telemetry), time.Now()
	var last harness.Page
	memory := 0.0
	for time.Since(began) < duration {
		time.Sleep(time.Second)
		last = harness.Scrape(t, collector.Telemetry)
		memory = max(memory, last.Sum("otelcol_process_memory_rss"))
	}
	seconds := time.Since(began).Seconds()
	grew := func(metric string, labels ...string) float64 {
		return last.Sum(metric, labels...) - first.Sum(metric, labels...)
	}
	messages, cpu := grew("otelcol_receiver_fpm_messages"), grew("otelcol_process_cpu_seconds")
	traced := "–"
	if bytes := grew("otelcol_exporter_fpm_trace_bytes", "kind", "compressed"); bytes > 0 {
		traced = fmt.Sprintf("%.0f MB", bytes/seconds*86400/float64(ranks)/1e6)
	}
	table.WriteString(fmt.Sprintf(" %.0f | %.2f cores | %.0f µs | %.0f MB | %s |\n",
		messages/seconds, cpu/seconds, cpu/messages*1e6, memory/1e6, traced))
	assert.Zero(t, last.Sum("otelcol_receiver_fpm_dropped"))
	assert.Zero(t, last.Sum("otelcol_receiver_fpm_lost"))
}
