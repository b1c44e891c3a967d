// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import "go.opentelemetry.io/collector/pdata/pmetric"

// The text form of metrics that the case files use; testdata/cases/README.md describes it.

var kinds = []struct {
	name string
	make func(pmetric.Metric)
	is   func(pmetric.Metric) bool
}{
	sumKind("delta_sum", pmetric.AggregationTemporalityDelta, true),
	sumKind("delta_updown", pmetric.AggregationTemporalityDelta, false),
	sumKind("cumulative_sum", pmetric.AggregationTemporalityCumulative, true),
	sumKind("cumulative_updown", pmetric.AggregationTemporalityCumulative, false),
	sumKind("unspecified_sum", pmetric.AggregationTemporalityUnspecified, true),
	histogramKind("delta_histogram", pmetric.AggregationTemporalityDelta),
	histogramKind("cumulative_histogram", pmetric.AggregationTemporalityCumulative),
	exponentialKind("delta_exponential", pmetric.AggregationTemporalityDelta),
	exponentialKind("cumulative_exponential", pmetric.AggregationTemporalityCumulative),
	{
		"gauge",
		func(m pmetric.Metric) { m.SetEmptyGauge() },
		func(m pmetric.Metric) bool { return m.Type() == pmetric.MetricTypeGauge },
	},
	{
		"summary",
		func(m pmetric.Metric) { m.SetEmptySummary() },
		func(m pmetric.Metric) bool { return m.Type() == pmetric.MetricTypeSummary },
	},
	{
		"empty",
		func(pmetric.Metric) {},
		func(m pmetric.Metric) bool { return m.Type() == pmetric.MetricTypeEmpty },
	},
}

type kind = struct {
	name string
	make func(pmetric.Metric)
	is   func(pmetric.Metric) bool
}

func sumKind(name string, t pmetric.AggregationTemporality, monotonic bool) kind {
	return kind{name, func(m pmetric.Metric) {
		m.SetEmptySum().SetAggregationTemporality(t)
		m.Sum().SetIsMonotonic(monotonic)
	}, func(m pmetric.Metric) bool {
		return m.Type() == pmetric.MetricTypeSum && m.Sum().AggregationTemporality() == t && m.Sum().IsMonotonic() == monotonic
	}}
}

func histogramKind(name string, t pmetric.AggregationTemporality) kind {
	return kind{name, func(m pmetric.Metric) {
		m.SetEmptyHistogram().SetAggregationTemporality(t)
	}, func(m pmetric.Metric) bool {
		return m.Type() == pmetric.MetricTypeHistogram && m.Histogram().AggregationTemporality() == t
	}}
}

func exponentialKind(name string, t pmetric.AggregationTemporality) kind {
	return kind{name, func(m pmetric.Metric) {
		m.SetEmptyExponentialHistogram().SetAggregationTemporality(t)
	}, func(m pmetric.Metric) bool {
		return m.Type() == pmetric.MetricTypeExponentialHistogram && m.ExponentialHistogram().AggregationTemporality() == t
	}}
}
