// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package document reads one JSON text into a Document that can be walked and
// compared, and costs little more memory than the text itself.
//
//	text ── Parse ──▶ Document ── Root ──▶ Value ── Get, Items, Members ──▶ Value
//	                                         ├── Text, Int, Float, Bool
//	                                         └── Equal, Short, Detach
//
// encoding/json is not used because it loses the order of keys and the text of
// numbers, takes a repeated key, and makes of a hostile file many times its
// size. A Value that is not there is a Value of kind Missing, so that a path of
// Gets needs one look at its end.
package document
