// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package fpm is the forward pass metrics record: what an engine says of one
// forward pass, and the forms it takes on its way through a Collector.
//
//	frames ── OpenEnvelope ──▶ msgpack payload ── Decoder ──▶ Record
//
//	Record ── WorkerMetrics ──▶ pdata metrics ── Reconstructor ──▶ Record ─┐
//	   └───── BodyWriter ─────▶ pdata log body ────────────────────────────┴─▶ trace row (JSON text)
//
// A Decoder checks a payload once and for all: whatever it accepts can be
// walked again without an error, which is what a BodyWriter does to keep the
// wire's key order and unknown keys. The package has no I/O, no clock and no
// logs: bytes or values in, values, bytes or errors out.
//
// The payload is defined by ForwardPassMetrics in Dynamo's
// dynamo.common.forward_pass_metrics; the row by the sink that writes
// dynamo.fpm.trace.v1 files.
package fpm
