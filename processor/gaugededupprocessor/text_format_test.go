// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// formatMetrics writes the text form.
func formatMetrics(md pmetric.Metrics) string {
	var s strings.Builder
	for _, rm := range md.ResourceMetrics().All() {
		if rm.Resource().Attributes().Len() > 0 || md.ResourceMetrics().Len() > 1 {
			fmt.Fprintf(&s, "resource %s\n", formatAttributes(rm.Resource().Attributes()))
		}
		for _, sm := range rm.ScopeMetrics().All() {
			if scope := sm.Scope(); scope.Name() != "" {
				s.WriteString(strings.TrimRight("scope "+scope.Name()+" "+scope.Version(), " "))
				if scope.Attributes().Len() > 0 {
					s.WriteString(" " + formatAttributes(scope.Attributes()))
				}
				s.WriteString("\n")
			}
			for _, m := range sm.Metrics().All() {
				formatMetric(&s, m)
			}
		}
	}
	return s.String()
}

func formatMetric(s *strings.Builder, m pmetric.Metric) {
	name := "unknown"
	for _, k := range kinds {
		if k.is(m) {
			name = k.name
		}
	}
	s.WriteString(strings.TrimRight(name+" "+m.Name()+" "+m.Unit(), " ") + "\n")
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		formatNumbers(s, m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		formatNumbers(s, m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		for _, dp := range m.Histogram().DataPoints().All() {
			writePoint(s, dp.Attributes(), dp.Flags(), formatHistogram(dp), dp.Exemplars(), dp.StartTimestamp(), dp.Timestamp())
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, dp := range m.ExponentialHistogram().DataPoints().All() {
			writePoint(s, dp.Attributes(), dp.Flags(), formatExponential(dp), dp.Exemplars(), dp.StartTimestamp(), dp.Timestamp())
		}
	case pmetric.MetricTypeSummary:
		for _, dp := range m.Summary().DataPoints().All() {
			writePoint(s, dp.Attributes(), dp.Flags(), "", pmetric.NewExemplarSlice(), dp.StartTimestamp(), dp.Timestamp())
		}
	}
}

func formatNumbers(s *strings.Builder, dps pmetric.NumberDataPointSlice) {
	for _, dp := range dps.All() {
		value := "none"
		switch dp.ValueType() {
		case pmetric.NumberDataPointValueTypeInt:
			value = strconv.FormatInt(dp.IntValue(), 10)
		case pmetric.NumberDataPointValueTypeDouble:
			value = formatFloat(dp.DoubleValue())
		}
		writePoint(s, dp.Attributes(), dp.Flags(), value, dp.Exemplars(), dp.StartTimestamp(), dp.Timestamp())
	}
}

func writePoint(s *strings.Builder, attributes pcommon.Map, flags pmetric.DataPointFlags, body string, exemplars pmetric.ExemplarSlice, start, at pcommon.Timestamp) {
	if flags.NoRecordedValue() {
		body = "stale"
	}
	if exemplars.Len() > 0 {
		var list []string
		for _, e := range exemplars.All() {
			list = append(list, formatFloat(e.DoubleValue()))
		}
		body += " exemplars=[" + strings.Join(list, " ") + "]"
	}
	when := "@" + time.Duration(at).String()
	if start != 0 {
		when = "@" + time.Duration(start).String() + ".." + time.Duration(at).String()
	}
	fmt.Fprintf(s, "  %s %s %s\n", formatAttributes(attributes), body, when)
}

func formatHistogram(dp pmetric.HistogramDataPoint) string {
	body := formatDistribution(dp)
	if dp.ExplicitBounds().Len() > 0 {
		body += " bounds=[" + formatFloats(dp.ExplicitBounds().AsRaw()) + "]"
	}
	if dp.BucketCounts().Len() > 0 {
		body += " buckets=" + fmt.Sprint(dp.BucketCounts().AsRaw())
	}
	return body
}

func formatExponential(dp pmetric.ExponentialHistogramDataPoint) string {
	body := formatDistribution(dp) + fmt.Sprintf(" scale=%d", dp.Scale())
	if dp.ZeroCount() > 0 {
		body += fmt.Sprintf(" zero=%d", dp.ZeroCount())
	}
	if dp.ZeroThreshold() > 0 {
		body += " threshold=" + formatFloat(dp.ZeroThreshold())
	}
	if dp.Positive().BucketCounts().Len() > 0 {
		body += fmt.Sprintf(" positive=%d:%v", dp.Positive().Offset(), dp.Positive().BucketCounts().AsRaw())
	}
	if dp.Negative().BucketCounts().Len() > 0 {
		body += fmt.Sprintf(" negative=%d:%v", dp.Negative().Offset(), dp.Negative().BucketCounts().AsRaw())
	}
	return body
}

func formatDistribution(dp interface {
	Count() uint64
	Sum() float64
	HasSum() bool
	Min() float64
	HasMin() bool
	Max() float64
	HasMax() bool
},
) string {
	body := fmt.Sprintf("count=%d", dp.Count())
	if dp.HasSum() {
		body += " sum=" + formatFloat(dp.Sum())
	}
	if dp.HasMin() {
		body += " min=" + formatFloat(dp.Min())
	}
	if dp.HasMax() {
		body += " max=" + formatFloat(dp.Max())
	}
	return body
}

func formatAttributes(m pcommon.Map) string {
	var list []string
	for name, value := range m.All() {
		list = append(list, name+"="+formatValue(value))
	}
	return "{" + strings.Join(list, " ") + "}"
}

func formatValue(v pcommon.Value) string {
	switch v.Type() {
	case pcommon.ValueTypeInt:
		return strconv.FormatInt(v.Int(), 10)
	case pcommon.ValueTypeDouble:
		return formatFloat(v.Double())
	case pcommon.ValueTypeBool:
		return strconv.FormatBool(v.Bool())
	case pcommon.ValueTypeMap:
		return formatAttributes(v.Map())
	case pcommon.ValueTypeSlice:
		var list []string
		for _, element := range v.Slice().All() {
			list = append(list, formatValue(element))
		}
		return "[" + strings.Join(list, " ") + "]"
	default:
		return strconv.Quote(v.AsString())
	}
}

func formatFloats(list []float64) string {
	texts := make([]string, len(list))
	for i, f := range list {
		texts[i] = strconv.FormatFloat(f, 'g', -1, 64)
	}
	return strings.Join(texts, " ")
}

// formatFloat writes a double so that it does not look like an int.
func formatFloat(f float64) string {
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(text, ".eIN") {
		text += ".0"
	}
	return text
}
