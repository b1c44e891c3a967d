// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
)

// Config is the configuration of the processor.
type Config struct {
	// RefreshInterval is the time after the last emission of a gauge from which on the same value is forwarded again; 0
	// forwards changes only.
	RefreshInterval time.Duration `mapstructure:"refresh_interval"`
	// Tolerance shortens RefreshInterval, for gauges that were already filtered at their source.
	Tolerance time.Duration `mapstructure:"tolerance"`
	// Resolution is the tick within which only the last of several points of one gauge and batch goes on; 0 forwards
	// every change.
	Resolution time.Duration `mapstructure:"resolution"`
	// Histograms says what becomes of delta histograms.
	Histograms HistogramsConfig `mapstructure:"histograms"`
	// Sums says what becomes of monotonic sums.
	Sums SumsConfig `mapstructure:"sums"`
	// MaxSeries bounds the series of which state is kept.
	MaxSeries int `mapstructure:"max_series"`
	// SeriesTTL is how long the series of a resource are kept after the resource was last seen.
	SeriesTTL time.Duration `mapstructure:"series_ttl"`
	// Include selects the metrics to work on; all others pass untouched.
	Include IncludeConfig `mapstructure:"include"`
}

// HistogramsConfig says what becomes of delta histograms, explicit and exponential ones.
type HistogramsConfig struct {
	Temporality Temporality `mapstructure:"temporality"`
	// MaxSize is the largest number of buckets of each sign of an exponential histogram.
	MaxSize int `mapstructure:"max_size"`
}

// SumsConfig says what becomes of monotonic sums.
type SumsConfig struct {
	Temporality Temporality `mapstructure:"temporality"`
}

// IncludeConfig selects metrics.
type IncludeConfig struct {
	// Metrics are globs of metric names: * is any text, ? any one character. None selects every metric.
	Metrics []string `mapstructure:"metrics"`
}

// Temporality is what delta points become.
type Temporality string

const (
	// TemporalityCumulative gives the total since the series began.
	TemporalityCumulative Temporality = "cumulative"
	// TemporalityDelta gives the total of the batch.
	TemporalityDelta Temporality = "delta"
	// TemporalityPassthrough leaves points as they are.
	TemporalityPassthrough Temporality = "passthrough"
)

const (
	minMaxSize = 2
	maxMaxSize = 16384
)

var _ component.Config = (*Config)(nil)

func createDefaultConfig() component.Config {
	return &Config{
		RefreshInterval: time.Second,
		Histograms:      HistogramsConfig{Temporality: TemporalityCumulative, MaxSize: 160},
		Sums:            SumsConfig{Temporality: TemporalityCumulative},
		MaxSeries:       1_000_000,
		SeriesTTL:       10 * time.Minute,
	}
}

// Validate reports all problems at once.
func (c *Config) Validate() error {
	var errs []error
	if c.RefreshInterval < 0 {
		errs = append(errs, fmt.Errorf("refresh_interval is %v; allowed: 0 (changes only) or more", c.RefreshInterval))
	}
	if c.Tolerance < 0 || c.Tolerance > 0 && c.Tolerance >= c.RefreshInterval {
		errs = append(errs, fmt.Errorf("tolerance is %v; allowed: 0, or less than refresh_interval (%v)", c.Tolerance, c.RefreshInterval))
	}
	if c.Resolution < 0 {
		errs = append(errs, fmt.Errorf("resolution is %v; allowed: 0 (every change) or more", c.Resolution))
	}
	if c.MaxSeries < 1 {
		errs = append(errs, fmt.Errorf("max_series is %d; allowed: 1 or more", c.MaxSeries))
	}
	if c.SeriesTTL <= 0 || c.SeriesTTL < 2*c.RefreshInterval {
		errs = append(errs, fmt.Errorf("series_ttl is %v; allowed: more than 0, and at least twice refresh_interval (%v)", c.SeriesTTL, c.RefreshInterval))
	}
	return errors.Join(errs...)
}

// Validate reports all problems at once.
func (c *HistogramsConfig) Validate() error {
	err := c.Temporality.validate()
	if c.MaxSize < minMaxSize || c.MaxSize > maxMaxSize {
		err = errors.Join(err, fmt.Errorf("max_size is %d; allowed: %d to %d", c.MaxSize, minMaxSize, maxMaxSize))
	}
	return err
}

// Validate reports all problems at once.
func (c *SumsConfig) Validate() error { return c.Temporality.validate() }

// Validate reports all problems at once.
func (c *IncludeConfig) Validate() error {
	var errs []error
	for i, glob := range c.Metrics {
		if glob == "" {
			errs = append(errs, fmt.Errorf("metrics[%d] is empty; allowed: a metric name, with * for any text and ? for any one character", i))
		}
	}
	return errors.Join(errs...)
}

func (t Temporality) validate() error {
	switch t {
	case TemporalityCumulative, TemporalityDelta, TemporalityPassthrough:
		return nil
	}
	return fmt.Errorf("temporality is %q; allowed: cumulative, delta, passthrough", string(t))
}
