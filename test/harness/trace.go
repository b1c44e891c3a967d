// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Row is a row of a trace, dynamo.fpm.trace.v1.
type Row struct {
	Timestamp int64 `json:"timestamp"`
	Event     struct {
		Schema string `json:"schema"`
		Source struct {
			Namespace  string `json:"namespace"`
			Component  string `json:"component"`
			ProducerID string `json:"producer_id"`
		} `json:"source"`
		CaptureMode      string          `json:"capture_mode"`
		ObservedAtUnixMs int64           `json:"observed_at_unix_ms"`
		FPM              json.RawMessage `json:"fpm"`
	} `json:"event"`
}

// Record reads the row's `fpm` object.
func (r *Row) Record(tb testing.TB) (record Record) {
	tb.Helper()
	if err := json.Unmarshal(r.Event.FPM, &record); err != nil {
		tb.Fatalf("%v in %s", err, r.Event.FPM)
	}
	return record
}

// Segments are the trace files under a path, by producer and then in the order
// of their index.
func Segments(tb testing.TB, path string) []string {
	tb.Helper()
	files, err := filepath.Glob(path + ".*.jsonl.gz")
	if err != nil {
		tb.Fatal(err)
	}
	slices.Sort(files)
	return files
}

// Rows reads all segments under a path. Each must be whole.
func Rows(tb testing.TB, path string) (rows []Row) {
	tb.Helper()
	for _, name := range Segments(tb, path) {
		for line := range bytes.Lines(gunzip(tb, name)) {
			decoder := json.NewDecoder(bytes.NewReader(line))
			decoder.DisallowUnknownFields()
			var row Row
			if err := decoder.Decode(&row); err != nil {
				tb.Fatalf("%s: %v in %s", name, err, line)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func gunzip(tb testing.TB, name string) []byte {
	tb.Helper()
	f, err := os.Open(name)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	reader, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return text
}
