// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/observation"
)

// place is where a point lies.
type place struct {
	owner    *owner
	resource pmetric.ResourceMetrics
	key      observation.Key // of metric and scope
	metric   pmetric.Metric
}

// walk judges all points, in the order of the batch, and removes what is left empty.
func (b *batch) walk(md pmetric.Metrics) {
	b.slots.choose(b, md)
	entry := 0
	md.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool {
		at := place{owner: b.owners.of(entry), resource: rm}
		entry++
		rm.ScopeMetrics().RemoveIf(func(sm pmetric.ScopeMetrics) bool {
			b.walkScope(at, sm)
			return sm.Metrics().Len() == 0
		})
		return rm.ScopeMetrics().Len() == 0
	})
	b.sums.closeAll()
	b.histograms.closeAll()
	b.exponentials.closeAll()
}

func (b *batch) walkScope(at place, sm pmetric.ScopeMetrics) {
	scope := scopeKey(sm.Scope())
	// Points that keep their delta temporality need a metric of their own beside that of the folded ones.
	var asTheyCame []pmetric.Metric
	sm.Metrics().RemoveIf(func(m pmetric.Metric) bool {
		at.metric, at.key = m, metricKey(scope, m)
		if delta, left := b.walkMetric(at); left {
			asTheyCame = append(asTheyCame, delta)
		}
		return points(m) == 0
	})
	for _, m := range asTheyCame {
		m.MoveTo(sm.Metrics().AppendEmpty())
	}
}

// walkMetric returns a metric of those delta points that go on as they came beside folded ones, if there are any.
func (b *batch) walkMetric(at place) (asTheyCame pmetric.Metric, left bool) {
	switch b.treatment(at.metric) {
	case judgeGauge:
		b.judgeGauges(at)
	case foldSum:
		return b.foldSums(at)
	case thinSum:
		b.thinSums(at)
	case foldHistogram:
		return b.foldHistograms(at)
	case foldExponential:
		return b.foldExponentials(at)
	default:
		b.ledger.points[passed] += points(at.metric)
	}
	return pmetric.Metric{}, false
}

type treatment int

const (
	leave treatment = iota
	judgeGauge
	foldSum
	thinSum
	foldHistogram
	foldExponential
)

// treatment says what is to be done with the points of a metric.
func (b *batch) treatment(m pmetric.Metric) treatment {
	if !b.p.include.match(m.Name()) {
		return leave
	}
	const delta, cumulative = pmetric.AggregationTemporalityDelta, pmetric.AggregationTemporalityCumulative
	foldHistograms := b.p.cfg.Histograms.Temporality != TemporalityPassthrough
	foldSums := b.p.cfg.Sums.Temporality != TemporalityPassthrough
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return judgeGauge
	case pmetric.MetricTypeSum:
		switch sum := m.Sum(); {
		case !foldSums || !sum.IsMonotonic():
		case sum.AggregationTemporality() == delta:
			return foldSum
		case sum.AggregationTemporality() == cumulative:
			return thinSum
		}
	case pmetric.MetricTypeHistogram:
		if foldHistograms && m.Histogram().AggregationTemporality() == delta {
			return foldHistogram
		}
	case pmetric.MetricTypeExponentialHistogram:
		if foldHistograms && m.ExponentialHistogram().AggregationTemporality() == delta {
			return foldExponential
		}
	}
	return leave
}

func points(m pmetric.Metric) int {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints().Len()
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints().Len()
	case pmetric.MetricTypeHistogram:
		return m.Histogram().DataPoints().Len()
	case pmetric.MetricTypeExponentialHistogram:
		return m.ExponentialHistogram().DataPoints().Len()
	case pmetric.MetricTypeSummary:
		return m.Summary().DataPoints().Len()
	}
	return 0
}

// sibling returns a metric without points that is otherwise described as m.
func sibling(m pmetric.Metric) pmetric.Metric {
	s := pmetric.NewMetric()
	s.SetName(m.Name())
	s.SetDescription(m.Description())
	s.SetUnit(m.Unit())
	m.Metadata().CopyTo(s.Metadata())
	return s
}
