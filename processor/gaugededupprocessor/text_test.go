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

// parseMetrics reads the text form.
func parseMetrics(text string) (md pmetric.Metrics, err error) {
	md = pmetric.NewMetrics()
	var rm pmetric.ResourceMetrics
	var sm pmetric.ScopeMetrics
	var m pmetric.Metric
	var haveRM, haveSM bool
	for i, line := range strings.Split(text, "\n") {
		if comment := strings.Index(line, "#"); comment >= 0 {
			line = line[:comment]
		}
		words, err := splitWords(line)
		if err != nil {
			return md, fmt.Errorf("line %d: %w", i+1, err)
		}
		if len(words) == 0 {
			continue
		}
		indented := line[0] == ' ' || line[0] == '\t'
		switch {
		case indented:
			err = parsePoint(m, words)
		case words[0] == "resource":
			rm, haveRM, haveSM = md.ResourceMetrics().AppendEmpty(), true, false
			err = parseAttributes(strings.Join(words[1:], " "), rm.Resource().Attributes())
		default:
			if !haveRM {
				rm, haveRM = md.ResourceMetrics().AppendEmpty(), true
			}
			if words[0] == "scope" {
				sm, haveSM = rm.ScopeMetrics().AppendEmpty(), true
				sm.Scope().SetName(words[1])
				if len(words) > 2 {
					sm.Scope().SetVersion(words[2])
				}
				if len(words) > 3 {
					err = parseAttributes(words[3], sm.Scope().Attributes())
				}
				break
			}
			if !haveSM {
				sm, haveSM = rm.ScopeMetrics().AppendEmpty(), true
			}
			m = sm.Metrics().AppendEmpty()
			err = parseMetric(m, words)
		}
		if err != nil {
			return md, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return md, nil
}

func parseMetric(m pmetric.Metric, words []string) error {
	if len(words) < 2 {
		return fmt.Errorf("want: kind name [unit], have %q", words)
	}
	m.SetName(words[1])
	if len(words) > 2 {
		m.SetUnit(words[2])
	}
	for _, k := range kinds {
		if k.name == words[0] {
			k.make(m)
			return nil
		}
	}
	return fmt.Errorf("%q is no kind of metric", words[0])
}

// splitWords splits at spaces outside of quotes, braces and brackets.
func splitWords(line string) (words []string, err error) {
	word, depth, quoted := "", 0, false
	for _, c := range strings.TrimSpace(line) + " " {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ' ' && depth == 0:
			if word != "" {
				words = append(words, word)
			}
			word = ""
			continue
		}
		word += string(c)
	}
	if quoted || depth != 0 {
		return nil, fmt.Errorf("unbalanced quotes, braces or brackets in %q", line)
	}
	return words, nil
}

func parseAttributes(text string, to pcommon.Map) error {
	words, err := splitWords(strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}"))
	if err != nil {
		return err
	}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			return fmt.Errorf("%q is no name=value", word)
		}
		if err := parseValue(value, to.PutEmpty(name)); err != nil {
			return err
		}
	}
	return nil
}

func parseValue(text string, to pcommon.Value) error {
	switch {
	case strings.HasPrefix(text, "["):
		words, err := splitWords(text[1 : len(text)-1])
		if err != nil {
			return err
		}
		slice := to.SetEmptySlice()
		for _, word := range words {
			if err := parseValue(word, slice.AppendEmpty()); err != nil {
				return err
			}
		}
	case strings.HasPrefix(text, "{"):
		return parseAttributes(text, to.SetEmptyMap())
	case strings.HasPrefix(text, `"`):
		s, err := strconv.Unquote(text)
		if err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
		to.SetStr(s)
	case text == "true" || text == "false":
		to.SetBool(text == "true")
	default:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			to.SetInt(n)
		} else if f, err := strconv.ParseFloat(text, 64); err == nil {
			to.SetDouble(f)
		} else {
			to.SetStr(text)
		}
	}
	return nil
}

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
