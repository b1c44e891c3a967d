// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"fmt"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// parseMetrics reads the text form.
func parseMetrics(text string) (md pmetric.Metrics, err error) {
	md = pmetric.NewMetrics()
	var rm pmetric.ResourceMetrics
	var sm pmetric.ScopeMetrics
	var m pmetric.Metric
	var haveRM, haveSM bool
	for i, line := range strings.Split(text, "\n") {
		if comment := strings.Index(line, "#"); comment >= 0 {
			line = line[:comment]
		}
		words, err := splitWords(line)
		if err != nil {
			return md, fmt.Errorf("line %d: %w", i+1, err)
		}
		if len(words) == 0 {
			continue
		}
		indented := line[0] == ' ' || line[0] == '\t'
		switch {
		case indented:
			err = parsePoint(m, words)
		case words[0] == "resource":
			rm, haveRM, haveSM = md.ResourceMetrics().AppendEmpty(), true, false
			err = parseAttributes(strings.Join(words[1:], " "), rm.Resource().Attributes())
		default:
			if !haveRM {
				rm, haveRM = md.ResourceMetrics().AppendEmpty(), true
			}
			if words[0] == "scope" {
				sm, haveSM = rm.ScopeMetrics().AppendEmpty(), true
				sm.Scope().SetName(words[1])
				if len(words) > 2 {
					sm.Scope().SetVersion(words[2])
				}
				if len(words) > 3 {
					err = parseAttributes(words[3], sm.Scope().Attributes())
				}
				break
			}
			if !haveSM {
				sm, haveSM = rm.ScopeMetrics().AppendEmpty(), true
			}
			m = sm.Metrics().AppendEmpty()
			err = parseMetric(m, words)
		}
		if err != nil {
			return md, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return md, nil
}

func parseMetric(m pmetric.Metric, words []string) error {
	if len(words) < 2 {
		return fmt.Errorf("want: kind name [unit], have %q", words)
	}
	m.SetName(words[1])
	if len(words) > 2 {
		m.SetUnit(words[2])
	}
	for _, k := range kinds {
		if k.name == words[0] {
			k.make(m)
			return nil
		}
	}
	return fmt.Errorf("%q is no kind of metric", words[0])
}

// splitWords splits at spaces outside of quotes, braces and brackets.
func splitWords(line string) (words []string, err error) {
	word, depth, quoted := "", 0, false
	for _, c := range strings.TrimSpace(line) + " " {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ' ' && depth == 0:
			if word != "" {
				words = append(words, word)
			}
			word = ""
			continue
		}
		word += string(c)
	}
	if quoted || depth != 0 {
		return nil, fmt.Errorf("unbalanced quotes, braces or brackets in %q", line)
	}
	return words, nil
}

func parseAttributes(text string, to pcommon.Map) error {
	words, err := splitWords(strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}"))
	if err != nil {
		return err
	}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			return fmt.Errorf("%q is no name=value", word)
		}
		if err := parseValue(value, to.PutEmpty(name)); err != nil {
			return err
		}
	}
	return nil
}

func parseValue(text string, to pcommon.Value) error {
	switch {
	case strings.HasPrefix(text, "["):
		words, err := splitWords(text[1 : len(text)-1])
		if err != nil {
			return err
		}
		slice := to.SetEmptySlice()
		for _, word := range words {
			if err := parseValue(word, slice.AppendEmpty()); err != nil {
				return err
			}
		}
	case strings.HasPrefix(text, "{"):
		return parseAttributes(text, to.SetEmptyMap())
	case strings.HasPrefix(text, `"`):
		s, err := strconv.Unquote(text)
		if err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
		to.SetStr(s)
	case text == "true" || text == "false":
		to.SetBool(text == "true")
	default:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			to.SetInt(n)
		} else if f, err := strconv.ParseFloat(text, 64); err == nil {
			to.SetDouble(f)
		} else {
			to.SetStr(text)
		}
	}
	return nil
}
