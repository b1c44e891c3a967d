// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

// globs is a list of patterns for metric names: * is any text, ? any one byte. The empty list matches every name.
type globs []string

func (g globs) match(name string) bool {
	if len(g) == 0 {
		return true
	}
	for _, pattern := range g {
		if match(pattern, name) {
			return true
		}
	}
	return false
}

// match goes back to the latest * when the text after it does not fit, which is enough because an earlier * never fits
// where the latest one does not.
func match(pattern, name string) bool {
	p, n := 0, 0
	star, resume := -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, resume = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			resume++
			p, n = star+1, resume
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
