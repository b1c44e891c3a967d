// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"bytes"
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/otelcol-fpm/otelcol-fpm/internal/histogramconfig"
)

// BenchmarkMessage takes messages from the socket's side to the next consumer:
// decode, continuity, queues, batches of 1,024, pdata; one after the other, so
// that the time is that of one core. One operation is one message, of 8 ranks in
// turn. What the socket allocates for a message (its frames) is not counted.
func BenchmarkMessage(b *testing.B) {
	for _, test := range []struct {
		name    string
		signals []signal
		change  func(*Config)
	}{
		{"metrics", []signal{signalMetrics}, func(*Config) {}},
		{"metrics,exponential", []signal{signalMetrics}, func(c *Config) {
			c.Histogram.Exponential = configoptional.Some(histogramconfig.ExponentialConfig{MaxSize: 160})
		}},
		{"metrics,gauge_interval", []signal{signalMetrics}, func(c *Config) { c.GaugeInterval = time.Second }},
		{"logs", []signal{signalLogs}, func(*Config) {}},
		{"both", []signal{signalMetrics, signalLogs}, func(*Config) {}},
	} {
		b.Run(test.name, func(b *testing.B) {
			r := newReceiver(testConfig(test.change), nopSettings(), func() {})
			require.NoError(b, r.expand())
			require.NoError(b, r.startTelemetry())
			report, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{ReceiverID: r.settings.ID, ReceiverCreateSettings: r.settings})
			require.NoError(b, err)
			for _, s := range test.signals {
				if s == signalMetrics {
					r.metrics = consumertest.NewNop()
					r.addRunner(s, newMetricsPipe(r, r.metrics, report))
				} else {
					r.addRunner(s, newLogsPipe(r, consumertest.NewNop(), report))
				}
			}
			e := r.endpoints[0]
			e.Connected()

			const batch = 1024
			var frames *frameSource
			b.ReportAllocs()
			for sent := 0; b.Loop(); sent++ {
				if sent%batch == 0 {
					b.StopTimer()
					frames = newFrames(batch)
					b.StartTimer()
				}
				e.Message(frames.next(sent), time.Now())
				if sent%batch == batch-1 {
					for _, s := range test.signals {
						require.True(b, r.runners[s].once(context.Background(), batch))
						require.Zero(b, r.runners[s].queue.length())
					}
				}
			}
		})
	}
}

// frameSource makes messages ahead of time: a receiver keeps their payloads.
type frameSource struct {
	payloads [][]byte
	at       int // of the counter in each
}

func newFrames(n int) *frameSource {
	s := &frameSource{}
	for i := range n {
		p := busy("vllm-0", i%8, 1<<40)
		p.Scheduled.VarPrefillLength, p.Queued.VarPrefillLength = 1234.5, 999.25
		payload := p.payload()
		// A counter this large has a fixed width, so that it can be counted up.
		s.at = bytes.Index(payload, []byte("counter_id")) + len("counter_id") + 1
		s.payloads = append(s.payloads, payload)
	}
	return s
}

func (s *frameSource) next(sent int) [][]byte {
	payload := s.payloads[sent%len(s.payloads)]
	counter := uint64(1<<40 + sent/8)
	binary.BigEndian.PutUint64(payload[s.at:], counter)
	return envelope(counter, payload)
}
