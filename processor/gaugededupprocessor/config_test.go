// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func TestConfig(t *testing.T) {
	all, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)

	tests := []struct {
		name  string
		want  *Config
		wants []string // texts of which each is part of the error
	}{
		{name: "gauge_dedup", want: createDefaultConfig().(*Config)},
		{name: "gauge_dedup/full", want: &Config{
			RefreshInterval: 2 * time.Second,
			Tolerance:       100 * time.Millisecond,
			Resolution:      time.Millisecond,
			Histograms:      HistogramsConfig{Temporality: TemporalityDelta, MaxSize: 320},
			Sums:            SumsConfig{Temporality: TemporalityPassthrough},
			MaxSeries:       1000,
			SeriesTTL:       time.Hour,
			Include:         IncludeConfig{Metrics: []string{"fpm.*", "vllm:*"}},
		}},
		{name: "gauge_dedup/changes_only", want: func() *Config {
			c := createDefaultConfig().(*Config)
			c.RefreshInterval = 0
			return c
		}()},
		{name: "gauge_dedup/all_wrong", wants: []string{
			"refresh_interval is -1s; allowed: 0 (changes only) or more",
			"tolerance is 2s; allowed: 0, or less than refresh_interval (-1s)",
			"resolution is -1ms; allowed: 0 (every change) or more",
			"max_series is 0; allowed: 1 or more",
			"series_ttl is 0s; allowed: more than 0, and at least twice refresh_interval (-1s)",
			"histograms: temporality is \"sum\"; allowed: cumulative, delta, passthrough",
			"max_size is 1; allowed: 2 to 16384",
			"sums: temporality is \"\"; allowed: cumulative, delta, passthrough",
			"include: metrics[1] is empty; allowed: a metric name, with * for any text and ? for any one character",
		}},
		{name: "gauge_dedup/short_ttl", wants: []string{
			"series_ttl is 1.9s; allowed: more than 0, and at least twice refresh_interval (1s)",
		}},
		{name: "gauge_dedup/tolerance", wants: []string{
			"tolerance is 1s; allowed: 0, or less than refresh_interval (1s)",
		}},
		{name: "gauge_dedup/unknown_key", wants: []string{"refresh"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id := component.MustNewID("gauge_dedup")
			require.NoError(t, id.UnmarshalText([]byte(tt.name)))
			sub, err := all.Sub(id.String())
			require.NoError(t, err)
			cfg := createDefaultConfig()
			err = sub.Unmarshal(cfg)
			if err == nil {
				err = confmap.Validate(cfg)
			}
			if tt.want != nil {
				require.NoError(t, err)
				require.Equal(t, tt.want, cfg)
				return
			}
			for _, want := range tt.wants {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestGlobs(t *testing.T) {
	tests := []struct {
		globs globs
		name  string
		want  bool
	}{
		{nil, "anything", true},
		{globs{"fpm.*"}, "fpm.messages", true},
		{globs{"fpm.*"}, "fpm", false},
		{globs{"fpm.*"}, "xfpm.messages", false},
		{globs{"fpm.*.tokens"}, "fpm.decode.tokens", true},
		{globs{"fpm.*.tokens"}, "fpm.tokens.decode.tokens", true},
		{globs{"fpm.*.tokens"}, "fpm.tokens", false},
		{globs{"*"}, "", true},
		{globs{"a?c"}, "abc", true},
		{globs{"a?c"}, "ac", false},
		{globs{"*/rate"}, "disk/read/rate", true},
		{globs{"no", "yes"}, "yes", true},
		{globs{"a*b*c"}, "a-b-b-c", true},
		{globs{"a*b*c"}, "a-c-b", false},
		{globs{"[x]"}, "x", false},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, tt.globs.match(tt.name), "%v of %q", tt.globs, tt.name)
	}
}
