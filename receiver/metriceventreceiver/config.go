// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"time"

	"go.opentelemetry.io/collector/component"
)

// Config of the receiver.
type Config struct {
	// Endpoint is bound: tcp://host:port (* is every interface) or ipc:///path.
	Endpoint string `mapstructure:"endpoint"`
	// IPCPermissions are the octal permissions of an ipc socket's file.
	IPCPermissions string `mapstructure:"ipc_permissions"`

	MaxMessageBytes int64 `mapstructure:"max_message_bytes"`
	MaxConnections  int   `mapstructure:"max_connections"`

	MaxProducers int           `mapstructure:"max_producers"`
	ProducerTTL  time.Duration `mapstructure:"producer_ttl"`
	MaxSeries    int           `mapstructure:"max_series"`
	SeriesTTL    time.Duration `mapstructure:"series_ttl"`

	Batch BatchConfig `mapstructure:"batch"`

	// Catalog describes metrics on top of the built-in catalogue.
	Catalog []CatalogConfig `mapstructure:"catalog"`

	// ResourceAttributes are on the resource of every producer.
	ResourceAttributes map[string]any `mapstructure:"resource_attributes"`
}

// BatchConfig bounds a batch: it is delivered when it is Timeout old or has
// MaxEvents events.
type BatchConfig struct {
	Timeout   time.Duration `mapstructure:"timeout"`
	MaxEvents int           `mapstructure:"max_events"`
}

// CatalogConfig describes the metrics whose name matches the glob Metric. What
// it leaves out is taken from the built-in catalogue.
type CatalogConfig struct {
	Metric      string    `mapstructure:"metric"`
	Unit        string    `mapstructure:"unit"`
	Description string    `mapstructure:"description"`
	Bounds      []float64 `mapstructure:"bounds"`
}

var _ component.Config = (*Config)(nil)

func createDefaultConfig() component.Config {
	return &Config{
		Endpoint:        "tcp://127.0.0.1:20280",
		IPCPermissions:  "0660",
		MaxMessageBytes: 8 << 20,
		MaxConnections:  4096,
		MaxProducers:    1024,
		ProducerTTL:     10 * time.Minute,
		MaxSeries:       1_000_000,
		SeriesTTL:       10 * time.Minute,
		Batch:           BatchConfig{Timeout: 200 * time.Millisecond, MaxEvents: 8192},
	}
}
