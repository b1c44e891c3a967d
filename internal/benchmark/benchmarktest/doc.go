// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package benchmarktest makes self-benchmark artifacts for tests: sound ones as
// Dynamo writes them, and for every rule of package benchmark ones that break
// it.
//
//	Options ── New ──▶ Run{Ranks, Merged, Sidecar} ── Files, Write ──▶ JSON texts
//	                    ▲
//	        Broken: edits, one rule each
//
// The shapes follow the page "Forward Pass Metrics Trace Reference" of Dynamo's
// manual and what its vLLM components write; the numbers are made up.
package benchmarktest
