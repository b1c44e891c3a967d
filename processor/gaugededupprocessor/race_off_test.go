// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package gaugededupprocessor

const raceEnabled = false
