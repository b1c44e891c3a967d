// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package metriceventreceiver takes the metric events of LLM engines, which
// their output plugins push over ZeroMQ.
//
//	server      listens; one goroutine a connection    server.go, connection.go, listen.go
//	  message   two frames, checked from end to end    message.go, walk.go
//	  event     judged one by one                      event.go
//	  producer  its losses, metrics and series         producers.go, producer.go, continuity.go
//	queue       bounded, the oldest go                 queue.go
//	delivery    batches, retry, the end                delivery.go
//	  batch     events of one series added up          batch.go, series.go, increments.go, distribution.go
//	  metrics   with units and bounds by name          catalog.go
//
// A connection's goroutine never waits for the pipeline. A batch is built anew
// for every attempt, and what links the points of a series is remembered only
// when the batch was delivered. Every event read is counted once at its end;
// see ledger.go.
package metriceventreceiver
