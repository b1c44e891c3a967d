// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package load is a model of the work of an LLM engine: one data-parallel rank
// that schedules requests pass by pass.
//
//	arrivals ──▶ waiting ──admit──▶ running: prefill in chunks ──▶ decode ──▶ done
//	                                   ▲                             │
//	                                   └────────── preempted ◀───────┘ KV cache full
//
// Each Step is one forward pass: what runs decodes a token or computes a chunk
// of its prompt within the pass's token budget, and the Pass says so in the
// terms of the FPM record. When all work is done the step is an idle time.
//
// The package is pure: no clock, no I/O. The same profile, seed and rank give
// the same steps on every machine.
package load
