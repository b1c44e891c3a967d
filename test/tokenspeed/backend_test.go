// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package tokenspeed

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

// backend takes the events of the workload `numbered` over OTLP from one
// Collector after another, and tells them apart. It also takes the last words of
// a Collector about itself, which come after its page is gone.
type backend struct {
	*httptest.Server
	t *testing.T

	mu sync.Mutex
	// arrived are the events by Collector and producer.
	arrived map[string]map[int]*arrivals
	// accepted is what the Collector says last of itself.
	accepted map[string]int
}

// arrivals are the events of one producer that came through one Collector.
type arrivals struct {
	// assigned are the gauge values by rank; each was emitted once.
	assigned              map[string]map[int64]int
	incremented, observed int
}

func startBackend(t *testing.T) *backend {
	b := &backend{t: t, arrived: map[string]map[int]*arrivals{}, accepted: map[string]int{}}
	b.Server = httptest.NewServer(http.HandlerFunc(b.serve))
	t.Cleanup(b.Close)
	return b
}

// start starts a Collector under a name that tells its data apart. It has no
// gauge_dedup: every event is to arrive.
func (b *backend) start(name, endpoint string) *harness.Collector {
	b.t.Helper()
	port := ports.One(b.t)
	c := harness.StartCollector(b.t, harness.CollectorConfig{
		File: fmt.Sprintf(`
receivers: {metric_event: {endpoint: %q}}
exporters:
  otlp_http:
    metrics_endpoint: %s/%s/data
    compression: none
    sending_queue: {enabled: false}
service:
  pipelines: {metrics: {receivers: [metric_event], exporters: [otlp_http]}}
`, endpoint, b.URL, name),
		// The list of readers is replaced whole.
		Override: fmt.Sprintf(`
service:
  telemetry:
    metrics:
      readers:
        - pull: {exporter: {prometheus: {host: 127.0.0.1, port: %d}}}
        - periodic: {interval: 3600000, exporter: {otlp: {protocol: http/protobuf, endpoint: "%s/%s/telemetry"}}}
`, port, b.URL, name),
	})
	c.Telemetry = fmt.Sprintf("127.0.0.1:%d", port)
	return c
}

func (b *backend) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	request := pmetricotlp.NewExportRequest()
	if err == nil {
		err = request.UnmarshalProto(body)
	}
	if err != nil {
		b.t.Errorf("%s: %v", r.URL.Path, err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	collector, what, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, resource := range request.Metrics().ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				if what == "telemetry" {
					b.takeTelemetry(collector, metric)
				} else {
					b.takeData(collector, resource.Resource(), metric)
				}
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (b *backend) takeTelemetry(collector string, metric pmetric.Metric) {
	if metric.Name() != received+"events" {
		return
	}
	for _, point := range metric.Sum().DataPoints().All() {
		if outcome, _ := point.Attributes().Get("outcome"); outcome.Str() == "accepted" {
			b.accepted[collector] = int(point.IntValue())
		}
	}
}

func (b *backend) takeData(collector string, resource pcommon.Resource, metric pmetric.Metric) {
	id, _ := resource.Attributes().Get("service.instance.id")
	pid := pidOf(b.t, id.Str())
	if b.arrived[collector] == nil {
		b.arrived[collector] = map[int]*arrivals{}
	}
	a := b.arrived[collector][pid]
	if a == nil {
		a = &arrivals{assigned: map[string]map[int64]int{}}
		b.arrived[collector][pid] = a
	}
	switch metric.Type() {
	case pmetric.MetricTypeGauge:
		for _, point := range metric.Gauge().DataPoints().All() {
			rank, _ := point.Attributes().Get("dp_rank")
			if a.assigned[rank.Str()] == nil {
				a.assigned[rank.Str()] = map[int64]int{}
			}
			a.assigned[rank.Str()][point.IntValue()]++
		}
	case pmetric.MetricTypeSum:
		for _, point := range metric.Sum().DataPoints().All() {
			a.incremented += int(point.IntValue())
		}
	case pmetric.MetricTypeHistogram:
		for _, point := range metric.Histogram().DataPoints().All() {
			a.observed += int(point.Count())
		}
	default:
		b.t.Errorf("%s is of type %v", metric.Name(), metric.Type())
	}
}

// took is the number of events that came through a Collector, of one producer,
// or of all with pid 0.
func (b *backend) took(collector string, pid int) (events int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for owner, a := range b.arrived[collector] {
		if pid != 0 && owner != pid {
			continue
		}
		for _, values := range a.assigned {
			events += len(values)
		}
		events += a.incremented + a.observed/observedWeight
	}
	return events
}

// acceptedBy is what a Collector said it accepted when it ended.
func (b *backend) acceptedBy(collector string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.accepted[collector]
}

// observedWeight is the weight of each observation of the workload.
const observedWeight = 3

// assertNoneTwice holds the backend to having got every assignment once, through
// whatever Collector, and observations whole.
func (b *backend) assertNoneTwice() {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := map[string]int{}
	for collector, producers := range b.arrived {
		for pid, a := range producers {
			assert.Zero(b.t, a.observed%observedWeight, "observations of producer %d", pid)
			for rank, values := range a.assigned {
				for value, times := range values {
					seen[fmt.Sprint(pid, rank, value)] += times
					if n := seen[fmt.Sprint(pid, rank, value)]; n > 1 {
						b.t.Errorf("producer %d, rank %s: %d came %d times, the last through the %s Collector", pid, rank, value, n, collector)
						return
					}
				}
			}
		}
	}
}
