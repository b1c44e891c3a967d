// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package fpmbenchmarkreceiver gives the runs of Dynamo's self-benchmark as
// metrics and log records.
//
//	include ── scan: load, benchmark.Read ──▶ tracker: runs, what is due and when
//	                                             │ due
//	               deliver: load again, benchmark.Checker ──▶ benchmark.Run
//	                          ├─ metrics: batches ─▶ next consumer
//	                          └─ logs: batches, file by file ─▶ next consumer
//	                             └─▶ delivered: run ids, kept in the storage
//
// One goroutine does it all. The tracker takes time as an argument and keeps
// only headers of files, so that a folder of many runs costs little; a run is
// read again when it is due, one file after the other.
package fpmbenchmarkreceiver
