// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"net/http"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Page is a Prometheus page: series by name. A histogram is taken apart into
// name_count and name_sum.
type Page map[string][]Series

// Series is a series with its value.
type Series struct {
	Labels map[string]string
	Value  float64
}

// Scrape reads the Prometheus page at an address.
func Scrape(tb testing.TB, address string) Page {
	tb.Helper()
	ctx, stop := context.WithTimeout(tb.Context(), Patience)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		tb.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		tb.Fatalf("no page: %v", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		tb.Fatalf("http://%s/metrics: %s", address, response.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		tb.Fatalf("http://%s/metrics: %v", address, err)
	}
	p := Page{}
	for name, family := range families {
		for _, m := range family.Metric {
			p.add(name, family.GetType(), m)
		}
	}
	return p
}

func (p Page) add(name string, kind dto.MetricType, m *dto.Metric) {
	labels := make(map[string]string, len(m.Label))
	for _, l := range m.Label {
		labels[l.GetName()] = l.GetValue()
	}
	add := func(suffix string, value float64) {
		p[name+suffix] = append(p[name+suffix], Series{labels, value})
	}
	switch kind {
	case dto.MetricType_COUNTER:
		add("", m.Counter.GetValue())
	case dto.MetricType_GAUGE:
		add("", m.Gauge.GetValue())
	case dto.MetricType_HISTOGRAM, dto.MetricType_GAUGE_HISTOGRAM:
		add("_count", float64(m.Histogram.GetSampleCount()))
		add("_sum", m.Histogram.GetSampleSum())
	case dto.MetricType_SUMMARY:
		add("_count", float64(m.Summary.GetSampleCount()))
		add("_sum", m.Summary.GetSampleSum())
	default:
		add("", m.Untyped.GetValue())
	}
}

// With are the series of a metric that have all the labels, given as name,
// value, name, value…
func (p Page) With(metric string, labels ...string) (found []Series) {
	for _, s := range p[metric] {
		if s.Has(labels...) {
			found = append(found, s)
		}
	}
	return found
}

// Sum adds up the series of a metric that have all the labels.
func (p Page) Sum(metric string, labels ...string) (sum float64) {
	for _, s := range p.With(metric, labels...) {
		sum += s.Value
	}
	return sum
}

// Count is Sum of a metric that counts.
func (p Page) Count(metric string, labels ...string) int { return int(p.Sum(metric, labels...)) }

// One is the value of the only series of a metric that has the labels.
func (p Page) One(tb testing.TB, metric string, labels ...string) float64 {
	tb.Helper()
	found := p.With(metric, labels...)
	if len(found) != 1 {
		tb.Fatalf("%d series instead of one have %v of %s: %v", len(found), labels, metric, p[metric])
	}
	return found[0].Value
}

// Has says whether a series has all the labels.
func (s Series) Has(labels ...string) bool {
	for i := 0; i < len(labels); i += 2 {
		if s.Labels[labels[i]] != labels[i+1] {
			return false
		}
	}
	return true
}
