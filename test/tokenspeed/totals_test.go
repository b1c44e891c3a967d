// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package tokenspeed

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

// near is the relative error of sums that were added up in another order.
const near = 1e-9

// sumless is the metric with negative observations, which have no sum on the way.
const sumless = "tokenspeed:e2e_request_latency_seconds"

// shipped starts the Collector with config/tokenspeed.yaml, and returns the
// address of its page too.
func shipped(t *testing.T, endpoint string) (c *harness.Collector, address string) {
	t.Helper()
	address = fmt.Sprintf("127.0.0.1:%d", ports.One(t))
	return harness.StartCollector(t, harness.CollectorConfig{
		File: "tokenspeed.yaml", Env: []string{"TOKENSPEED_ENDPOINT=" + endpoint},
		Override: fmt.Sprintf("exporters: {prometheus: {endpoint: %q}}", address),
	}), address
}

// What four processes with eight threads each observed is on the page: as they
// counted it themselves, and as prometheus_client in the same processes did.
func TestPageIsWhatTheEngineObserved(t *testing.T) {
	t.Run("tcp", func(t *testing.T) { testPage(t, tcp(ports.One(t))) })
	t.Run("ipc", func(t *testing.T) { testPage(t, "ipc://"+filepath.Join(t.TempDir(), "events")) })
}

func testPage(t *testing.T, endpoint string) {
	t.Helper()
	c, address := shipped(t, endpoint)
	e := startEngine(t, t.TempDir(), map[string]any{"endpoint": endpoint}, 2000, "--reference")
	accounts := e.accounts(t)
	telemetry := settled(t, c, accounts)
	assertLedger(t, telemetry, accounts)
	for _, a := range accounts {
		assert.Zero(t, a.dropped(), "producer %d: dropped %v", a.PID, a.Dropped)
		assert.Equal(t, threads*e.events, a.Emitted)
		assert.NotEmpty(t, a.Refused, "no event was odd")
	}
	p := scrape(t, address)
	assertObserved(t, p, accounts)
	assertReference(t, p, accounts)
	c.Stop(t)
}

// assertObserved compares a page with what the producers counted, series by
// series, and in total over all of them.
func assertObserved(t *testing.T, p page, accounts []account) {
	t.Helper()
	wanted := map[seriesKey]observedSeries{}
	sums, found := map[string]float64{}, map[string]float64{}
	for _, a := range accounts {
		for _, s := range a.Series {
			wanted[keyOf(a.PID, s.Metric, s.Labels)] = s
		}
	}
	require.NotEmpty(t, wanted)
	assert.ElementsMatch(t, slices.Collect(maps.Keys(wanted)), slices.Collect(maps.Keys(p)), "the series on the page")
	for key, want := range wanted {
		got := p[key]
		if got == nil {
			continue // said above
		}
		switch want.Operation {
		case "set":
			require.NotNil(t, got.Gauge, key)
			assert.InDelta(t, want.Last, got.Gauge.GetValue(), 0, "the last value of %v", key)
		case "inc":
			require.NotNil(t, got.Counter, key)
			assertNear(t, want.Sum, got.Counter.GetValue(), key)
			sums[key.metric] += want.Sum
			found[key.metric] += got.Counter.GetValue()
		case "observe":
			require.NotNil(t, got.Histogram, key)
			assert.Equal(t, want.Count, got.Histogram.GetSampleCount(), "the count of %v", key)
			sums[key.metric+" count"] += float64(want.Count)
			found[key.metric+" count"] += float64(got.Histogram.GetSampleCount())
			if key.metric == sumless {
				assert.Zero(t, got.Histogram.GetSampleSum(), "the sum of %v", key)
				continue
			}
			assertNear(t, want.Sum, got.Histogram.GetSampleSum(), key)
			sums[key.metric] += want.Sum
			found[key.metric] += got.Histogram.GetSampleSum()
		default:
			t.Fatalf("operation %q", want.Operation)
		}
	}
	for name, sum := range sums {
		assertNear(t, sum, found[name], "all of "+name)
	}
}

// assertReference compares a page with those of prometheus_client, bucket by bucket.
func assertReference(t *testing.T, p page, accounts []account) {
	t.Helper()
	reference := page{}
	weighted := uint64(0)
	for _, a := range accounts {
		maps.Copy(reference, a.page)
	}
	require.NotEmpty(t, reference)
	assert.ElementsMatch(t, slices.Collect(maps.Keys(reference)), slices.Collect(maps.Keys(p)), "the series on the pages")
	for key, want := range reference {
		got := p[key]
		switch {
		case got == nil: // said above
		case want.Gauge != nil:
			assert.InDelta(t, want.Gauge.GetValue(), got.GetGauge().GetValue(), 0, key)
		case want.Counter != nil:
			require.NotNil(t, got.Counter, key)
			assertNear(t, want.Counter.GetValue(), got.Counter.GetValue(), key)
		default:
			require.NotNil(t, got.Histogram, key)
			assert.Equal(t, buckets(want.Histogram), buckets(got.Histogram), key)
			assert.Equal(t, want.Histogram.GetSampleCount(), got.Histogram.GetSampleCount(), key)
			if key.metric != sumless {
				assertNear(t, want.Histogram.GetSampleSum(), got.Histogram.GetSampleSum(), key)
			}
			if strings.HasSuffix(key.metric, "inter_token_latency_seconds") {
				weighted += got.Histogram.GetSampleCount()
			}
		}
	}
	assert.Positive(t, weighted, "no observation had a weight")
}

func assertNear(t *testing.T, want, got float64, what any) {
	t.Helper()
	assert.LessOrEqual(t, math.Abs(want-got), near*math.Abs(want), "%v: %v instead of %v", what, got, want)
}
