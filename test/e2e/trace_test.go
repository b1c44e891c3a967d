// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/python"
)

// traceRow is a row of dynamo.fpm.trace.v1.
type traceRow struct {
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

// segments are the trace files, by producer and then in the order of their
// index.
func (c *collector) segments(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(c.traces, "*.jsonl.gz"))
	require.NoError(t, err)
	slices.Sort(files)
	return files
}

// rows reads all segments with Go's gzip.
func (c *collector) rows(t *testing.T) []traceRow {
	t.Helper()
	var rows []traceRow
	for _, name := range c.segments(t) {
		text, err := gunzip(t, name)
		require.NoError(t, err, name)
		rows = append(rows, parseRows(t, text)...)
	}
	return rows
}

// gunzip reads the whole members of a file. The error says how it ended.
func gunzip(t *testing.T, name string) ([]byte, error) {
	t.Helper()
	raw, err := os.ReadFile(name)
	require.NoError(t, err)
	source := bytes.NewReader(raw)
	var text []byte
	for source.Len() > 0 {
		member, err := gzip.NewReader(source)
		if err != nil {
			return text, err
		}
		member.Multistream(false)
		whole, err := io.ReadAll(member)
		if err != nil {
			return text, err
		}
		text = append(text, whole...)
	}
	return text, nil
}

func parseRows(t *testing.T, text []byte) (rows []traceRow) {
	t.Helper()
	for line := range bytes.Lines(text) {
		require.Equal(t, byte('\n'), line[len(line)-1], "a row that ends with its file: %s", line)
		strict := json.NewDecoder(bytes.NewReader(line))
		strict.DisallowUnknownFields()
		var row traceRow
		require.NoError(t, strict.Decode(&row), "%s", line)
		rows = append(rows, row)
	}
	return rows
}

// assertRowsAreSent checks that each message is one row, in the order of its
// rank, and byte for byte what was sent.
func assertRowsAreSent(t *testing.T, rows []traceRow, want map[int][]sent) {
	t.Helper()
	next := map[int]int{}
	for _, row := range rows {
		var r record
		require.NoError(t, json.Unmarshal(row.Event.FPM, &r))
		require.Less(t, next[r.DPRank], len(want[r.DPRank]), "more rows than messages of rank %d", r.DPRank)
		require.Equal(t, string(want[r.DPRank][next[r.DPRank]].FPM), string(row.Event.FPM))
		next[r.DPRank]++
		require.Equal(t, "dynamo.fpm.trace.v1", row.Event.Schema)
		require.Equal(t, "full", row.Event.CaptureMode)
		require.Equal(t, "default", row.Event.Source.Namespace)
		require.Equal(t, "backend", row.Event.Source.Component)
	}
	for rank, all := range want {
		assert.Equal(t, len(all), next[rank], "rows of rank %d", rank)
	}
}

// assertGzipReads checks that gzip and Python read a closed segment, to the
// same text that Go does.
func assertGzipReads(t *testing.T, name string) {
	t.Helper()
	text, err := gunzip(t, name)
	require.NoError(t, err)
	out, err := exec.Command("gzip", "-t", name).CombinedOutput()
	require.NoError(t, err, "gzip -t: %s", out)
	out, err = exec.Command(python.Path(t), "-c",
		"import gzip, sys; sys.stdout.buffer.write(gzip.open(sys.argv[1]).read())", name).Output()
	require.NoError(t, err)
	assert.True(t, bytes.Equal(text, out), "Python reads something else than Go")
}

// assertGrowingSegmentReads checks a segment that is being written: all of its
// whole members read, and at most the last is cut.
func assertGrowingSegmentReads(t *testing.T, name string) (rows int) {
	t.Helper()
	text, err := gunzip(t, name)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		require.NoError(t, err)
	}
	return len(parseRows(t, text))
}
