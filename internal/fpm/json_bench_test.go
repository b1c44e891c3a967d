// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func BenchmarkReadRow(b *testing.B) {
	line, err := os.ReadFile("testdata/row/v1.jsonl")
	require.NoError(b, err)
	reader := new(RowReader)
	var payload []byte
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, payload, err = reader.Read(payload[:0], line); err != nil {
			b.Fatal(err)
		}
	}
}

// TestReadAllocates: nothing, once the names are known.
func TestReadAllocates(t *testing.T) {
	line, err := os.ReadFile("testdata/row/v1.jsonl")
	require.NoError(t, err)
	reader := new(RowReader)
	var payload []byte
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, payload, err = reader.Read(payload[:0], line)
	}))
	require.NoError(t, err)
}
