// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/tools/txtar"
)

func TestMutatesData(t *testing.T) {
	p, err := NewFactory().CreateMetrics(context.Background(), nopSettings(), createDefaultConfig(), consumertest.NewNop())
	require.NoError(t, err)
	require.True(t, p.Capabilities().MutatesData)
	require.NoError(t, p.Shutdown(context.Background()), "also without Start")
	require.NoError(t, p.Shutdown(context.Background()), "and twice")
}

type contextKey struct{}

func TestContextPasses(t *testing.T) {
	var got any
	next, err := consumer.NewMetrics(func(ctx context.Context, _ pmetric.Metrics) error {
		got = ctx.Value(contextKey{})
		return nil
	})
	require.NoError(t, err)
	p, err := NewFactory().CreateMetrics(context.Background(), nopSettings(), createDefaultConfig(), next)
	require.NoError(t, err)
	require.NoError(t, p.ConsumeMetrics(context.WithValue(context.Background(), contextKey{}, "kept"), assign(1, "a")))
	require.Equal(t, "kept", got)
}

// TestLogLines: bad input is logged once a source, reason and 10 s, with the latest offender, and what is allowed.
func TestLogLines(t *testing.T) {
	h := newHarness(t, createDefaultConfig().(*Config))
	core, logs := observer.New(zapcore.WarnLevel)
	h.logger = zap.New(core)
	bad := func(at time.Duration) {
		h.now = at
		md, err := parseMetrics(`
resource {service.instance.id="gpu-7:20380"}
delta_sum tokens
  {} -1 @1s..2s
  {} -2 @1s..2s
resource {service.instance.id="gpu-8:20380"}
delta_sum tokens
  {} -3 @1s..2s
`)
		require.NoError(t, err)
		require.NoError(t, h.ConsumeMetrics(context.Background(), md))
	}
	bad(0)
	bad(5 * time.Second)
	bad(10 * time.Second)
	var have []map[string]any
	for _, line := range logs.All() {
		require.Equal(t, "point rejected", line.Message)
		have = append(have, line.ContextMap())
	}
	line := func(instance, value string, notShown int64) map[string]any {
		return map[string]any{
			"reason": "negative_increment", "metric": "tokens", "instance": instance, "not_shown": notShown,
			"error": "value is " + value + "; allowed: 0 or more in a monotonic sum",
		}
	}
	require.Equal(t, []map[string]any{
		line("gpu-7:20380", "-1", 0), line("gpu-8:20380", "-3", 0),
		line("gpu-7:20380", "-1", 3), line("gpu-8:20380", "-3", 1),
	}, have)
}

// FuzzConsumeMetrics takes any metrics that OTLP can carry, twice, so that states meet points: it must not panic, the ledger must balance, and
// nothing empty may go on. The case files are the corpus to begin with.
func FuzzConsumeMetrics(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "cases", "*.txt"))
	require.NoError(f, err)
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		require.NoError(f, err)
		for _, section := range archive.Files {
			if md, err := parseMetrics(string(section.Data)); err == nil && md.DataPointCount() > 0 {
				wire, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
				require.NoError(f, err)
				f.Add(wire)
			}
		}
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		cfg := createDefaultConfig().(*Config)
		cfg.Resolution, cfg.MaxSeries = time.Millisecond, 3
		set := nopSettings()
		telemetry := componenttest.NewTelemetry()
		defer func() { require.NoError(t, telemetry.Shutdown(context.Background())) }()
		set.TelemetrySettings = telemetry.NewTelemetrySettings()
		set.Logger = zap.NewNop()
		next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
			requireNothingEmpty(t, md)
			return nil
		})
		require.NoError(t, err)
		p, err := newGaugeDedup(set, cfg, next, func() time.Duration { return 0 })
		require.NoError(t, err)
		points := 0
		for range 2 {
			md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(wire)
			if err != nil {
				return
			}
			points += md.DataPointCount()
			require.NoError(t, p.ConsumeMetrics(context.Background(), md))
		}
		h := &harness{t: t, telemetry: telemetry}
		require.Equal(t, points, h.decided())
		require.LessOrEqual(t, p.table.Series(), 3)
	})
}

func requireNothingEmpty(t *testing.T, md pmetric.Metrics) {
	require.NotZero(t, md.ResourceMetrics().Len())
	for _, rm := range md.ResourceMetrics().All() {
		require.NotZero(t, rm.ScopeMetrics().Len())
		for _, sm := range rm.ScopeMetrics().All() {
			require.NotZero(t, sm.Metrics().Len())
			for _, m := range sm.Metrics().All() {
				require.NotZero(t, points(m))
			}
		}
	}
}
