// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
)

func runCompare(args []string, stdout, stderr io.Writer) (int, error) {
	o, err := parse(args, true)
	if err != nil {
		return 0, err
	}
	if len(o.files) != 2 {
		return 0, fmt.Errorf("got %d files, want two", len(o.files))
	}
	var runs [2]*benchmark.Run
	var problems []error
	for i, file := range o.files {
		runs[i], err = readRun([]string{file}, stderr)
		if err == nil && len(runs[i].Points) == 0 {
			err = fmt.Errorf("%s: no points", file)
		}
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return 0, err
	}
	c := compareRuns(runs[0], runs[1], o.allowed)
	if o.json {
		err = printJSON(stdout, comparedRuns(c, runs[0], runs[1]))
	} else {
		printComparison(stdout, c, runs[0], runs[1])
	}
	switch {
	case len(c.refused) > 0:
		return exitRefused, err
	case c.fails(o.failOver):
		return exitViolated, err
	default:
		return exitHolds, err
	}
}

func printComparison(out io.Writer, c *comparison, a, b *benchmark.Run) {
	_, _ = fmt.Fprintf(out, "A  %s\nB  %s\n", printable(given(a.ID)), printable(given(b.ID)))
	for _, note := range c.notes {
		_, _ = fmt.Fprintln(out, "note: "+printable(note))
	}
	for _, difference := range c.allowed {
		_, _ = fmt.Fprintln(out, "differs, allowed: "+printable(differenceText(difference)))
	}
	if len(c.refused) > 0 {
		for _, difference := range c.refused {
			_, _ = fmt.Fprintln(out, "differs: "+printable(differenceText(difference)))
		}
		_, _ = fmt.Fprintln(out, "Not compared. Each field above can be passed to --allow-different.")
		return
	}
	_, _ = fmt.Fprintln(out)
	t := newTable(out, "type", "batch", "prefill", "KV read", "rank", "A ms", "B ms", "B/A", "prompts", "remark")
	for i := range c.pairs {
		p := &c.pairs[i]
		point := p.point()
		rank, prompts := rankName(point.Rank), p.prompts
		if p.all {
			rank, prompts = "all", ""
		}
		t.row(given(point.Type), whole(point.BatchSize), whole(point.PrefillTokens), whole(point.KVReadTokens), rank,
			milliseconds(p.aSeconds), milliseconds(p.bSeconds), ratioText(p), prompts, remark(p))
	}
	t.flush()
}

func differenceText(d benchmark.Difference) string {
	return fmt.Sprintf("%s: A %s, B %s", d.Field, d.A, d.B)
}

func ratioText(p *pair) string {
	ratio, ok := p.ratio()
	if !ok {
		return none
	}
	return strconv.FormatFloat(ratio, 'f', 3, 64)
}

func remark(p *pair) string {
	switch {
	case p.aSeconds == nil && p.bSeconds != nil:
		return "only in B"
	case p.bSeconds == nil && p.aSeconds != nil:
		return "only in A"
	case p.aSeconds == nil:
		return "not timed"
	case p.offByBatch() && !p.all:
		return benchmark.OffByBatch
	default:
		return ""
	}
}
