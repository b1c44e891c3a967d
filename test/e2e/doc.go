// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the built Collector from the outside: real publishers
// (libzmq, msgspec) in, the Prometheus page, trace segments and the Collector's
// own telemetry out.
//
//	publisher ──ZMQ──▶ bin/otelcol-fpm ──▶ Prometheus page, *.jsonl.gz
//	    │                    │                       │
//	    └── what was sent ───┼── the loss ledger ────┴──▶ compared
//
// It needs the binary (make build; FPM_BIN names another one) and a Python with
// pyzmq and msgspec (see package python).
package e2e
