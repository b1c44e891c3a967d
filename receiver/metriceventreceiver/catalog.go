// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"fmt"
	"strconv"
	"strings"
)

// description is what the events of a metric do not say. It never changes while
// the process lives.
type description struct {
	unit, text string
	// bounds are the upper bounds of a histogram's buckets; nil means exponential
	// buckets.
	bounds []float64
}

// catalog describes metrics by name.
type catalog struct {
	config  []CatalogConfig
	builtIn map[string]*catalogEntry
}

func newCatalog(config []CatalogConfig) *catalog {
	c := &catalog{config: config, builtIn: make(map[string]*catalogEntry, len(tokenSpeed))}
	for i := range tokenSpeed {
		c.builtIn[tokenSpeed[i].metric] = &tokenSpeed[i]
	}
	return c
}

// describe takes the first entry of the configuration that matches, and what
// that leaves out from the built-in catalogue.
func (c *catalog) describe(metric string) description {
	var d description
	if entry := c.builtIn[metric]; entry != nil {
		d = description{entry.unit, entry.description, entry.bounds}
	}
	for i := range c.config {
		entry := &c.config[i]
		if !matches(entry.Metric, metric) {
			continue
		}
		if entry.Unit != "" {
			d.unit = entry.Unit
		}
		if entry.Description != "" {
			d.text = entry.Description
		}
		if entry.Bounds != nil {
			d.bounds = entry.Bounds
		}
		break
	}
	return d
}

// matches reports whether a glob fits the whole name: * is any text, ? any one
// byte.
func matches(glob, name string) bool {
	literal, rest, more := strings.Cut(glob, "*")
	if !more {
		return len(name) == len(literal) && begins(name, literal)
	}
	if !begins(name, literal) {
		return false
	}
	name = name[len(literal):]
	// The first place where the text up to the next * fits is as good as any
	// later one; the text behind the last * stands at the end.
	for more {
		literal, rest, more = strings.Cut(rest, "*")
		if !more {
			return len(name) >= len(literal) && begins(name[len(name)-len(literal):], literal)
		}
		for !begins(name, literal) {
			if name == "" {
				return false
			}
			name = name[1:]
		}
		name = name[len(literal):]
	}
	return true
}

// begins reports whether a name begins with a text in which ? is any one byte.
func begins(name, text string) bool {
	if len(name) < len(text) {
		return false
	}
	for i := range len(text) {
		if text[i] != '?' && text[i] != name[i] {
			return false
		}
	}
	return true
}

// catalogTable is the built-in catalogue in Markdown, for the documentation.
func catalogTable() string {
	var b strings.Builder
	b.WriteString("| metric | operation | unit | bounds | description |\n|---|---|---|---|---|\n")
	for i := range tokenSpeed {
		entry := &tokenSpeed[i]
		unit := ""
		if entry.unit != "" {
			unit = "`" + entry.unit + "`"
		}
		bounds := make([]string, len(entry.bounds))
		for i, bound := range entry.bounds {
			bounds[i] = strconv.FormatFloat(bound, 'g', 4, 64)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n",
			entry.metric, entry.operation, unit, strings.Join(bounds, ", "), entry.description)
	}
	return b.String()
}
