// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import "strings"

// MetricsTable is the table of all metrics in Markdown, for the documentation:
// those of a worker in the order of Metrics, then fpm.endpoint.up.
func MetricsTable() string {
	var b strings.Builder
	b.WriteString("| metric | Prometheus name | instrument | unit | meaning | wire field |\n")
	b.WriteString("|---|---|---|---|---|---|\n")
	for i := range Metrics {
		Metrics[i].writeRow(&b)
	}
	EndpointUp.writeRow(&b)
	return b.String()
}

func (m *Metric) writeRow(b *strings.Builder) {
	b.WriteString("| `" + m.Name + "` | `" + m.PrometheusName() + "` | " + m.Instrument.String() + " | ")
	b.WriteString(code(m.Unit) + " | " + m.Description + " | " + code(m.Field) + " |\n")
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// PrometheusName is the name that Prometheus exporters give the metric by
// default: dots become underscores, seconds and counters get their suffix,
// annotations in braces none. A classic histogram has the series …_bucket,
// …_sum and …_count of it.
func (m *Metric) PrometheusName() string {
	name := strings.ReplaceAll(m.Name, ".", "_")
	if m.Unit == unitSecond {
		name += "_seconds"
	}
	if m.Instrument == SumCumulative || m.Instrument == SumDelta {
		name += "_total"
	}
	return name
}

// String names the form as the documentation does.
func (i Instrument) String() string {
	switch i {
	case GaugeInt:
		return "gauge, int"
	case GaugeDouble:
		return "gauge, double"
	case SumCumulative:
		return "sum, int, cumulative, monotonic"
	case SumDelta:
		return "sum, int, delta, monotonic"
	default:
		return "histogram, delta"
	}
}
