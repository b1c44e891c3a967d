// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func TestLoadConfig(t *testing.T) {
	all := &Config{
		Endpoint: "ipc:///run/otelcol/events.sock", IPCPermissions: "0600",
		MaxMessageBytes: 1 << 20, MaxConnections: 16,
		MaxProducers: 9, ProducerTTL: time.Minute, MaxSeries: 1000, SeriesTTL: 2 * time.Minute,
		Batch:              BatchConfig{Timeout: time.Second, MaxEvents: 100},
		Catalog:            []CatalogConfig{{Metric: "myengine:*_seconds", Unit: "s", Description: "Time.", Bounds: []float64{0.1, 1, 10}}},
		ResourceAttributes: map[string]any{"service.name": "myengine", "rack": 7},
	}
	file, err := confmaptest.LoadConf("testdata/config.yaml")
	require.NoError(t, err)
	for name, want := range map[string]*Config{
		"metric_event":     createDefaultConfig().(*Config),
		"metric_event/all": all,
	} {
		t.Run(name, func(t *testing.T) {
			sub, err := file.Sub(name)
			require.NoError(t, err)
			config := NewFactory().CreateDefaultConfig()
			require.NoError(t, sub.Unmarshal(config))
			assert.Equal(t, want, config)
			assert.NoError(t, config.(*Config).Validate())
		})
	}
}

func TestUnknownKeyIsAnError(t *testing.T) {
	for _, key := range []string{"endpoints", "batch::max_messages", "queue_size"} {
		config := NewFactory().CreateDefaultConfig()
		err := confmap.NewFromStringMap(map[string]any{key: 1}).Unmarshal(config)
		assert.ErrorContains(t, err, key[strings.LastIndex(key, ":")+1:])
	}
}

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		change func(c *Config)
		want   string
	}{
		"no endpoint":           {func(c *Config) { c.Endpoint = "" }, `endpoint: got "", want tcp://host:port or ipc:///path`},
		"endpoint without port": {func(c *Config) { c.Endpoint = "tcp://127.0.0.1" }, `endpoint: got "tcp://127.0.0.1", want tcp://host:port or ipc:///path`},
		"endpoint without host": {func(c *Config) { c.Endpoint = "tcp://:20280" }, `endpoint: got "tcp://:20280", want a host before the port (* for every interface)`},
		"port too high":         {func(c *Config) { c.Endpoint = "tcp://127.0.0.1:65536" }, `endpoint: got "tcp://127.0.0.1:65536", want a port in 0 to 65535`},
		"port negative":         {func(c *Config) { c.Endpoint = "tcp://127.0.0.1:-1" }, `endpoint: got "tcp://127.0.0.1:-1", want a port in 0 to 65535`},
		"unknown scheme":        {func(c *Config) { c.Endpoint = "udp://127.0.0.1:1" }, `endpoint: got "udp://127.0.0.1:1", want tcp://host:port or ipc:///path`},
		"ipc without path":      {func(c *Config) { c.Endpoint = "ipc://" }, `endpoint: got "ipc://", want an absolute path after ipc://, such as ipc:///run/otelcol/events.sock`},
		"ipc relative":          {func(c *Config) { c.Endpoint = "ipc://events.sock" }, `endpoint: got "ipc://events.sock", want an absolute path after ipc://, such as ipc:///run/otelcol/events.sock`},
		"ipc abstract":          {func(c *Config) { c.Endpoint = "ipc://@events" }, `endpoint: got "ipc://@events", want an absolute path after ipc://, such as ipc:///run/otelcol/events.sock`},
		"ipc root":              {func(c *Config) { c.Endpoint = "ipc:///" }, `endpoint: got "ipc:///", want an absolute path after ipc://, such as ipc:///run/otelcol/events.sock`},
		"ipc too long":          {func(c *Config) { c.Endpoint = "ipc:///" + strings.Repeat("p", 107) }, `want an ipc path of at most 107 bytes (108)`},
		"permissions empty":     {func(c *Config) { c.IPCPermissions = "" }, `ipc_permissions: got "", want octal permissions in quotes, "000" to "0777"`},
		"permissions decimal":   {func(c *Config) { c.IPCPermissions = "0680" }, `ipc_permissions: got "0680", want octal permissions in quotes, "000" to "0777"`},
		"permissions too much":  {func(c *Config) { c.IPCPermissions = "1777" }, `ipc_permissions: got "1777", want octal permissions in quotes, "000" to "0777"`},
		"permissions symbolic":  {func(c *Config) { c.IPCPermissions = "rw-rw----" }, `ipc_permissions: got "rw-rw----", want octal permissions in quotes, "000" to "0777"`},
		"message bytes 0":       {func(c *Config) { c.MaxMessageBytes = 0 }, `max_message_bytes: got 0, want 1 to 1073741824`},
		"message bytes huge":    {func(c *Config) { c.MaxMessageBytes = math.MaxInt64 }, `max_message_bytes: got 9223372036854775807, want 1 to 1073741824`},
		"connections 0":         {func(c *Config) { c.MaxConnections = 0 }, `max_connections: got 0, want 1 to 2147483647`},
		"producers negative":    {func(c *Config) { c.MaxProducers = -1 }, `max_producers: got -1, want 1 to 2147483647`},
		"producer ttl 0":        {func(c *Config) { c.ProducerTTL = 0 }, `producer_ttl: got 0s, want more than 0s`},
		"series 0":              {func(c *Config) { c.MaxSeries = 0 }, `max_series: got 0, want 1 to 2147483647`},
		"series ttl negative":   {func(c *Config) { c.SeriesTTL = -time.Second }, `series_ttl: got -1s, want more than 0s`},
		"batch timeout 0":       {func(c *Config) { c.Batch.Timeout = 0 }, `batch::timeout: got 0s, want more than 0s`},
		"batch events 0":        {func(c *Config) { c.Batch.MaxEvents = 0 }, `batch::max_events: got 0, want 1 to 65536`},
		"batch events too many": {func(c *Config) { c.Batch.MaxEvents = 65537 }, `batch::max_events: got 65537, want 1 to 65536`},
		"catalog without metric": {
			func(c *Config) { c.Catalog = []CatalogConfig{{Metric: "a", Unit: "s"}, {Unit: "s"}} },
			`catalog::1::metric: got "", want a metric name, with * for any text and ? for any one character`,
		},
		"catalog that says nothing": {
			func(c *Config) { c.Catalog = []CatalogConfig{{Metric: "a"}} },
			`catalog::0::metric: got "a" alone, want unit, description or bounds beside it`,
		},
		"catalog with no bound": {
			func(c *Config) { c.Catalog = []CatalogConfig{{Metric: "a", Bounds: []float64{}}} },
			`catalog::0::bounds: got [], want at least one bound`,
		},
		"catalog bounds fall": {
			func(c *Config) { c.Catalog = []CatalogConfig{{Metric: "a", Bounds: []float64{1, 3, 2}}} },
			`catalog::0::bounds::2: got 2, want finite bounds, strictly increasing`,
		},
		"catalog bounds equal": {
			func(c *Config) { c.Catalog = []CatalogConfig{{Metric: "a", Bounds: []float64{1, 1}}} },
			`catalog::0::bounds::1: got 1, want finite bounds, strictly increasing`,
		},
		"catalog bound infinite": {
			func(c *Config) { c.Catalog = []CatalogConfig{{Metric: "a", Bounds: []float64{1, math.Inf(1)}}} },
			`catalog::0::bounds::1: got +Inf, want finite bounds, strictly increasing`,
		},
		"catalog bound NaN": {
			func(c *Config) { c.Catalog = []CatalogConfig{{Metric: "a", Bounds: []float64{math.NaN()}}} },
			`catalog::0::bounds::0: got NaN, want finite bounds, strictly increasing`,
		},
		"attribute of a list": {
			func(c *Config) { c.ResourceAttributes = map[string]any{"a": []any{1}} },
			`resource_attributes::a: got [1], want a string, number or boolean`,
		},
		"the identity of producers": {
			func(c *Config) { c.ResourceAttributes = map[string]any{"service.instance.id": "x"} },
			`resource_attributes::service.instance.id: got x, want another key: host:pid:start_ns tells the producers apart`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			config := createDefaultConfig().(*Config)
			test.change(config)
			err := config.Validate()
			require.Error(t, err)
			assert.Contains(t, err.Error(), test.want)
			assert.NotContains(t, err.Error(), "\n", "one problem, one line")
		})
	}
}

func TestValidateReportsAllProblemsAtOnce(t *testing.T) {
	config := &Config{Catalog: []CatalogConfig{{}}, ResourceAttributes: map[string]any{"x": nil}}
	err := config.Validate()
	require.Error(t, err)
	for _, key := range []string{
		"endpoint", "ipc_permissions", "max_message_bytes", "max_connections", "max_producers", "producer_ttl", "max_series",
		"series_ttl", "batch::timeout", "batch::max_events", "catalog::0::metric", "resource_attributes::x",
	} {
		assert.Contains(t, "\n"+err.Error(), "\n"+key+": ")
	}
}

func TestParseEndpoint(t *testing.T) {
	for text, want := range map[string]struct {
		address address
		shown   string
	}{
		"tcp://127.0.0.1:20280":    {address{"tcp", "127.0.0.1:20280"}, "tcp://127.0.0.1:20280"},
		"127.0.0.1:20280":          {address{"tcp", "127.0.0.1:20280"}, "tcp://127.0.0.1:20280"},
		"tcp://*:20280":            {address{"tcp", ":20280"}, "tcp://*:20280"},
		"tcp://0.0.0.0:0":          {address{"tcp", "0.0.0.0:0"}, "tcp://0.0.0.0:0"},
		"tcp://[::1]:20280":        {address{"tcp", "[::1]:20280"}, "tcp://[::1]:20280"},
		"tcp://gpu-7:20280":        {address{"tcp", "gpu-7:20280"}, "tcp://gpu-7:20280"},
		"ipc:///run/events.sock":   {address{"unix", "/run/events.sock"}, "ipc:///run/events.sock"},
		"ipc:///run/with space:20": {address{"unix", "/run/with space:20"}, "ipc:///run/with space:20"},
	} {
		got, err := parseEndpoint(text)
		require.NoError(t, err, text)
		assert.Equal(t, want.address, got)
		assert.Equal(t, want.shown, got.String())
	}
}
