// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package tokenspeed proves the way of metric events from end to end, with the
// built Collector and the real output plugin:
//
//	engine.py: four producer processes, eight threads each
//	  │ every event goes to the plugin, and is written down (and observed with prometheus_client)
//	  ▼
//	plugins/tokenspeed ── ZMQ PUSH ─▶ metric_event ─▶ gauge_dedup ─▶ Prometheus page
//	                                              └─▶ otlp_http ───▶ backend in the test
//
// What comes out must be what the producers wrote down, and every event that
// does not come out must stand in a ledger: of its producer, or of the Collector.
package tokenspeed
