// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-fpm/otelcol-fpm/receiver/fpmtracereceiver/internal/metadata"
)

// BenchmarkRead reads a trace of 256 MiB (text) in mode once: one run is a whole
// file, so that ns/op is the time for it.
//
//	go test -run xxx -bench Read -benchtime 1x ./receiver/fpmtracereceiver
func BenchmarkRead(b *testing.B) {
	const text = 256 << 20
	dir := b.TempDir()
	asWritten, bySingleGzip := filepath.Join(dir, "members.jsonl.gz"), filepath.Join(dir, "single.jsonl.gz")
	rows := writeTrace(b, asWritten, text, 1<<20)
	writeTrace(b, bySingleGzip, text, text)
	for _, test := range []struct {
		name          string
		file          string
		metrics, logs bool
	}{
		{"metrics", asWritten, true, false},
		{"logs", asWritten, false, true},
		{"both", asWritten, true, true},
		{"both/one_member", bySingleGzip, true, true},
	} {
		b.Run(test.name, func(b *testing.B) {
			b.SetBytes(text)
			b.ReportAllocs()
			var most uint64
			for b.Loop() {
				most = max(most, readOnce(b, test.file, test.metrics, test.logs, rows))
			}
			seconds := b.Elapsed().Seconds() / float64(b.N)
			b.ReportMetric(float64(rows)/seconds, "rows/s")
			b.ReportMetric(float64(most)/(1<<20), "MiB-heap")
		})
	}
}

// writeTrace writes rows of at least size bytes, in members of at least member
// bytes of text.
func writeTrace(b *testing.B, path string, size, member int) (rows int64) {
	file, err := os.Create(path)
	require.NoError(b, err)
	defer file.Close()
	var text bytes.Buffer
	for written := 0; written < size; {
		writer, err := gzip.NewWriterLevel(file, gzip.DefaultCompression)
		require.NoError(b, err)
		for n := 0; n < member && written < size; rows++ {
			text.Reset()
			text.WriteString(rowOf{worker: "4192", counter: rows}.String())
			_, err = writer.Write(text.Bytes())
			require.NoError(b, err)
			n += text.Len()
			written += text.Len()
		}
		require.NoError(b, writer.Close())
	}
	return rows
}

// readOnce reads a file to its end; most is the largest heap that was seen.
func readOnce(b *testing.B, path string, metrics, logs bool, rows int64) (most uint64) {
	cfg := createDefaultConfig().(*Config)
	cfg.Include, cfg.Mode = []string{path}, modeOnce
	factory := NewFactory()
	settings := receivertest.NewNopSettings(metadata.Type)
	var parts []component.Component
	if metrics {
		part, err := factory.CreateMetrics(context.Background(), settings, cfg, consumertest.NewNop())
		require.NoError(b, err)
		parts = append(parts, part)
	}
	if logs {
		part, err := factory.CreateLogs(context.Background(), settings, cfg, consumertest.NewNop())
		require.NoError(b, err)
		parts = append(parts, part)
	}
	r := parts[0].(*traceReceiver)
	for _, part := range parts {
		require.NoError(b, part.Start(context.Background(), componenttest.NewNopHost()))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.running.Wait()
	}()
	for ticker := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case <-done:
			ticker.Stop()
			require.Equal(b, rows, r.reader.progress.rows)
			for _, part := range parts {
				require.NoError(b, part.Shutdown(context.Background()))
			}
			return most
		case <-ticker.C:
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			most = max(most, stats.HeapAlloc)
		}
	}
}
