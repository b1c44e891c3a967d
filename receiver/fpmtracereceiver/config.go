// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
)

// Config of the receiver.
type Config struct {
	// Include are patterns of files, as filepath.Match has them.
	Include []string `mapstructure:"include"`
	// StartAt is where files are begun that exist at the first poll.
	StartAt string `mapstructure:"start_at"`
	// PollInterval is how often is looked for new files and new bytes.
	PollInterval time.Duration `mapstructure:"poll_interval"`
	Mode         string        `mapstructure:"mode"`
	// ExitWhenDone ends the process when all is read, in mode once.
	ExitWhenDone bool `mapstructure:"exit_when_done"`
	// Storage is the extension that keeps positions over a restart.
	Storage *component.ID `mapstructure:"storage"`
	// FollowSymlinks allows links that lead out of the directory that a pattern
	// begins with.
	FollowSymlinks bool            `mapstructure:"follow_symlinks"`
	Histogram      HistogramConfig `mapstructure:"histogram"`
}

const (
	startBeginning = "beginning"
	startEnd       = "end"

	modeTail = "tail"
	modeOnce = "once"
)

// HistogramConfig chooses the buckets of durations: explicit Bounds in seconds,
// or Exponential. Neither means the default bounds. It is that of receiver fpm.
type HistogramConfig struct {
	Bounds      []float64                                  `mapstructure:"bounds"`
	Exponential configoptional.Optional[ExponentialConfig] `mapstructure:"exponential"`
}

// ExponentialConfig bounds an exponential histogram to MaxSize buckets.
type ExponentialConfig struct {
	MaxSize int32 `mapstructure:"max_size"`
}

// defaultBounds, in seconds, are those of receiver fpm, so that live data and
// traces add up.
var defaultBounds = []float64{
	0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.05,
	0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2,
}

var _ component.Config = (*Config)(nil)

func createDefaultConfig() component.Config {
	return &Config{
		StartAt:      startBeginning,
		PollInterval: time.Second,
		Mode:         modeTail,
		Histogram:    HistogramConfig{Exponential: configoptional.Default(ExponentialConfig{MaxSize: 160})},
	}
}
