// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package gaugededupprocessor applies the semantics of observations to a stream of metrics.
//
//	ConsumeMetrics(batch)
//	  take the batch's resources, in sorted order            resources.go
//	  read the clock once, forget what expired               processor.go
//	  choose which of several points of one slot goes on     slots.go
//	  walk the metrics, judge gauges, thin sums              walk.go, gauge.go, sum.go
//	  fold delta points into one point a series              fold.go, sum.go, histogram.go, exponential.go
//	  call the next consumer; if it refuses, undo it all     batch.go
//	  count what happened                                    ledger.go
//
// The decisions themselves are made in internal/observation. There is no goroutine and no timer: the output depends on
// the state, the batch and one reading of the clock.
package gaugededupprocessor
