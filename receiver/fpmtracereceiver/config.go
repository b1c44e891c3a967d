// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-fpm/otelcol-fpm/internal/histogramconfig"
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
	FollowSymlinks bool                   `mapstructure:"follow_symlinks"`
	Histogram      histogramconfig.Config `mapstructure:"histogram"`
}

const (
	startBeginning = "beginning"
	startEnd       = "end"

	modeTail = "tail"
	modeOnce = "once"
)

var _ component.Config = (*Config)(nil)

func createDefaultConfig() component.Config {
	return &Config{
		StartAt:      startBeginning,
		PollInterval: time.Second,
		Mode:         modeTail,
		Histogram:    histogramconfig.Default(),
	}
}
