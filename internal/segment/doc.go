// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package segment writes lines into numbered gzip files, the way Dynamo's
// trace sink lays them out on disk, and survives what breaks files.
//
//	Set     the segments of one base path: who uses which name, which indices
//	        are taken, which closed files may be removed
//	Writer  the segments of one id:  lines ──▶ fit ──▶ gzip member ──▶ file
//	                                        └─▶ roll to the next segment
//
// A segment is called <base>.<id>.<index>.jsonl.gz. A flush appends one
// complete gzip member, so that a file reads to its end at any moment, and at
// worst up to the last flush after a kill. A Writer has no goroutine, no clock
// and no log: it is told the time and answers with a Report.
package segment
