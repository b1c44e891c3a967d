// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"
)

func runShow(args []string, stdout, stderr io.Writer) (int, error) {
	o, err := parse(args, false)
	if err != nil {
		return 0, err
	}
	run, err := readRun(o.files, stderr)
	if err != nil {
		return 0, err
	}
	if o.json {
		err = printJSON(stdout, shownRun(run))
	} else {
		showRun(stdout, run)
		_, _ = fmt.Fprintln(stdout)
		showPoints(stdout, run)
		if !run.Valid {
			_, _ = fmt.Fprintln(stdout, "\nRules are violated; see fpmbench check.")
		}
	}
	return verdictCode(run), err
}

func verdictCode(run *benchmark.Run) int {
	if run.Valid {
		return exitHolds
	}
	return exitViolated
}

func showRun(out io.Writer, run *benchmark.Run) {
	t := newTable(out)
	t.row("run", given(run.ID))
	t.row("grid", given(run.GridDigest))
	t.row("status", run.Status+reason(run.StopReason))
	t.row("valid", fmt.Sprintf("%s by the rules, %s by itself", yes(&run.Valid), yes(run.ArtifactValid)))
	if run.Coverage != nil {
		t.row("coverage", fmt.Sprintf("%d of %d points × ranks", run.Coverage.Completed, run.Coverage.Expected))
	}
	if run.Elapsed != nil {
		t.row("elapsed", strconv.FormatFloat(*run.Elapsed, 'f', 1, 64)+" s")
	}
	if !run.CompletedAt.IsZero() {
		t.row("completed", run.CompletedAt.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	showEngine(t, &run.Engine)
	t.flush()
}

func reason(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

func yes(value *bool) string {
	switch {
	case value == nil:
		return "unknown"
	case *value:
		return "yes"
	default:
		return "no"
	}
}

func showEngine(t *table, engine *benchmark.Engine) {
	if !engine.Block.Exists() {
		t.row("engine", "not recorded")
		return
	}
	field := func(path ...string) string {
		value := engine.Block.Path(path...)
		if text, ok := value.Text(); ok {
			return text
		}
		if !value.Given() {
			return none
		}
		return value.Short()
	}
	t.row("model", fmt.Sprintf("%s, %s, quantization %s", field("model", "model"), field("model", "dtype"), field("quantization", "method")))
	t.row("parallel", fmt.Sprintf("DP %s, TP %s, PP %s", field("parallel", "data_parallel_size"), field("parallel", "tensor_parallel_size"), field("parallel", "pipeline_parallel_size")))
	t.row("versions", fmt.Sprintf("vllm %s, dynamo %s", field("versions", "vllm"), field("versions", "dynamo")))
	requested := field("attention", "backend_requested")
	if engine.Block.Path("attention", "backend_requested").Kind() == document.Null {
		requested = "automatically"
	}
	t.row("attention", fmt.Sprintf("requested %s, %s", requested, resolved(engine.Probe)))
	for _, failure := range engine.CaptureErrors {
		t.row("capture", fmt.Sprintf("rank %d: %s", failure.Rank, failure.Text))
	}
}

// resolved says what the workers' replies support, and no more.
func resolved(probe *benchmark.Probe) string {
	if probe == nil {
		return "no post-run evidence"
	}
	backend, ok := probe.Attention.Get("backend_resolved").Text()
	if probe.Scope == "" || !ok {
		return "not resolved (" + probe.Resolution + ")"
	}
	text := fmt.Sprintf("resolved %s (%s by a %s", backend, probe.Resolution, strings.ReplaceAll(probe.Scope, "_", " "))
	if missing := probe.Worker.Path("coverage", "missing_dp_ranks"); missing.Len() > 0 {
		text += ", no reply of rank " + strings.Trim(strings.ReplaceAll(missing.Short(), ",", ", "), "[]")
	}
	return text + ")"
}

func showPoints(out io.Writer, run *benchmark.Run) {
	t := newTable(out, "id", "type", "batch", "prefill", "KV read", "expected", "padding", "observed", "rank", "ms", "tokens/s", "samples", "min ms", "max ms")
	defer t.flush()
	groups := make(map[int64]float64, len(run.Groups))
	for _, group := range run.Groups {
		groups[group.ID] = group.WallTime
	}
	for i := range run.Points {
		p := &run.Points[i]
		samples, least, most := none, none, none
		if p.Samples != nil {
			samples, least, most = strconv.Itoa(p.Samples.Count), milliseconds(&p.Samples.Min), milliseconds(&p.Samples.Max)
		}
		t.row(strconv.FormatInt(p.ID, 10), given(p.Type), whole(p.BatchSize), whole(p.PrefillTokens), whole(p.KVReadTokens),
			expectedGraph(p), whole(p.ExpectedPadding), observedGraph(p), rankName(p.Rank), milliseconds(p.WallTime), tokensPerSecond(p), samples, least, most)
		last := i == len(run.Points)-1 || run.Points[i+1].ID != p.ID
		if seconds, merged := groups[p.ID]; merged && last && run.Size > 1 {
			t.row("", "", "", "", "", "", "", "", "all", milliseconds(&seconds), "", "", "", "")
		}
	}
}

func tokensPerSecond(p *benchmark.Point) string {
	rate, ok := p.TokensPerSecond()
	if !ok {
		return none
	}
	return strconv.FormatFloat(rate, 'f', 1, 64)
}

func expectedGraph(p *benchmark.Point) string {
	if p.ExpectedCaptureSize == nil {
		return given(p.ExpectedCUDAGraphMode)
	}
	return fmt.Sprintf("%s/%d", given(p.ExpectedCUDAGraphMode), *p.ExpectedCaptureSize)
}

func observedGraph(p *benchmark.Point) string {
	if p.Observed == nil {
		return none
	}
	return fmt.Sprintf("%s/%d", p.Observed.Mode, p.Observed.Padded)
}
