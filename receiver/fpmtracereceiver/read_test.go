// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// publicExample is the row of Dynamo's documentation, on one line.
const publicExample = `{"timestamp":1250,"event":{"schema":"dynamo.fpm.trace.v1","source":{"namespace":"default","component":"backend","producer_id":"4192"},"capture_mode":"sampled","observed_at_unix_ms":1782777601250,"fpm":{"version":1,"worker_id":"4192","dp_rank":0,"counter_id":42,"wall_time":0.025,"scheduled_requests":{"num_prefill_requests":2,"sum_prefill_tokens":256,"sum_prefill_kv_tokens":64,"num_decode_requests":3,"sum_decode_kv_tokens":1024},"queued_requests":{"num_prefill_requests":1,"sum_prefill_tokens":128,"num_decode_requests":0,"sum_decode_kv_tokens":0}}}}` + "\n"

// TestPublicExample reads a trace made by hand: identity, time and content.
func TestPublicExample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.append(r.path("4192", 0), publicExample)
		r.start()
		r.settle()
		r.stop()

		at := pcommon.NewTimestampFromTime(time.UnixMilli(1782777601250))
		require.Len(t, r.logs.allLogs, 1)
		logs := r.logs.allLogs[0].ResourceLogs().At(0)
		identity := map[string]any{
			"service.namespace": "default", "service.name": "backend", "service.instance.id": "4192", "fpm.worker_id": "4192",
		}
		assert.Equal(t, identity, logs.Resource().Attributes().AsRaw())
		assert.Equal(t, "github.com/otelcol-fpm/otelcol-fpm/receiver/fpmtracereceiver", logs.ScopeLogs().At(0).Scope().Name())
		entry := logs.ScopeLogs().At(0).LogRecords().At(0)
		assert.Equal(t, at, entry.ObservedTimestamp())
		assert.Equal(t, at, entry.Timestamp())
		assert.Equal(t, "fpm.forward_pass", entry.EventName())
		assert.Equal(t, map[string]any{"fpm.dp_rank": int64(0), "fpm.capture_mode": "sampled"}, entry.Attributes().AsRaw())
		assert.Equal(t, map[string]any{
			"version": int64(1), "worker_id": "4192", "dp_rank": int64(0), "counter_id": int64(42), "wall_time": 0.025,
			"scheduled_requests": map[string]any{
				"num_prefill_requests": int64(2), "sum_prefill_tokens": int64(256), "sum_prefill_kv_tokens": int64(64),
				"num_decode_requests": int64(3), "sum_decode_kv_tokens": int64(1024),
			},
			"queued_requests": map[string]any{
				"num_prefill_requests": int64(1), "sum_prefill_tokens": int64(128),
				"num_decode_requests": int64(0), "sum_decode_kv_tokens": int64(0),
			},
		}, entry.Body().Map().AsRaw())

		require.Len(t, r.metrics.all, 1)
		metrics := r.metrics.all[0].ResourceMetrics().At(0)
		assert.Equal(t, identity, metrics.Resource().Attributes().AsRaw())
		assert.Equal(t, fpm.Gauges+1, metrics.ScopeMetrics().At(0).Metrics().Len())
		for _, metric := range metrics.ScopeMetrics().At(0).Metrics().All() {
			point := pcommon.Timestamp(0)
			if metric.Name() == fpm.MetricMessages {
				point = metric.Sum().DataPoints().At(0).Timestamp()
			} else {
				point = metric.Gauge().DataPoints().At(0).Timestamp()
			}
			assert.Equal(t, at, point, metric.Name())
		}
	})
}

// TestLines: what becomes of lines of every kind, and that the ones around them
// are read.
func TestLines(t *testing.T) {
	flat := rowOf{worker: "w", counter: 2}.record() + "\n"
	for _, test := range []struct {
		name, line string
		outcome    string // of rows
		reason     string // of rejected
		said       string // in the log
	}{
		{"a row", rows(2, 3), "accepted", "", ""},
		{"a row without variances", publicExample, "accepted", "", ""},
		{"a row with blanks", strings.ReplaceAll(rows(2, 3), ":", ": "), "accepted", "", ""},
		{"a row that ends in CR LF", strings.ReplaceAll(rows(2, 3), "\n", "\r\n"), "accepted", "", ""},
		{"a record without an envelope", flat, "no_envelope", "", ""},
		{"a foreign schema", strings.Replace(rows(2, 3), "fpm.trace.v1", "request.trace.v1", 1), "rejected", "schema", `schema: event.schema: got "dynamo.request.trace.v1", want dynamo.fpm.trace.v1`},
		{"an integer above 2^63-1", strings.Replace(rows(2, 3), "16384", "9223372036854775808", 1), "rejected", "out_of_range", "out_of_range: event.fpm.scheduled_requests.sum_decode_kv_tokens: got 9223372036854775808, want at most 9223372036854775807"},
		{"another version", strings.Replace(rows(2, 3), `"version":1`, `"version":2`, 1), "rejected", "unsupported_version", ""},
		{"a line that was cut", rows(2, 3)[:200] + "\n", "rejected", "malformed", ""},
		{"an empty line", "\n", "rejected", "malformed", "malformed: row: got an empty line, want a JSON object"},
		{"text", "hello\n", "rejected", "malformed", ""},
		{"other JSON", `{"message":"hello"}` + "\n", "rejected", "malformed", ""},
		{"a line over 16 MiB", strings.Repeat("x", maxRowBytes+1) + "\n", "rejected", "oversize", "oversize: row: got 16777217 bytes, want at most 16777216"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil)
				r.append(r.path("p", 0), rows(0, 1)+rows(1, 2)+test.line+rows(3, 4))
				r.start()
				r.settle()
				r.stop()
				want := map[string]int64{"accepted": 3, "no_envelope": 0, "rejected": 0}
				want[test.outcome]++
				for outcome, lines := range want {
					assert.Equal(t, lines, r.sum("rows", outcome), outcome)
				}
				said := r.messages("A line is no row")
				if test.reason == "" {
					assert.Empty(t, said)
					return
				}
				r.expect("p", []int64{0, 1, 3})
				assert.Equal(t, int64(1), r.sum("rejected", test.reason))
				require.Len(t, said, 1)
				fields := said[0].ContextMap()
				assert.Equal(t, r.path("p", 0), fields["file"])
				assert.Equal(t, int64(3), fields["line"])
				assert.Equal(t, test.reason, fields["reason"])
				if test.said != "" {
					assert.Equal(t, test.said, fields["error"])
				}
			})
		})
	}
}

// TestLineNumbers are those of the text of the whole file, also after a restart
// in the middle of it.
func TestLineNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newRig(t, withStorage)
		path := first.path("p", 0)
		first.append(path, rows(0, 3), rows(3, 5)+"bad\n"+rows(5, 6))
		first.start()
		first.settle()
		first.stop()
		require.Len(t, first.messages("A line is no row"), 1)
		assert.Equal(t, int64(6), first.messages("A line is no row")[0].ContextMap()["line"])

		second := rigIn(t, first.dir, withStorage)
		second.append(path, rows(6, 8)+"bad\n")
		second.start()
		second.settle()
		second.stop()
		second.expect("p", span(6, 8))
		assert.Equal(t, int64(10), second.messages("A line is no row")[0].ContextMap()["line"])
	})
}

// TestFlatRecords: their time is that of reading, their producer the worker, or
// the file when the worker has no name.
func TestFlatRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.append(r.dir+"/flat.jsonl.gz", rowOf{worker: "w", counter: 1}.record()+"\n"+rowOf{worker: "w", counter: 4}.record()+"\n"+rowOf{counter: 1}.record()+"\n")
		now := pcommon.NewTimestampFromTime(time.Now())
		r.start()
		r.settle()
		r.stop()
		r.expect("w", []int64{1, 4})
		r.expect("flat", []int64{1})
		for _, resource := range r.logs.allLogs[0].ResourceLogs().All() {
			attributes := resource.Resource().Attributes().AsRaw()
			assert.Equal(t, "default", attributes["service.namespace"])
			assert.Equal(t, "backend", attributes["service.name"])
			for _, entry := range resource.ScopeLogs().At(0).LogRecords().All() {
				assert.Equal(t, now, entry.ObservedTimestamp())
				assert.Equal(t, map[string]any{"fpm.dp_rank": int64(0)}, entry.Attributes().AsRaw())
			}
		}
		// As metrics they are whole passes, with times that increase.
		points := pointsOf(r, "w")
		assert.Equal(t, []pcommon.Timestamp{now, now + pcommon.Timestamp(time.Millisecond)}, points.times[fpm.MetricStepDuration])
		assert.Equal(t, []int64{2}, points.ints[fpm.MetricMessagesLost])
	})
}

// series are the points of one producer, by metric.
type points struct {
	times, starts map[string][]pcommon.Timestamp
	ints          map[string][]int64
}

func pointsOf(r *rig, producer string) points {
	p := points{map[string][]pcommon.Timestamp{}, map[string][]pcommon.Timestamp{}, map[string][]int64{}}
	for _, metrics := range r.metrics.all {
		for _, resource := range metrics.ResourceMetrics().All() {
			if fpm.SourceOf(resource.Resource()).ProducerID != producer {
				continue
			}
			for _, metric := range resource.ScopeMetrics().At(0).Metrics().All() {
				name := metric.Name()
				add := func(start, time pcommon.Timestamp, value int64) {
					p.starts[name] = append(p.starts[name], start)
					p.times[name] = append(p.times[name], time)
					p.ints[name] = append(p.ints[name], value)
				}
				switch {
				case metric.Name() == fpm.MetricStepDuration || metric.Name() == fpm.MetricDecodeTokenLatency:
					for _, point := range metric.Histogram().DataPoints().All() {
						add(point.StartTimestamp(), point.Timestamp(), int64(point.Count()))
					}
				case strings.HasPrefix(name, "fpm.scheduled") || strings.HasPrefix(name, "fpm.queued"):
					for _, point := range metric.Gauge().DataPoints().All() {
						add(0, point.Timestamp(), point.IntValue())
					}
				default:
					for _, point := range metric.Sum().DataPoints().All() {
						add(point.StartTimestamp(), point.Timestamp(), point.IntValue())
					}
				}
			}
		}
	}
	return p
}

// TestSampledRows give gauges and fpm.messages only: no losses, tokens or
// durations can be concluded from them.
func TestSampledRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		text := ""
		for counter := int64(0); counter < 500; counter += 100 {
			text += rowOf{counter: counter, sampled: true}.String()
		}
		r.append(r.path("p", 0), text)
		r.start()
		r.settle()
		r.stop()
		points := pointsOf(r, "p")
		require.Len(t, points.times, fpm.Gauges+1)
		assert.Equal(t, []int64{0, 100, 200, 300, 400}, points.ints[fpm.MetricMessages])
		for _, entry := range r.logs.allLogs[0].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().All() {
			mode, _ := entry.Attributes().Get(fpm.AttrCaptureMode)
			assert.Equal(t, "sampled", mode.Str())
		}
	})
}

// TestLosses: gaps in the counter of a full trace are losses; a counter that
// falls is a restart, and sampled rows prove nothing.
func TestLosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		at := began
		text := ""
		add := func(sampled bool, counters ...int64) {
			for _, counter := range counters {
				at = at.Add(20 * time.Millisecond)
				text += rowOf{counter: counter, at: at, sampled: sampled}.String()
			}
		}
		add(false, 10, 11, 15) // 3 lost
		add(false, 15)         // again: nothing
		add(false, 2, 4)       // a restart, 1 lost
		add(true, 50)
		add(false, 60, 62) // not 9, but 1
		r.append(r.path("p", 0), text)
		r.start()
		r.settle()
		r.stop()
		points := pointsOf(r, "p")
		assert.Equal(t, []int64{5}, points.ints[fpm.MetricMessagesLost])
		starts := points.starts[fpm.MetricMessages]
		first, second := starts[0], starts[4]
		assert.Equal(t, []pcommon.Timestamp{first, first, first, first, second, second, second, second, second}, starts)
		assert.Greater(t, second, first)
		assert.Less(t, second, points.times[fpm.MetricMessages][4])
	})
}

// TestTimesStrictlyIncrease within a rank, whatever the rows say; logs keep the
// rows' own times.
func TestTimesStrictlyIncrease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		text := ""
		var own []pcommon.Timestamp
		for i, offset := range []time.Duration{0, 20, 20, 20, 21, 40, 10, -5000, 50, 60} {
			at := began.Add(offset * time.Millisecond)
			own = append(own, pcommon.NewTimestampFromTime(at))
			text += rowOf{counter: int64(i), at: at}.String()
		}
		r.append(r.path("p", 0), text)
		r.start()
		r.settle()
		r.stop()
		at := func(ms time.Duration, ns int) pcommon.Timestamp {
			return pcommon.NewTimestampFromTime(began.Add(ms*time.Millisecond + time.Duration(ns)))
		}
		want := []pcommon.Timestamp{at(0, 0), at(20, 0), at(21, 0), at(22, 0), at(23, 0), at(40, 0), at(41, 0), at(41, 1), at(50, 0), at(60, 0)}
		points := pointsOf(r, "p")
		for _, name := range []string{fpm.MetricMessages, "fpm.queued.decode.requests", fpm.MetricDecodeTokens} {
			assert.Equal(t, want, points.times[name], name)
		}
		// Delta points are contiguous.
		starts := points.starts[fpm.MetricDecodeTokens]
		assert.Equal(t, want[:9], starts[1:])
		assert.Less(t, starts[0], want[0])

		var logged []pcommon.Timestamp
		for _, entry := range r.logs.allLogs[0].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().All() {
			logged = append(logged, entry.ObservedTimestamp())
		}
		assert.Equal(t, own, logged)
		said := r.messages("Rows are older")
		require.Len(t, said, 1)
		assert.Equal(t, int64(8), said[0].ContextMap()["line"])
	})
}

// TestOverflow: a duration whose sum is no finite number gives no observation.
func TestOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.append(r.path("p", 0), rowOf{counter: 3, wallTime: "1e308"}.String())
		r.start()
		r.settle()
		r.stop()
		assert.Equal(t, int64(1), r.sum("overflow"))
		points := pointsOf(r, "p")
		assert.Len(t, points.times[fpm.MetricStepDuration], 1)
		assert.Empty(t, points.times[fpm.MetricDecodeTokenLatency])
	})
}

// TestOneSignal: a receiver in one pipeline only.
func TestOneSignal(t *testing.T) {
	for name, without := range map[string]func(*rig){
		"metrics": func(r *rig) { r.logs = nil },
		"logs":    func(r *rig) { r.metrics = nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil)
				without(r)
				r.append(r.path("p", 0), rows(0, 10))
				r.start()
				r.settle()
				r.stop()
				r.expect("p", span(0, 10))
			})
		})
	}
}
