// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package observation holds the state machines that turn single observations of an engine into what metric backends
// take. It knows neither pdata nor a clock nor a lock: points and times are arguments, decisions and points are results.
//
//	gauge assignment ─▶ Refresh.Judge ─▶ first | changed | refreshed | suppressed
//	delta sum        ─▶ Counter ──────┐
//	delta histogram  ─▶ Histogram ────┼▶ Conflict? Begin : Fold …, once a batch: Close ─▶ one point
//	delta exp. hist. ─▶ Exponential ──┘
//
// A folded series keeps its Timeline, which gives every outgoing point its start and its strictly increasing time.
// All series lie in a Table, which bounds their number and forgets resources that were not seen for a while.
// Those of gauges lie in the Gauges of their resource, which are made for a million of them.
// Each machine has a property test against a model that keeps the list of all assignments and replays it.
package observation
