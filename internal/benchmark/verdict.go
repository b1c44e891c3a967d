// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"
)

// Verdict of a rule on a run.
type Verdict int

// The verdicts. NotChecked: the files have nothing that the rule is about.
const (
	NotChecked Verdict = iota
	Holds
	Violated
)

var verdictNames = [...]string{"not_checked", "holds", "violated"}

func (v Verdict) String() string { return verdictNames[v] }

// maxViolations is how many violations of one rule a Run names.
const maxViolations = 16

// Outcome is what became of one rule.
type Outcome struct {
	Rule    *Rule
	Verdict Verdict
	// Count is how often the rule is violated; Run.Violations has the first 16.
	Count int
}

// Violation is one place where a rule does not hold.
type Violation struct {
	Rule *Rule
	// File is where Actual stands; empty when it stands in no file.
	File string
	// Ranks are the data-parallel ranks concerned; none when it is the run.
	Ranks []int
	// BenchmarkID is the point's; 0 when it is the run.
	BenchmarkID int64
	// Field is the key of Actual, dotted, Expected and Actual the two values as
	// text; each is cut when it is long.
	Field            string
	Expected, Actual string
}

func (v *Violation) String() string {
	text := v.Rule.Name + ": "
	if v.File != "" {
		text += v.File + ": "
	}
	if v.BenchmarkID != 0 {
		text += fmt.Sprintf("benchmark_id %d: ", v.BenchmarkID)
	}
	if len(v.Ranks) > 0 {
		text += fmt.Sprintf("rank %s: ", joinRanks(v.Ranks))
	}
	return fmt.Sprintf("%s%s: expected %s, got %s", text, v.Field, v.Expected, v.Actual)
}

func joinRanks(ranks []int) string {
	texts := make([]string, len(ranks))
	for i, rank := range ranks {
		texts[i] = strconv.Itoa(rank)
	}
	return strings.Join(texts, ", ")
}

// report collects what one rule finds in one place.
type report struct {
	checker *Checker
	rule    int
	file    string
	ranks   []int
	id      int64
	// raw is the index of the raw FPM that fields are keys of, or noRaw.
	raw int
}

// noRaw is report.raw when the field is not below a raw FPM.
const noRaw = -1

// holds notes that the rule was applied, and reports whether ok.
func (r *report) holds(ok bool) bool {
	if outcome := &r.checker.outcomes[r.rule]; outcome.Verdict == NotChecked {
		outcome.Verdict = Holds
	}
	return ok
}

func (r *report) violated(field, expected, actual string) {
	outcome := &r.checker.outcomes[r.rule]
	outcome.Verdict = Violated
	outcome.Count++
	if outcome.Count > maxViolations {
		return
	}
	if r.raw != noRaw {
		field = fmt.Sprintf("%s.%d.%s", samplesField, r.raw, field)
	}
	r.checker.violations = append(r.checker.violations, Violation{
		Rule: outcome.Rule, File: r.file, Ranks: r.ranks, BenchmarkID: r.id,
		Field: cut(field), Expected: cut(expected), Actual: cut(actual),
	})
}

// same demands that two values mean the same.
func (r *report) same(field string, expected, actual document.Value) {
	if !r.holds(document.Equal(expected, actual)) {
		r.violated(field, expected.Short(), actual.Short())
	}
}

// number demands an integer.
func (r *report) number(field string, expected int64, actual document.Value) {
	if !r.holds(isInt(actual, expected)) {
		r.violated(field, strconv.FormatInt(expected, 10), actual.Short())
	}
}

// is demands ok of a value; want says what that is.
func (r *report) is(ok bool, field, want string, actual document.Value) {
	if !r.holds(ok) {
		r.violated(field, want, actual.Short())
	}
}

// cut shortens text for a message.
func cut(text string) string {
	const most = 400
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
