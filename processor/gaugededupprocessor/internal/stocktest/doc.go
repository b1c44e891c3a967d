// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package stocktest holds only tests: gauge_dedup between stock components in one Collector, and in front of a real
// Prometheus server.
//
//	passes of a made-up engine ─▶ inject ─▶ gauge_dedup ─┬─▶ prometheus ─▶ scraped
//	                                                     ├─▶ prometheus_remote_write ─▶ Prometheus, queried
//	                                                     └─▶ delta_to_cumulative, interval ─▶ capture
//	a page of metrics ─▶ prometheus receiver ─▶ gauge_dedup ─▶ capture
//
// What comes out is held against the list of all passes, counted again.
package stocktest
