// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/deltatocumulativeprocessor"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/confignet"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// stream is what two ranks of a worker say in three batches: passes from half a
// millisecond to minutes, heartbeats between them, one untimed pass, one whose
// weighted sum overflows.
type stream struct {
	form    *fpm.HistogramForm
	began   pcommon.Timestamp
	batches []pmetric.Metrics
	// What must come out, by rank.
	total map[int64]*totals
}

type totals struct {
	// observed are the durations of the steps; weights their decode requests.
	observed, weights []float64
	steps             uint64
	stepSum           float64
	tokens            uint64
	tokenSum          float64
	prefill           int64
	decode            int64
	messages, lost    int64
	queued            int64
}

func newStream(form *fpm.HistogramForm) *stream {
	s := &stream{
		form:  form,
		began: pcommon.NewTimestampFromTime(time.Now().Add(-time.Minute)),
		total: map[int64]*totals{0: {}, 1: {}},
	}
	links := map[int64]*fpm.Links{0: {Began: s.began}, 1: {Began: s.began}}
	now := s.began
	walls := []float64{0.0213, 0, 0.0005, 0.004, 0.02, 0, 0.025, 1.5, 0.0213, 130}
	message := 0
	for batch := range 3 {
		metrics, scope := newMetrics()
		worker := fpm.NewWorkerMetrics(scope, form, len(walls))
		for i, wall := range walls {
			message++
			now += 10_000_000
			rank := int64(message % 2)
			total := s.total[rank]
			record := &fpm.Record{DPRank: rank, CounterID: int64(message), WallTime: wall}
			if i != 1 { // else a heartbeat
				record.Scheduled = fpm.Requests{
					SumPrefillTokens: int64(100 * i), NumDecodeRequests: int64(i * batch), SumDecodeKVTokens: 5,
				}
				record.Queued.NumPrefillRequests = int64(message)
			}
			want := 0
			if i == 8 && batch == 1 {
				record.WallTime, want = math.MaxFloat64/4, 1
				total.stepSum += record.WallTime
				total.steps++
			} else if wall > 0 {
				total.steps++
				total.stepSum += wall
				if weight := record.Scheduled.NumDecodeRequests; weight > 0 {
					total.tokens += uint64(weight)
					total.tokenSum += wall * float64(weight)
				}
			}
			if record.WallTime > 0 {
				total.observed = append(total.observed, record.WallTime)
				total.weights = append(total.weights, float64(int64(1-want)*record.Scheduled.NumDecodeRequests))
			}
			total.prefill += record.Scheduled.SumPrefillTokens
			total.decode += record.Scheduled.NumDecodeRequests
			total.messages = record.CounterID
			total.queued = record.Queued.NumPrefillRequests
			if overflowed := worker.Pass(fpm.Pass{Record: record, Time: now, CounterStart: s.began}, links[rank]); overflowed != want {
				panic(overflowed)
			}
		}
		for rank, total := range s.total {
			total.lost += rank + 1
			worker.Lost(fpm.RankAttributes{DPRank: rank}, fpm.Lost{Total: total.lost, Start: s.began}, now)
		}
		s.batches = append(s.batches, metrics)
	}
	return s
}

func newMetrics() (pmetric.Metrics, pmetric.ScopeMetrics) {
	metrics := pmetric.NewMetrics()
	resource := metrics.ResourceMetrics().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.namespace", "default")
	resource.Resource().Attributes().PutStr("service.name", "backend")
	resource.Resource().Attributes().PutStr("service.instance.id", "worker-7")
	return metrics, resource.ScopeMetrics().AppendEmpty()
}

// stale is a batch in which a rank ended, and both endpoints are told.
func (s *stream) stale(rank int64) pmetric.Metrics {
	metrics, scope := newMetrics()
	worker := fpm.NewWorkerMetrics(scope, s.form, 0)
	worker.Stale(fpm.RankAttributes{DPRank: rank}, pcommon.NewTimestampFromTime(time.Now()))
	fpm.AppendEndpointUp(scope, "tcp://gpu-7:20380", true, pcommon.NewTimestampFromTime(time.Now()))
	return metrics
}

// The stock Prometheus exporter adds our delta points up, without a processor
// before it.
func TestPrometheusExporterAddsUp(t *testing.T) {
	for name, form := range map[string]*fpm.HistogramForm{
		"explicit":    fpm.ExplicitForm([]float64{0.001, 0.01, 0.025, 0.1}),
		"exponential": fpm.ExponentialForm(160),
	} {
		t.Run(name, func(t *testing.T) {
			s := newStream(form)
			consume, scrape := startPrometheus(t)
			for _, batch := range s.batches {
				consume(batch)
			}
			families := scrape()
			for rank, total := range s.total {
				at := func(name string) *dto.Metric { return find(t, families, name, rank) }
				assert.InDelta(t, total.messages, at("fpm_messages_total").GetCounter().GetValue(), 0)
				assert.InDelta(t, total.lost, at("fpm_messages_lost_total").GetCounter().GetValue(), 0)
				assert.InDelta(t, total.prefill, at("fpm_prefill_tokens_total").GetCounter().GetValue(), 0)
				assert.InDelta(t, total.decode, at("fpm_decode_tokens_total").GetCounter().GetValue(), 0)
				assert.InDelta(t, total.queued, at("fpm_queued_prefill_requests").GetGauge().GetValue(), 0)
				step := at("fpm_step_duration_seconds").GetHistogram()
				assert.Equal(t, total.steps, step.GetSampleCount())
				assert.InEpsilon(t, total.stepSum, step.GetSampleSum(), 1e-12)
				assertBuckets(t, step, total.observed, nil)
				tokens := at("fpm_decode_token_latency_seconds").GetHistogram()
				assert.Equal(t, total.tokens, tokens.GetSampleCount())
				assert.InEpsilon(t, total.tokenSum, tokens.GetSampleSum(), 1e-12)
				assertBuckets(t, tokens, total.observed, total.weights)
				if name == "exponential" {
					assert.EqualValues(t, 3, tokens.GetSchema())
				}
			}

			// A stale rank ends all its gauges and nothing else; the other rank's stay.
			consume(s.stale(1))
			after := scrape()
			for i := range fpm.Metrics {
				metric := &fpm.Metrics[i]
				prometheus := metric.PrometheusName()
				require.NotNil(t, find(t, families, prometheus, 0), metric.Name)
				require.NotNil(t, find(t, families, prometheus, 1), metric.Name)
				require.NotNil(t, find(t, after, prometheus, 0), metric.Name)
				assert.Equal(t, metric.IsGauge(), find(t, after, prometheus, 1) == nil, metric.Name)
				assert.Equal(t, metric.Description, families[prometheus].GetHelp())
			}
			require.Contains(t, after, fpm.EndpointUp.PrometheusName())
			assert.Len(t, families, len(fpm.Metrics)+1, "target_info and no metric of another name")
		})
	}
}

// So does the stock delta_to_cumulative processor, with the start of the stream
// as start time.
func TestDeltaToCumulativeAddsUp(t *testing.T) {
	for name, form := range map[string]*fpm.HistogramForm{
		"explicit":    fpm.ExplicitForm([]float64{0.001, 0.01, 0.025, 0.1}),
		"exponential": fpm.ExponentialForm(160),
	} {
		t.Run(name, func(t *testing.T) {
			s := newStream(form)
			sink := new(consumertest.MetricsSink)
			factory := deltatocumulativeprocessor.NewFactory()
			processor, err := factory.CreateMetrics(t.Context(), processortest.NewNopSettings(factory.Type()), factory.CreateDefaultConfig(), sink)
			require.NoError(t, err)
			require.NoError(t, processor.Start(t.Context(), componenttest.NewNopHost()))
			for _, batch := range s.batches {
				require.NoError(t, processor.ConsumeMetrics(t.Context(), batch))
			}
			require.NoError(t, processor.Shutdown(t.Context()))

			seen := 0
			last := sink.AllMetrics()[len(s.batches)-1].ResourceMetrics().At(0).ScopeMetrics().At(0)
			lastOfRank := func(name string, attributes pcommon.Map, start pcommon.Timestamp) *totals {
				seen++
				assert.Equal(t, s.began, start, name)
				rank, _ := attributes.Get(fpm.AttrDPRank)
				return s.total[rank.Int()]
			}
			for _, metric := range last.Metrics().All() {
				name := metric.Name()
				switch metric.Type() {
				case pmetric.MetricTypeSum:
					points := metric.Sum().DataPoints()
					for i := points.Len() - 2; i < points.Len(); i++ {
						total := lastOfRank(name, points.At(i).Attributes(), points.At(i).StartTimestamp())
						assert.Equal(t, pmetric.AggregationTemporalityCumulative, metric.Sum().AggregationTemporality())
						assert.Equal(t, map[string]int64{
							fpm.MetricMessages: total.messages, fpm.MetricMessagesLost: total.lost,
							fpm.MetricPrefillTokens: total.prefill, fpm.MetricDecodeTokens: total.decode,
						}[name], points.At(i).IntValue(), name)
					}
				case pmetric.MetricTypeHistogram:
					for _, point := range lastTwo(metric.Histogram().DataPoints().All()) {
						total := lastOfRank(name, point.Attributes(), point.StartTimestamp())
						assertTotal(t, name, total, point.Count(), point.Sum())
					}
				case pmetric.MetricTypeExponentialHistogram:
					for _, point := range lastTwo(metric.ExponentialHistogram().DataPoints().All()) {
						total := lastOfRank(name, point.Attributes(), point.StartTimestamp())
						assertTotal(t, name, total, point.Count(), point.Sum())
					}
				}
			}
			assert.Equal(t, 2*(len(fpm.Metrics)-fpm.Gauges), seen)
		})
	}
}

func assertTotal(t *testing.T, name string, total *totals, count uint64, sum float64) {
	if name == fpm.MetricStepDuration {
		assert.Equal(t, total.steps, count, name)
		assert.InEpsilon(t, total.stepSum, sum, 1e-12, name)
		return
	}
	assert.Equal(t, total.tokens, count, name)
	assert.InEpsilon(t, total.tokenSum, sum, 1e-12, name)
}

// lastTwo keeps the last point of each rank: ranks take turns.
func lastTwo[P any](all func(func(int, P) bool)) []P {
	var points []P
	all(func(_ int, point P) bool {
		points = append(points, point)
		return true
	})
	return points[len(points)-2:]
}

// startPrometheus runs the stock exporter on a socket of its own.
func startPrometheus(t *testing.T) (consume func(pmetric.Metrics), scrape func() map[string]*dto.MetricFamily) {
	factory := prometheusexporter.NewFactory()
	config := factory.CreateDefaultConfig().(*prometheusexporter.Config)
	socket := filepath.Join(t.TempDir(), "metrics")
	config.ServerConfig.NetAddr = confignet.AddrConfig{Transport: confignet.TransportTypeUnix, Endpoint: socket}
	exporter, err := factory.CreateMetrics(t.Context(), exportertest.NewNopSettings(factory.Type()), config)
	require.NoError(t, err)
	require.NoError(t, exporter.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, exporter.Shutdown(context.Background())) })

	consume = func(batch pmetric.Metrics) { require.NoError(t, exporter.ConsumeMetrics(t.Context(), batch)) }
	scrape = func() map[string]*dto.MetricFamily {
		transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}}
		defer transport.CloseIdleConnections()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://prometheus/metrics", http.NoBody)
		require.NoError(t, err)
		request.Header.Set("Accept", string(expfmt.NewFormat(expfmt.TypeProtoDelim)))
		response, err := transport.RoundTrip(request)
		require.NoError(t, err)
		defer response.Body.Close()
		require.Equal(t, http.StatusOK, response.StatusCode)
		families := map[string]*dto.MetricFamily{}
		decoder := expfmt.NewDecoder(response.Body, expfmt.ResponseFormat(response.Header))
		for {
			family := new(dto.MetricFamily)
			if err := decoder.Decode(family); errors.Is(err, io.EOF) {
				return families
			} else if err != nil {
				require.NoError(t, err)
			}
			families[family.GetName()] = family
		}
	}
	return consume, scrape
}

// find returns the series of a rank, nil when there is none.
func find(t *testing.T, families map[string]*dto.MetricFamily, name string, rank int64) *dto.Metric {
	require.Contains(t, families, name)
	for _, metric := range families[name].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		assert.Equal(t, "default/backend", labels["job"])
		assert.Equal(t, "worker-7", labels["instance"])
		if labels["fpm_dp_rank"] == strconv.FormatInt(rank, 10) {
			return metric
		}
	}
	return nil
}

// assertBuckets counts again what each bucket of a classic histogram, or all
// buckets of a native one, must hold. weights is nil when each value counts once.
func assertBuckets(t *testing.T, histogram *dto.Histogram, values, weights []float64) {
	upTo := func(bound float64) (sum float64) {
		for i, value := range values {
			switch {
			case value > bound:
			case weights == nil:
				sum++
			default:
				sum += weights[i]
			}
		}
		return sum
	}
	for _, bucket := range histogram.GetBucket() {
		assert.InDelta(t, upTo(bucket.GetUpperBound()), bucket.GetCumulativeCount(), 0, "up to %v", bucket.GetUpperBound())
	}
	if histogram.Schema == nil {
		assert.GreaterOrEqual(t, len(histogram.GetBucket()), 4)
		return
	}
	var sum, running int64
	for _, delta := range histogram.GetPositiveDelta() {
		running += delta
		sum += running
	}
	assert.InDelta(t, upTo(math.Inf(1)), sum, 0)
}
