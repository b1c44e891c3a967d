// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package fpmreceiver subscribes to the raw FPM ports of LLM engines.
//
//	zmtp.Subscriber ─▶ endpoint: decode, continuity, times ─┬▶ queue ─▶ metrics pipe ─▶ next consumer
//	(one an endpoint)                                       └▶ queue ─▶ logs pipe    ─▶ next consumer
//	watch: endpoint states, component status, idle ranks
//
// Receiving never waits for a pipeline: the queue between them is
// bounded and drops its oldest message. Each pipe builds its batch anew for
// every attempt, and remembers what linked the points only when the batch was
// delivered. Everything read is counted once at its end; see ledger.go.
package fpmreceiver
