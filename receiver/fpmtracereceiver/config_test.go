// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/otelcol-fpm/otelcol-fpm/internal/histogramconfig"
	"github.com/otelcol-fpm/otelcol-fpm/receiver/fpmtracereceiver/internal/metadata"
)

func TestDefaultConfig(t *testing.T) {
	require.NoError(t, componenttest.CheckConfigStruct(createDefaultConfig()))
	cfg := createDefaultConfig().(*Config)
	assert.EqualError(t, cfg.Validate(), `include: got [], want at least one pattern of files, such as /var/log/dynamo/fpm.*.jsonl.gz`)
	cfg.Include = []string{"x"}
	assert.NoError(t, cfg.Validate())
}

func TestLoadConfig(t *testing.T) {
	storage := component.MustNewIDWithName("file_storage", "traces")
	for name, want := range map[string]func(*Config){
		"": func(c *Config) { c.Include = []string{"/var/log/dynamo/fpm.*.jsonl.gz"} },
		"everything": func(c *Config) {
			c.Include = []string{"/a/*.jsonl.gz", "/b/?/[a-c].jsonl.gz"}
			c.StartAt = startEnd
			c.PollInterval = 250 * time.Millisecond
			c.Mode = modeTail
			c.Storage = &storage
			c.FollowSymlinks = true
			c.Histogram.Bounds = []float64{0.01, 0.1, 1}
		},
		"once": func(c *Config) {
			c.Include = []string{"/a/*.jsonl.gz"}
			c.Mode, c.ExitWhenDone = modeOnce, true
			c.Histogram.Exponential = configoptional.Some(histogramconfig.ExponentialConfig{MaxSize: 160})
		},
	} {
		t.Run(name, func(t *testing.T) {
			conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
			require.NoError(t, err)
			sub, err := conf.Sub(component.NewIDWithName(metadata.Type, name).String())
			require.NoError(t, err)
			cfg := createDefaultConfig()
			require.NoError(t, sub.Unmarshal(cfg))
			expected := createDefaultConfig().(*Config)
			want(expected)
			assert.Equal(t, expected, cfg)
			assert.NoError(t, cfg.(*Config).Validate())
		})
	}
}

func TestUnknownKey(t *testing.T) {
	cfg := createDefaultConfig()
	err := confmap.NewFromStringMap(map[string]any{"includes": []any{"x"}}).Unmarshal(cfg)
	assert.ErrorContains(t, err, "includes")
}

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Config)
		want   []string
	}{
		{"empty pattern", func(c *Config) { c.Include = []string{"a", " "} }, []string{`include::1: got " ", want a pattern of files`}},
		{"open bracket", func(c *Config) { c.Include = []string{"/a/[b"} }, []string{`include::0: got "/a/[b", want a pattern of *, ?, [a-z] and \ before a character that is meant as it stands`}},
		{"two stars", func(c *Config) { c.Include = []string{"/a/**/b"} }, []string{`include::0: got "/a/**/b", want no **: a * stands for any text within one element of a path; give one pattern a depth`}},
		{"a directory", func(c *Config) { c.Include = []string{"/a/"} }, []string{`include::0: got "/a/", want a pattern of files, not of directories`}},
		{"NUL", func(c *Config) { c.Include = []string{"/a\x00"} }, []string{`include::0: got "/a\x00", want a pattern without a NUL character`}},
		{"start_at", func(c *Config) { c.StartAt = "middle" }, []string{`start_at: got "middle", want beginning or end`}},
		{"mode", func(c *Config) { c.Mode = "follow" }, []string{`mode: got "follow", want tail or once`}},
		{"poll_interval", func(c *Config) { c.PollInterval = 0 }, []string{"poll_interval: got 0s, want more than 0s"}},
		{"exit when never done", func(c *Config) { c.ExitWhenDone = true }, []string{`exit_when_done: got true with mode "tail", want mode once beside it: mode tail is never done`}},
		{"once at the end", func(c *Config) { c.Mode, c.StartAt = modeOnce, startEnd }, []string{"start_at: got end with mode once, want beginning: nothing would be read"}},
		{"both histograms", func(c *Config) {
			c.Histogram.Bounds = []float64{1}
			c.Histogram.Exponential = configoptional.Some(histogramconfig.ExponentialConfig{MaxSize: 160})
		}, []string{"histogram: got bounds and exponential, want exactly one of the two"}},
		{"no bounds", func(c *Config) { c.Histogram.Bounds = []float64{} }, []string{"histogram::bounds: got [], want at least one bound"}},
		{"bounds", func(c *Config) { c.Histogram.Bounds = []float64{1, 1, math.NaN()} }, []string{
			"histogram::bounds::1: got 1, want finite bounds in seconds, strictly increasing",
			"histogram::bounds::2: got NaN, want finite bounds in seconds, strictly increasing",
		}},
		{"max_size", func(c *Config) {
			c.Histogram.Exponential = configoptional.Some(histogramconfig.ExponentialConfig{MaxSize: 1})
		}, []string{"histogram::exponential::max_size: got 1, want 2 to 16384"}},
		{"all at once", func(c *Config) { *c = Config{} }, []string{
			"include: got [], want at least one pattern of files, such as /var/log/dynamo/fpm.*.jsonl.gz",
			`start_at: got "", want beginning or end`,
			`mode: got "", want tail or once`,
			"poll_interval: got 0s, want more than 0s",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			cfg.Include = []string{"/a/*.jsonl.gz"}
			test.change(cfg)
			assert.EqualError(t, cfg.Validate(), strings.Join(test.want, "\n"))
		})
	}
}

// TestStartErrors: what only Start can know of the configuration.
func TestStartErrors(t *testing.T) {
	other := component.MustNewID("health_check")
	for _, test := range []struct {
		name       string
		extensions map[component.ID]component.Component
		want       string
	}{
		{"not there", nil, `storage: got "health_check", want a storage extension that is listed under service::extensions`},
		{"no storage", map[component.ID]component.Component{other: &traceReceiver{}}, `storage: got "health_check", want a storage extension: that one is none`},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.Storage = &other })
			part, err := NewFactory().CreateLogs(t.Context(), r.settings, r.cfg, r.logs.logs(t))
			require.NoError(t, err)
			assert.EqualError(t, part.Start(t.Context(), &statusHost{extensions: test.extensions}), test.want)
			assert.NoError(t, part.Shutdown(t.Context()))
		})
	}
}

// TestNoSideEffects: what is only created leaves nothing behind.
func TestNoSideEffects(t *testing.T) {
	factory := NewFactory()
	r := newRig(t, withStorage)
	_, err := factory.CreateMetrics(t.Context(), r.settings, r.cfg, r.metrics.metrics(t))
	require.NoError(t, err)
	part, err := factory.CreateLogs(t.Context(), r.settings, r.cfg, r.logs.logs(t))
	require.NoError(t, err)
	require.NoError(t, part.Shutdown(t.Context()))
	require.NoError(t, part.Shutdown(t.Context()))
}
