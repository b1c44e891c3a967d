// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package histogramconfig is the configuration of the histograms of durations,
// under the key histogram. It is the same for all components that make them, so
// that live data and traces add up.
package histogramconfig

import (
	"fmt"
	"math"
	"strconv"

	"go.opentelemetry.io/collector/config/configoptional"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// Config chooses the buckets of durations: explicit Bounds in seconds, or
// Exponential. Neither means the default bounds.
type Config struct {
	Bounds      []float64                                  `mapstructure:"bounds"`
	Exponential configoptional.Optional[ExponentialConfig] `mapstructure:"exponential"`
}

// ExponentialConfig bounds an exponential histogram to MaxSize buckets.
type ExponentialConfig struct {
	MaxSize int32 `mapstructure:"max_size"`
}

// maxExponentialSize is the largest bucket count that the histogram library
// takes.
const maxExponentialSize = 16384

// defaultBounds, in seconds, are those of the engines' own inter-token latency
// histograms.
var defaultBounds = []float64{
	0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.05,
	0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2,
}

// Default is neither, with the max_size of exponential: {}.
func Default() Config {
	return Config{Exponential: configoptional.Default(ExponentialConfig{MaxSize: 160})}
}

// Check calls add for each problem, with its key path, the value and what is
// allowed. It is not Validate, which the Collector would call a second time.
func (c *Config) Check(add func(key, got, want string)) {
	if c.Bounds != nil && c.Exponential.HasValue() {
		add("histogram", "bounds and exponential", "exactly one of the two")
	}
	if c.Bounds != nil && len(c.Bounds) == 0 {
		add("histogram::bounds", "[]", "at least one bound")
	}
	for i, bound := range c.Bounds {
		if math.IsNaN(bound) || math.IsInf(bound, 0) || i > 0 && bound <= c.Bounds[i-1] {
			add(fmt.Sprintf("histogram::bounds::%d", i), fmt.Sprint(bound), "finite bounds in seconds, strictly increasing")
		}
	}
	if exponential := c.Exponential.Get(); exponential != nil && (exponential.MaxSize < 2 || exponential.MaxSize > maxExponentialSize) {
		add("histogram::exponential::max_size", strconv.Itoa(int(exponential.MaxSize)), fmt.Sprintf("2 to %d", maxExponentialSize))
	}
}

// Form is the form that was chosen. The configuration has passed Check.
func (c *Config) Form() *fpm.HistogramForm {
	switch {
	case c.Exponential.HasValue():
		return fpm.ExponentialForm(c.Exponential.Get().MaxSize)
	case c.Bounds != nil:
		return fpm.ExplicitForm(c.Bounds)
	default:
		return fpm.ExplicitForm(defaultBounds)
	}
}
