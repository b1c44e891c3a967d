// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"errors"
	"fmt"
	"path/filepath"
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
	c.Histogram.Check(problems.add)
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
