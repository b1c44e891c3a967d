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

func parsePoint(m pmetric.Metric, words []string) error {
	p := pointText{fields: map[string]string{}}
	for _, word := range words {
		switch name, value, isField := strings.Cut(word, "="); {
		case strings.HasPrefix(word, "{"):
			p.attributes = word
		case strings.HasPrefix(word, "@"):
			start, at, isRange := strings.Cut(word[1:], "..")
			if !isRange {
				start, at = "0s", start
			}
			for text, to := range map[string]*pcommon.Timestamp{start: &p.start, at: &p.time} {
				d, err := time.ParseDuration(text)
				if err != nil {
					return err
				}
				*to = pcommon.Timestamp(d)
			}
		case isField:
			p.fields[name] = value
		default:
			p.value = word
		}
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return p.number(m.Gauge().DataPoints().AppendEmpty())
	case pmetric.MetricTypeSum:
		return p.number(m.Sum().DataPoints().AppendEmpty())
	case pmetric.MetricTypeHistogram:
		return p.histogram(m.Histogram().DataPoints().AppendEmpty())
	case pmetric.MetricTypeExponentialHistogram:
		return p.exponential(m.ExponentialHistogram().DataPoints().AppendEmpty())
	case pmetric.MetricTypeSummary:
		dp := m.Summary().DataPoints().AppendEmpty()
		return p.common(dp.Attributes(), dp)
	}
	return fmt.Errorf("a point of no metric: %q", words)
}

type pointText struct {
	attributes  string
	start, time pcommon.Timestamp
	value       string
	fields      map[string]string
}

type timed interface {
	SetStartTimestamp(pcommon.Timestamp)
	SetTimestamp(pcommon.Timestamp)
	SetFlags(pmetric.DataPointFlags)
}

func (p *pointText) common(attributes pcommon.Map, dp timed) error {
	dp.SetStartTimestamp(p.start)
	dp.SetTimestamp(p.time)
	if p.value == "stale" {
		dp.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	}
	return parseAttributes(p.attributes, attributes)
}

func (p *pointText) number(dp pmetric.NumberDataPoint) error {
	if p.value != "stale" && p.value != "none" {
		if n, err := strconv.ParseInt(p.value, 10, 64); err == nil {
			dp.SetIntValue(n)
		} else if f, err := strconv.ParseFloat(p.value, 64); err == nil {
			dp.SetDoubleValue(f)
		} else {
			return fmt.Errorf("%q is no number", p.value)
		}
	}
	if err := p.exemplars(dp.Exemplars()); err != nil {
		return err
	}
	return p.common(dp.Attributes(), dp)
}

func (p *pointText) exemplars(to pmetric.ExemplarSlice) error {
	values, err := parseFloats(p.fields["exemplars"])
	for _, v := range values {
		to.AppendEmpty().SetDoubleValue(v)
	}
	return err
}

func (p *pointText) histogram(dp pmetric.HistogramDataPoint) (err error) {
	if err := parseDistribution(p.fields, dp); err != nil {
		return err
	}
	if text, ok := p.fields["bounds"]; ok {
		bounds, err := parseFloats(text)
		if err != nil {
			return err
		}
		dp.ExplicitBounds().FromRaw(bounds)
	}
	if text, ok := p.fields["buckets"]; ok {
		counts, err := parseCounts(text)
		if err != nil {
			return err
		}
		dp.BucketCounts().FromRaw(counts)
	}
	if err := p.exemplars(dp.Exemplars()); err != nil {
		return err
	}
	return p.common(dp.Attributes(), dp)
}

func (p *pointText) exponential(dp pmetric.ExponentialHistogramDataPoint) error {
	if err := parseDistribution(p.fields, dp); err != nil {
		return err
	}
	if text, ok := p.fields["scale"]; ok {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return err
		}
		dp.SetScale(int32(n))
	}
	if text, ok := p.fields["zero"]; ok {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return err
		}
		dp.SetZeroCount(n)
	}
	if text, ok := p.fields["threshold"]; ok {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return err
		}
		dp.SetZeroThreshold(f)
	}
	for name, to := range map[string]pmetric.ExponentialHistogramDataPointBuckets{"positive": dp.Positive(), "negative": dp.Negative()} {
		text, ok := p.fields[name]
		if !ok {
			continue
		}
		offset, list, _ := strings.Cut(text, ":")
		n, err := strconv.ParseInt(offset, 10, 32)
		if err != nil {
			return err
		}
		counts, err := parseCounts(list)
		if err != nil {
			return err
		}
		to.SetOffset(int32(n))
		to.BucketCounts().FromRaw(counts)
	}
	if err := p.exemplars(dp.Exemplars()); err != nil {
		return err
	}
	return p.common(dp.Attributes(), dp)
}

func parseDistribution(fields map[string]string, dp distributionPoint) error {
	if text, ok := fields["count"]; ok {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return err
		}
		dp.SetCount(n)
	}
	for name, set := range map[string]func(float64){"sum": dp.SetSum, "min": dp.SetMin, "max": dp.SetMax} {
		if text, ok := fields[name]; ok {
			f, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return err
			}
			set(f)
		}
	}
	return nil
}

func parseFloats(text string) (list []float64, err error) {
	for _, word := range strings.Fields(strings.Trim(text, "[]")) {
		f, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return list, nil
}

func parseCounts(text string) (list []uint64, err error) {
	for _, word := range strings.Fields(strings.Trim(text, "[]")) {
		n, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}
