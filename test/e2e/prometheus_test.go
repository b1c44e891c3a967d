// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// page is a Prometheus page: series by name. A histogram is taken apart into
// name_count and name_sum.
type page map[string][]series

type series struct {
	labels map[string]string
	value  float64
}

// scrape reads a Prometheus page.
func scrape(t *testing.T, address string) page {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	require.NoError(t, err)

	p := page{}
	for name, family := range families {
		for _, m := range family.Metric {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			add := func(suffix string, value float64) {
				p[name+suffix] = append(p[name+suffix], series{labels, value})
			}
			switch family.GetType() {
			case dto.MetricType_COUNTER:
				add("", m.Counter.GetValue())
			case dto.MetricType_GAUGE:
				add("", m.Gauge.GetValue())
			case dto.MetricType_UNTYPED:
				add("", m.Untyped.GetValue())
			case dto.MetricType_HISTOGRAM, dto.MetricType_GAUGE_HISTOGRAM:
				add("_count", float64(m.Histogram.GetSampleCount()))
				add("_sum", m.Histogram.GetSampleSum())
			case dto.MetricType_SUMMARY:
				add("_count", float64(m.Summary.GetSampleCount()))
			}
		}
	}
	return p
}

// sum adds up the series of a metric that have all the labels, given as
// name, value, name, value…
func (p page) sum(metric string, labels ...string) (sum float64) {
	for _, s := range p[metric] {
		if s.has(labels) {
			sum += s.value
		}
	}
	return sum
}

// count is sum of a metric that counts.
func (p page) count(metric string, labels ...string) int { return int(p.sum(metric, labels...)) }

// one is the value of the only series of a metric that has the labels.
func (p page) one(t *testing.T, metric string, labels ...string) float64 {
	t.Helper()
	var found []series
	for _, s := range p[metric] {
		if s.has(labels) {
			found = append(found, s)
		}
	}
	require.Len(t, found, 1, "%s %v in %v", metric, labels, p[metric])
	return found[0].value
}

func (s *series) has(labels []string) bool {
	for i := 0; i < len(labels); i += 2 {
		if s.labels[labels[i]] != labels[i+1] {
			return false
		}
	}
	return true
}

// with keeps the metrics whose names have a prefix.
func (p page) with(prefixes ...string) page {
	out := page{}
	for name, all := range p {
		for _, prefix := range prefixes {
			if strings.HasPrefix(name, prefix) {
				out[name] = all
			}
		}
	}
	return out
}

// latest waits until the page says the newest message of each rank, and returns it: the quickstart has a gauge_interval.
func (c *collector) latest(t *testing.T, ranks int, counter float64) page {
	t.Helper()
	var p page
	wait(t, fmt.Sprintf("the page does not say message %v of each rank", counter), func() bool {
		p = scrape(t, c.page)
		for rank := range ranks {
			if p.sum("fpm_messages_total", "fpm_dp_rank", strconv.Itoa(rank)) != counter {
				return false
			}
		}
		return true
	})
	return p
}

// until waits until the Collector's own telemetry satisfies a condition.
func (c *collector) until(t *testing.T, failure string, condition func(page) bool) page {
	t.Helper()
	var p page
	wait(t, failure, func() bool {
		p = scrape(t, c.telemetry)
		return condition(p)
	})
	return p
}
