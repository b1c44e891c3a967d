// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
)

// Validate reports all problems at once, each with its key path, the value and
// what is allowed.
func (c *Config) Validate() error {
	var problems problemList
	if len(c.Include) == 0 {
		problems.add("include", "[]", "at least one pattern of files, such as /var/log/dynamo/fpm.*.jsonl.gz")
	}
	for i, pattern := range c.Include {
		problems.pattern(fmt.Sprintf("include::%d", i), pattern)
	}
	problems.oneOf("start_at", c.StartAt, startBeginning, startEnd)
	problems.oneOf("mode", c.Mode, modeTail, modeOnce)
	if c.PollInterval <= 0 {
		problems.add("poll_interval", c.PollInterval.String(), "more than 0s")
	}
	if c.ExitWhenDone && c.Mode != modeOnce {
		problems.add("exit_when_done", fmt.Sprintf("true with mode %q", c.Mode), "mode once beside it: mode tail is never done")
	}
	if c.Mode == modeOnce && c.StartAt == startEnd {
		problems.add("start_at", "end with mode once", "beginning: nothing would be read")
	}
	problems.histogram(&c.Histogram)
	return errors.Join(problems...)
}

// problemList collects what is wrong with a configuration.
type problemList []error

func (p *problemList) add(key, got, want string) {
	*p = append(*p, fmt.Errorf("%s: got %s, want %s", key, got, want))
}

func (p *problemList) oneOf(key, value, first, second string) {
	if value != first && value != second {
		p.add(key, fmt.Sprintf("%q", value), first+" or "+second)
	}
}

func (p *problemList) pattern(key, pattern string) {
	got := fmt.Sprintf("%q", pattern)
	switch _, err := filepath.Match(pattern, ""); {
	case strings.TrimSpace(pattern) == "":
		p.add(key, got, "a pattern of files")
	case strings.ContainsRune(pattern, 0):
		p.add(key, got, "a pattern without a NUL character")
	case err != nil:
		p.add(key, got, `a pattern of *, ?, [a-z] and \ before a character that is meant as it stands`)
	case strings.Contains(pattern, "**"):
		p.add(key, got, "no **: a * stands for any text within one element of a path; give one pattern a depth")
	case strings.HasSuffix(pattern, string(filepath.Separator)):
		p.add(key, got, "a pattern of files, not of directories")
	}
}

func (p *problemList) histogram(c *HistogramConfig) {
	if c.Bounds != nil && c.Exponential.HasValue() {
		p.add("histogram", "bounds and exponential", "exactly one of the two")
	}
	if c.Bounds != nil && len(c.Bounds) == 0 {
		p.add("histogram::bounds", "[]", "at least one bound")
	}
	for i, bound := range c.Bounds {
		if math.IsNaN(bound) || math.IsInf(bound, 0) || i > 0 && bound <= c.Bounds[i-1] {
			p.add(fmt.Sprintf("histogram::bounds::%d", i), fmt.Sprint(bound), "finite bounds in seconds, strictly increasing")
		}
	}
	if exponential := c.Exponential.Get(); exponential != nil && (exponential.MaxSize < 2 || exponential.MaxSize > maxExponentialSize) {
		p.add("histogram::exponential::max_size", strconv.Itoa(int(exponential.MaxSize)), fmt.Sprintf("2 to %d", maxExponentialSize))
	}
}

// maxExponentialSize is the largest bucket count that the histogram library
// takes.
const maxExponentialSize = 16384
