// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"
	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/load"
)

// Config of the receiver.
type Config struct {
	// Include are the patterns of artifact files.
	Include []string `mapstructure:"include"`
	// PollInterval is how often they are looked for.
	PollInterval time.Duration `mapstructure:"poll_interval"`
	// Settle is how long a complete run waits for its sidecar.
	Settle time.Duration `mapstructure:"settle"`
	// IncompleteAfter is how long a run may lack ranks.
	IncompleteAfter time.Duration `mapstructure:"incomplete_after"`
	// MaxFileBytes is the largest file that is read.
	MaxFileBytes int64 `mapstructure:"max_file_bytes"`
	// Storage is the extension that remembers delivered runs.
	Storage *component.ID `mapstructure:"storage"`

	// Namespace, Component and ResourceAttributes name the worker.
	Namespace          string         `mapstructure:"namespace"`
	Component          string         `mapstructure:"component"`
	ResourceAttributes map[string]any `mapstructure:"resource_attributes"`
}

var _ component.Config = (*Config)(nil)

func createDefaultConfig() component.Config {
	return &Config{
		Include:         []string{"/tmp/benchmark_results*.json"},
		PollInterval:    5 * time.Second,
		Settle:          45 * time.Second,
		IncompleteAfter: 20 * time.Minute,
		MaxFileBytes:    load.DefaultMaxBytes,
		Namespace:       "default",
		Component:       "backend",
	}
}

// Validate reports all problems at once, each with its key path, the value and
// what is allowed.
func (c *Config) Validate() error {
	var problems problemList
	if len(c.Include) == 0 {
		problems.add("include", "none", "at least one pattern, such as /tmp/benchmark_results*.json")
	}
	for i, pattern := range c.Include {
		key := fmt.Sprintf("include::%d", i)
		if pattern == "" {
			problems.add(key, `""`, "a pattern")
		} else if _, err := filepath.Match(pattern, ""); err != nil {
			problems.add(key, fmt.Sprintf("%q", pattern), "a pattern of *, ? and [ranges]; ** is not known")
		}
	}
	problems.duration("poll_interval", c.PollInterval, time.Millisecond)
	problems.duration("settle", c.Settle, 0)
	problems.duration("incomplete_after", c.IncompleteAfter, time.Millisecond)
	if c.IncompleteAfter >= time.Millisecond && c.IncompleteAfter < c.Settle {
		problems.add("incomplete_after", c.IncompleteAfter.String(), fmt.Sprintf("at least settle (%s)", c.Settle))
	}
	if c.MaxFileBytes < 1 || c.MaxFileBytes > document.MaxBytes {
		problems.add("max_file_bytes", strconv.FormatInt(c.MaxFileBytes, 10), fmt.Sprintf("1 to %d", document.MaxBytes))
	}
	problems.name("namespace", c.Namespace)
	problems.name("component", c.Component)
	for _, name := range slices.Sorted(maps.Keys(c.ResourceAttributes)) {
		switch value := c.ResourceAttributes[name].(type) {
		case string, bool, int, int64, float64:
		default:
			problems.add("resource_attributes::"+name, fmt.Sprintf("%v", value), "a string, number or boolean")
		}
	}
	return errors.Join(problems...)
}

// problemList collects what is wrong with a configuration.
type problemList []error

func (p *problemList) add(key, got, want string) {
	*p = append(*p, fmt.Errorf("%s: got %s, want %s", key, got, want))
}

// duration checks a time to wait, of least or more; 0 when least is 0. A number
// without a unit is nanoseconds to the decoder, which nobody means.
func (p *problemList) duration(key string, value, least time.Duration) {
	switch {
	case value >= time.Millisecond, value == 0 && least == 0:
	case least == 0:
		p.add(key, value.String(), "0s, or 1ms or more with its unit")
	default:
		p.add(key, value.String(), "1ms or more, with its unit")
	}
}

func (p *problemList) name(key, value string) {
	if value == "" {
		p.add(key, `""`, "a name")
	}
}
