// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Command fpmbench shows, checks and compares the artifacts of Dynamo's
// self-benchmark.
//
//	files ──▶ load.File ──▶ benchmark.Checker ──▶ Run ──┬─▶ show: its points
//	                                                    ├─▶ check: its rules
//	                                              two ──┴─▶ compare: side by side
//
// What is compared and when is pure; see compare.go. Texts of files are made
// printable before they reach a terminal.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
)

// The exit codes.
const (
	exitHolds    = 0
	exitViolated = 1
	exitUsage    = 2
	exitRefused  = 3
)

const usage = `usage: fpmbench show    [--json] FILE…
       fpmbench check   [--json] FILE…
       fpmbench compare [--json] [--fail-over RATIO] [--allow-different FIELD]… A B

The FILEs are those of one run: rank files, merged file, sidecar. A and B are a
file each, a merged one if there are several ranks. A sidecar that a merged file
names is read too.

  show     the run and its points
  check    every rule of Dynamo's merger, and where it is violated
  compare  the points of two runs side by side, with the ratio B / A

  --json                   JSON in place of tables
  --fail-over RATIO        exit with 1 when a ratio is larger
  --allow-different FIELD  compare although FIELD differs, such as
                           engine.versions.vllm or all of engine.versions

exit codes: 0  all holds
            1  a rule is violated; compare: a point is on one side only, or a
               ratio is over --fail-over
            2  a file cannot be read, or wrong usage
            3  not compared: protocol or engine differ
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the program; it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		_, _ = io.WriteString(stderr, usage)
		return exitUsage
	}
	commands := map[string]func(args []string, stdout, stderr io.Writer) (int, error){
		"show": runShow, "check": runCheck, "compare": runCompare,
	}
	command, known := commands[args[0]]
	switch {
	case args[0] == "help" || args[0] == "--help" || args[0] == "-h":
		_, _ = io.WriteString(stdout, usage)
		return exitHolds
	case !known:
		_, _ = fmt.Fprintf(stderr, "fpmbench: got %q, want show, check or compare; see fpmbench --help\n", args[0])
		return exitUsage
	}
	code, err := command(args[1:], stdout, stderr)
	if errors.Is(err, flag.ErrHelp) {
		_, _ = io.WriteString(stdout, usage)
		return exitHolds
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "fpmbench %s: %s\n", args[0], err)
		return exitUsage
	}
	return code
}

// options are the flags and files of a command line.
type options struct {
	json     bool
	failOver float64 // 0 when not given
	allowed  []string
	files    []string
}

// parse reads a command line; flags may stand between the files. compares is
// whether the flags of compare are known.
func parse(args []string, compares bool) (*options, error) {
	var o options
	flags := flag.NewFlagSet("fpmbench", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.BoolVar(&o.json, "json", false, "")
	if compares {
		flags.Func("fail-over", "", func(text string) (err error) {
			if o.failOver, err = strconv.ParseFloat(text, 64); err != nil || !(o.failOver > 0 && o.failOver < 1e9) {
				return errors.New("want a ratio above 0, such as 1.1")
			}
			return nil
		})
		flags.Func("allow-different", "", func(field string) error {
			if field == "" {
				return errors.New("want a field, such as engine.versions.vllm")
			}
			o.allowed = append(o.allowed, field)
			return nil
		})
	}
	for len(args) > 0 {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		args = flags.Args()
		if len(args) > 0 {
			o.files = append(o.files, args[0])
			args = args[1:]
		}
	}
	if len(o.files) == 0 {
		return nil, errors.New("want the files of a run; see fpmbench --help")
	}
	return &o, nil
}
