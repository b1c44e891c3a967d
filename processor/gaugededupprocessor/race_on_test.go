// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package gaugededupprocessor

// raceEnabled: the race detector lets sync.Pool lose what it holds, so allocations say nothing.
const raceEnabled = true
