// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package fpmtracereceiver reads trace files back into a Collector.
//
//	include ─▶ scan ─▶ files, by series ─▶ segment.Reader ─▶ lines ─▶ fpm.RowReader ─▶ batch
//	                       ▲                                                             │
//	                       └── positions, in a storage extension ◀── commit ◀── metrics, logs ─▶ next consumers
//
// One goroutine does it all: files wait, so that a consumer that is slow or
// refuses holds up reading, and nothing is queued. A batch is built anew for
// every attempt; positions, links between points and counters move on only when
// it was taken. A pass visits each series for one member, so that no producer
// waits for another's backlog.
package fpmtracereceiver
