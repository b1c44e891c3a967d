// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-fpm/otelcol-fpm/internal/histogramconfig"
)

// Config of the receiver. Endpoint with its neighbours is the short form for
// one endpoint; Endpoints the long one. Both may be given.
type Config struct {
	Endpoint    string `mapstructure:"endpoint"`
	DPSize      int    `mapstructure:"dp_size"`
	DPStartRank int    `mapstructure:"dp_start_rank"`

	Endpoints []EndpointConfig `mapstructure:"endpoints"`

	// Namespace, Component and ResourceAttributes are those of the short form,
	// and the defaults of Endpoints.
	Namespace          string         `mapstructure:"namespace"`
	Component          string         `mapstructure:"component"`
	ResourceAttributes map[string]any `mapstructure:"resource_attributes"`

	Batch             BatchConfig            `mapstructure:"batch"`
	GaugeInterval     time.Duration          `mapstructure:"gauge_interval"`
	StaleAfter        time.Duration          `mapstructure:"stale_after"`
	RankTTL           time.Duration          `mapstructure:"rank_ttl"`
	MaxRanks          int                    `mapstructure:"max_ranks"`
	QueueSize         int                    `mapstructure:"queue_size"`
	QueueBytes        int64                  `mapstructure:"queue_bytes"`
	MaxMessageBytes   int64                  `mapstructure:"max_message_bytes"`
	AcceptUnversioned bool                   `mapstructure:"accept_unversioned"`
	Dial              DialConfig             `mapstructure:"dial"`
	Histogram         histogramconfig.Config `mapstructure:"histogram"`
}

// EndpointConfig is one engine: a block of ports or ipc paths, one a rank.
type EndpointConfig struct {
	Endpoint           string         `mapstructure:"endpoint"`
	DPSize             int            `mapstructure:"dp_size"`
	DPStartRank        int            `mapstructure:"dp_start_rank"`
	Namespace          string         `mapstructure:"namespace"`
	Component          string         `mapstructure:"component"`
	ResourceAttributes map[string]any `mapstructure:"resource_attributes"`
}

// BatchConfig bounds a batch: it is delivered when it is Timeout old or has
// MaxMessages messages.
type BatchConfig struct {
	Timeout     time.Duration `mapstructure:"timeout"`
	MaxMessages int           `mapstructure:"max_messages"`
}

// DialConfig of connection and reconnection. Timeout covers connect and
// handshake together.
type DialConfig struct {
	Timeout        time.Duration `mapstructure:"timeout"`
	InitialBackoff time.Duration `mapstructure:"initial_backoff"`
	MaxBackoff     time.Duration `mapstructure:"max_backoff"`
}

var (
	_ component.Config    = (*Config)(nil)
	_ confmap.Unmarshaler = (*EndpointConfig)(nil)
)

func createDefaultConfig() component.Config {
	return &Config{
		DPSize:            1,
		Namespace:         "default",
		Component:         "backend",
		Batch:             BatchConfig{Timeout: 200 * time.Millisecond, MaxMessages: 1024},
		StaleAfter:        5 * time.Second,
		RankTTL:           10 * time.Minute,
		MaxRanks:          4096,
		QueueSize:         65536,
		QueueBytes:        64 << 20,
		MaxMessageBytes:   1 << 20,
		AcceptUnversioned: true,
		Dial:              DialConfig{Timeout: 3 * time.Second, InitialBackoff: 100 * time.Millisecond, MaxBackoff: 5 * time.Second},
		Histogram:         histogramconfig.Default(),
	}
}

// Unmarshal gives each element of endpoints its default dp_size, so that an
// explicit 0 can be told from an absent key.
func (c *EndpointConfig) Unmarshal(conf *confmap.Conf) error {
	c.DPSize = 1
	return conf.Unmarshal(c)
}

// engines lists the engines of both forms, with the defaults of the receiver
// filled in. name is the key path of an engine's settings, for messages.
func (c *Config) engines() []namedEngine {
	var engines []namedEngine
	if c.Endpoint != "" {
		engines = append(engines, namedEngine{config: EndpointConfig{
			Endpoint: c.Endpoint, DPSize: c.DPSize, DPStartRank: c.DPStartRank,
			Namespace: c.Namespace, Component: c.Component, ResourceAttributes: c.ResourceAttributes,
		}})
	}
	for i, engine := range c.Endpoints {
		if engine.Namespace == "" {
			engine.Namespace = c.Namespace
		}
		if engine.Component == "" {
			engine.Component = c.Component
		}
		attributes := make(map[string]any, len(c.ResourceAttributes)+len(engine.ResourceAttributes))
		for _, from := range []map[string]any{c.ResourceAttributes, engine.ResourceAttributes} {
			for key, value := range from {
				attributes[key] = value
			}
		}
		engine.ResourceAttributes = attributes
		engines = append(engines, namedEngine{name: endpointPath(i), config: engine})
	}
	return engines
}

// namedEngine is an engine's settings and the key path they came from; the
// path is empty for the short form.
type namedEngine struct {
	name   string
	config EndpointConfig
}

// batchMessages is how many messages a batch of the signal has at most. With gauge_interval the points of metrics are one
// set a rank, whatever the batches: larger ones look through the ranks less often, which a thousand ranks need.
func (c *Config) batchMessages(s signal) int {
	if s == signalMetrics && c.GaugeInterval > 0 {
		return c.QueueSize
	}
	return c.Batch.MaxMessages
}
