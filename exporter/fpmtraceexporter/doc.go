// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package fpmtraceexporter writes forward passes as trace files.
//
//	logs ────▶ validate ──▶ event text ─┐                 ┌ producer: queue ─▶ segment.Writer
//	                                    ├─▶ [sampler] ─▶ ─┤
//	metrics ─▶ reconstruct ▶ event text ┘                 └ producer: …
//	(pipeline's goroutine, before the lock)  (under the lock)  (one goroutine a producer)
//
// The text of a row is made on the pipeline's goroutine, because telemetry
// data may not be kept when a consumer returns, and because text is what can be
// bounded in bytes; compression and disk are the producers' business. Queue and
// sampler are plain values under the exporter's one lock.
package fpmtraceexporter
