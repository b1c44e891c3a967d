// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
)

func runCheck(args []string, stdout, stderr io.Writer) (int, error) {
	o, err := parse(args, false)
	if err != nil {
		return 0, err
	}
	run, err := readRun(o.files, stderr)
	if err != nil {
		return 0, err
	}
	if o.json {
		err = printJSON(stdout, checkedRun(run))
	} else {
		printCheck(stdout, run)
	}
	return verdictCode(run), err
}

func printCheck(out io.Writer, run *benchmark.Run) {
	counts := map[benchmark.Verdict]int{}
	t := newTable(out)
	for _, outcome := range run.Outcomes {
		counts[outcome.Verdict]++
		remark := ""
		switch outcome.Verdict {
		case benchmark.NotChecked:
			remark = "needs " + given(outcome.Rule.Needs)
		case benchmark.Violated:
			remark = fmt.Sprintf("%d times", outcome.Count)
		}
		t.row(outcome.Verdict.String(), outcome.Rule.Name, remark)
	}
	t.flush()
	_, _ = fmt.Fprintln(out)
	for i := range run.Violations {
		_, _ = fmt.Fprintln(out, printable(run.Violations[i].String()))
	}
	for _, outcome := range run.Outcomes {
		if left := outcome.Count - shownViolations(run, outcome.Rule); left > 0 {
			_, _ = fmt.Fprintf(out, "%s: and %d more\n", outcome.Rule.Name, left)
		}
	}
	_, _ = fmt.Fprintf(out, "%d rules hold, %d violated, %d not checked\n",
		counts[benchmark.Holds], counts[benchmark.Violated], counts[benchmark.NotChecked])
}

func shownViolations(run *benchmark.Run, rule *benchmark.Rule) int {
	count := 0
	for i := range run.Violations {
		if run.Violations[i].Rule == rule {
			count++
		}
	}
	return count
}
