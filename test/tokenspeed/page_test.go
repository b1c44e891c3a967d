// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package tokenspeed

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// page is what a Prometheus page says of TokenSpeed's metrics.
type page map[seriesKey]*dto.Metric

// seriesKey is a series of one producer. Labels are sorted, `name=value`, and
// only those that the engine gave, with a value.
type seriesKey struct {
	pid            int
	metric, labels string
}

func keyOf(pid int, metric string, labels map[string]string) seriesKey {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, name+"="+labels[name])
	}
	return seriesKey{pid, metric, strings.Join(pairs, ",")}
}

// scrape reads the page of the Collector, on which the label instance tells
// producers apart.
func scrape(t *testing.T, address string) page {
	t.Helper()
	response, err := http.Get("http://" + address + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	return parse(t, response.Body, 0)
}

// parse reads a page. With pid 0 the label instance says whose each series is.
func parse(t *testing.T, text io.Reader, pid int) page {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	require.NoError(t, err)
	p := page{}
	for name, family := range families {
		// prometheus_client adds when each series began.
		if !strings.HasPrefix(name, "tokenspeed:") || strings.HasSuffix(name, "_created") {
			continue
		}
		for _, series := range family.Metric {
			labels, owner := map[string]string{}, pid
			for _, l := range series.Label {
				switch name, value := l.GetName(), l.GetValue(); {
				case name == "instance":
					owner = pidOf(t, value)
				case name == "job" || strings.HasPrefix(name, "otel_scope_"):
				case value == "" || value == "None": // prometheus_client's word for no value
				default:
					labels[name] = value
				}
			}
			key := keyOf(owner, name, labels)
			require.NotContains(t, p, key, "a series comes twice")
			p[key] = series
		}
	}
	return p
}

// pidOf is the process in host:pid:start, as the receiver names a producer.
func pidOf(t *testing.T, id string) int {
	t.Helper()
	parts := strings.Split(id, ":")
	require.Len(t, parts, 3, id)
	pid, err := strconv.Atoi(parts[1])
	require.NoError(t, err, id)
	return pid
}

// buckets are the counts of a histogram by upper bound, cumulative as on the page.
func buckets(h *dto.Histogram) map[string]uint64 {
	counts := map[string]uint64{}
	for _, b := range h.GetBucket() {
		counts[fmt.Sprint(b.GetUpperBound())] = b.GetCumulativeCount()
	}
	return counts
}
