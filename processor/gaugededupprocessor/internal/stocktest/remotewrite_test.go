// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package stocktest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

// server is a real Prometheus server.
type server struct {
	t   *testing.T
	url string
	log *bytes.Buffer
}

// startServer runs the prometheus on the PATH until the test ends. Without one the test is skipped, but not where CI is true.
func startServer(t *testing.T) *server {
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("no prometheus on the PATH; apt-get install prometheus")
		}
		t.Skip("no prometheus on the PATH; apt-get install prometheus")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(config, []byte("{}"), 0o600))
	address := fmt.Sprintf("127.0.0.1:%d", ports.One(t))
	s := &server{t: t, url: "http://" + address, log: &bytes.Buffer{}}
	cmd := exec.Command(binary,
		"--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address,
		"--web.enable-remote-write-receiver", "--enable-feature=native-histograms", "--log.level=warn")
	cmd.Stdout, cmd.Stderr = s.log, s.log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		assert.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		assert.NoError(t, cmd.Wait(), "%s", s.log)
	})
	require.Eventually(t, func() bool {
		resp, err := http.Get(s.url + "/-/ready")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, 30*time.Second, 50*time.Millisecond, "%s", s.log)
	return s
}

func (s *server) get(path string) []byte {
	resp, err := http.Get(s.url + path)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, resp.StatusCode, "%s: %s", path, body)
	return body
}

// values runs a query at a time, and returns the values of the vector it gives.
func (s *server) values(query string, at pcommon.Timestamp) (values []float64) {
	var answer struct {
		Data struct {
			Result []struct {
				Value [2]any
			}
		}
	}
	body := s.get("/api/v1/query?query=" + url.QueryEscape(query) + "&time=" + strconv.FormatFloat(float64(at)/1e9, 'f', 3, 64))
	require.NoError(s.t, json.Unmarshal(body, &answer))
	for _, r := range answer.Data.Result {
		v, err := strconv.ParseFloat(r.Value[1].(string), 64)
		require.NoError(s.t, err)
		values = append(values, v)
	}
	return values
}

// value runs a query that gives one value.
func (s *server) value(query string, at pcommon.Timestamp) float64 {
	values := s.values(query, at)
	require.Len(s.t, values, 1, query)
	return values[0]
}

// refused returns how many samples and requests the server did not take.
func (s *server) refused() float64 {
	page := scrape(s.t, s.url[len("http://"):])
	total := 0.0
	for _, name := range []string{
		"prometheus_tsdb_out_of_order_samples_total", "prometheus_tsdb_out_of_bound_samples_total", "prometheus_tsdb_too_old_samples_total",
	} {
		require.Contains(s.t, page, name)
		for _, m := range page[name].GetMetric() {
			total += m.GetCounter().GetValue()
		}
	}
	for _, m := range page["prometheus_http_requests_total"].GetMetric() {
		var handler, code string
		for _, l := range m.GetLabel() {
			switch l.GetName() {
			case "handler":
				handler = l.GetValue()
			case "code":
				code = l.GetValue()
			}
		}
		if handler == "/api/v1/write" && code[0] != '2' {
			total += m.GetCounter().GetValue()
		}
	}
	return total
}

func remoteWriteTo(s *server, dedup string) string {
	return `
receivers: {inject: {}}
processors: {gauge_dedup: ` + dedup + `}
exporters:
  prometheus_remote_write:
    endpoint: ` + s.url + `/api/v1/write
    remote_write_queue: {enabled: false}
    retry_on_failure: {enabled: false}
` + pipelineOf("inject", "gauge_dedup", "prometheus_remote_write")
}

// TestRemoteWrite: what a real Prometheus server says after remote write is what the passes add up to, and it refuses nothing.
func TestRemoteWrite(t *testing.T) {
	s := startServer(t)
	c := startCollector(t, remoteWriteTo(s, "{resolution: 1ms}"))
	e := newEngine(2, "gpu-7:20380", time.Now().Add(-time.Minute))
	for range 60 {
		c.consume(e.batch(1 + e.IntN(20)))
	}
	e.now += pcommon.Timestamp(10 * time.Second) // an idle gap
	for range 20 {
		c.consume(e.batch(1 + e.IntN(20)))
	}
	e.restart()
	for range 20 {
		c.consume(e.batch(1 + e.IntN(20)))
	}

	at := e.now + pcommon.Timestamp(time.Millisecond)
	want := e.totals()
	assert.Equal(t, float64(want.queued), s.value("fpm_queued_decode_requests", at))
	assert.Equal(t, float64(want.counter), s.value("fpm_messages_total", at))
	assert.Equal(t, float64(want.tokens), s.value("fpm_decode_tokens_total", at))
	assert.Equal(t, float64(want.latencyCount), s.value("fpm_decode_token_latency_seconds_count", at))
	assert.InEpsilon(t, want.latencySum, s.value("fpm_decode_token_latency_seconds_sum", at), 1e-12)
	for _, q := range []float64{0.5, 0.9, 0.99} {
		have := s.value(fmt.Sprintf("histogram_quantile(%v, fpm_decode_token_latency_seconds_bucket)", q), at)
		assert.InEpsilon(t, want.latencyQuantile(q), have, 1e-9, "quantile %v", q)
		// The native histogram knows the value to a bucket of 9 %.
		have = s.value(fmt.Sprintf("histogram_quantile(%v, fpm_step_duration_seconds)", q), at)
		assert.InEpsilon(t, e.stepQuantile(q), have, 0.09, "quantile %v", q)
	}
	assert.Equal(t, float64(want.steps), s.value("histogram_count(fpm_step_duration_seconds)", at))
	assert.InEpsilon(t, want.stepSum, s.value("histogram_sum(fpm_step_duration_seconds)", at), 1e-12)
	checkRates(t, s, e)

	assert.Zero(t, s.refused(), "%s", s.log)
	assert.Empty(t, c.logs.All())
}

// checkRates compares the queries that the README recommends with what the passes of the last seconds say. rate extrapolates
// to the ends of its window, which costs some percent; what it must not do is depend on how many points there are.
func checkRates(t *testing.T, s *server, e *engine) {
	const window = time.Second
	at := e.now
	var tokens, passes, busy, length float64
	var before pass
	for i, p := range e.passes {
		if p.time <= at-pcommon.Timestamp(window) {
			before = p
			continue
		}
		tokens += float64(p.decode)
		passes++
		if i > 0 && before.time > at-pcommon.Timestamp(window) {
			busy += float64(before.queued) * float64(p.time-before.time)
			length += float64(p.time - before.time)
		}
		before = p
	}
	assert.InEpsilon(t, tokens/window.Seconds(), s.value("rate(fpm_decode_tokens_total[1s])", at), 0.15)
	assert.InEpsilon(t, passes/window.Seconds(), s.value("histogram_count(rate(fpm_step_duration_seconds[1s]))", at), 0.15)
	assert.InDelta(t, busy/length, s.value("avg_over_time(fpm_queued_decode_requests[1s:5ms])", at), 0.1)
}

// TestRemoteWriteOfOneMillisecond: two changes within one millisecond are not taken by the server unless resolution is set.
func TestRemoteWriteOfOneMillisecond(t *testing.T) {
	s := startServer(t)
	now := pcommon.NewTimestampFromTime(time.Now().Add(-time.Minute))
	now -= now % pcommon.Timestamp(time.Millisecond)
	burst := func(at pcommon.Timestamp) pmetric.Metrics {
		e := newEngine(3, "gpu-7:20380", time.Unix(0, int64(at)))
		md := e.batch(1)
		gauge := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints()
		for i := range 10 {
			number(gauge.AppendEmpty(), 0, at+pcommon.Timestamp(time.Second)+pcommon.Timestamp(i*100_000), int64(100+i))
		}
		return md
	}
	with := startCollector(t, remoteWriteTo(s, "{resolution: 1ms}"))
	with.consume(burst(now))
	require.Equal(t, 109.0, s.value("fpm_queued_decode_requests", now+pcommon.Timestamp(2*time.Second)))
	require.Zero(t, s.refused())

	// Without it the server keeps another value than the last one, and may say no word about it.
	later := now + pcommon.Timestamp(10*time.Second)
	without := startCollector(t, remoteWriteTo(s, "{}"))
	err := without.pipeline.ConsumeMetrics(context.Background(), burst(later))
	values := s.values("fpm_queued_decode_requests", later+pcommon.Timestamp(2*time.Second))
	require.NotEqual(t, []float64{109}, values, "this test would show nothing if the server took them")
	t.Logf("without resolution: error %v, values %v, refused %v", err, values, s.refused())
}

// TestAverageOfChanges: a long calm and a short flapping, averaged as the README says, and as it says is wrong.
func TestAverageOfChanges(t *testing.T) {
	s := startServer(t)
	c := startCollector(t, remoteWriteTo(s, "{resolution: 1ms}"))
	began := pcommon.NewTimestampFromTime(time.Now().Add(-2 * time.Minute).Truncate(time.Second))
	const calm, flapping = 55 * time.Second, 5 * time.Second
	assignEach := func(from pcommon.Timestamp, span, step time.Duration, value func(i int) int64) {
		md := newEngine(4, "gpu-7:20380", from.AsTime()).batch(1)
		md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().RemoveIf(func(m pmetric.Metric) bool { return m.Type() != pmetric.MetricTypeGauge })
		dps := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetEmptyGauge().DataPoints()
		for i := range int(span / step) {
			number(dps.AppendEmpty(), 0, from+pcommon.Timestamp(time.Duration(i)*step), value(i))
		}
		c.consume(md)
	}
	assignEach(began, calm, 10*time.Millisecond, func(int) int64 { return 10 })
	assignEach(began+pcommon.Timestamp(calm), flapping, 10*time.Millisecond, func(i int) int64 { return int64(i % 2) })
	at := began + pcommon.Timestamp(calm+flapping)
	const truth = (10*55 + 0.5*5) / 60.0
	assert.InDelta(t, truth, s.value("avg_over_time(fpm_queued_decode_requests[1m:1s])", at), 0.2)
	assert.Less(t, s.value("avg_over_time(fpm_queued_decode_requests[1m])", at), 1.0, "this test would show nothing if that were right")
	assert.InDelta(t, 57.5/60, s.value("avg_over_time((fpm_queued_decode_requests > bool 0)[1m:1s])", at), 0.05)
}
