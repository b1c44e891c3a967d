// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package benchmark reads the artifacts of Dynamo's self-benchmark, checks them
// by the rules of its merger and merges them.
//
//	text of a file ── Read ──▶ Artifact ─┐ one after the other
//	                                     ▼
//	                        Checker.Add, AddSidecar ── Finish ──▶ Run
//	                                                   ├ Rules, Violations
//	                                                   ├ Points, Groups
//	                                                   └ Engine, Warmups
//
// A Checker keeps the first artifact, and of the others what a Run says of
// them, so that a run of many ranks needs the memory of two files. The package
// has no I/O, no clock and no logs.
//
// The formats are those that Dynamo's vLLM components write
// (components/src/dynamo/vllm/instrumented_scheduler.py and worker_factory.py),
// described by the page "Forward Pass Metrics Trace Reference" of its manual.
package benchmark
