// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-fpm/otelcol-fpm/cmd/fpmsim/internal/load"
)

// Bounds of the flags.
const (
	maxRanks   = 1024
	maxRate    = 100_000
	maxIPCPath = 107 // bytes, what a unix socket address holds
)

// Where to bind without --endpoint, by transport. config/quickstart.yaml and
// config/sglang-ipc.yaml look there.
var defaultEndpoints = map[string]string{"tcp": "tcp://127.0.0.1:20380", "ipc": "ipc:///tmp/sglang-fpm"}

// options are the flags. See their help texts in parseOptions.
type options struct {
	endpoint    string
	ranks       int
	dpStartRank int
	rate        float64
	profile     load.Profile
	duration    time.Duration
	seed        uint64
	workerID    string
	faults      []fault
	messages    uint64
	startDelay  time.Duration

	// endpoints are those of the ranks, in order.
	endpoints []string
}

// parseOptions reads the command line. It reports all that is wrong at once,
// and flag.ErrHelp after it has printed the help.
func parseOptions(args []string, help io.Writer) (*options, error) {
	var (
		o                          options
		transport, profile, faults string
		problems                   []error
	)
	flags := flag.NewFlagSet("fpmsim", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&transport, "transport", "tcp", "tcp or ipc, without --endpoint: ipc binds at "+defaultEndpoints["ipc"])
	flags.StringVar(&o.endpoint, "endpoint", defaultEndpoints["tcp"], "where to bind: rank k of tcp://host:port at port+k (host * for all interfaces), of ipc://path at path.k")
	flags.IntVar(&o.ranks, "ranks", 2, "data-parallel ranks to simulate")
	flags.IntVar(&o.dpStartRank, "dp-start-rank", 0, "number of the first rank")
	flags.Float64Var(&o.rate, "rate", 20, "passes a second and rank while there is work; each rank keeps a little above or below")
	flags.StringVar(&profile, "profile", "chat", "the load: "+strings.Join(load.ProfileNames(), ", "))
	flags.DurationVar(&o.duration, "duration", 0, "stop after this time; 0 goes on until interrupted")
	flags.Uint64Var(&o.seed, "seed", 1, "the same seed gives the same passes")
	flags.StringVar(&o.workerID, "worker-id", "", "worker_id of the messages; Dynamo leaves it empty")
	flags.StringVar(&faults, "faults", "", fmt.Sprintf("comma-separated list of faults; by turns one happens every %v: %s", faultInterval, strings.Join(faultNames(), ", ")))
	flags.Uint64Var(&o.messages, "messages", 0, "stop after this number of messages of each rank, heartbeats included; 0 means no limit")
	flags.DurationVar(&o.startDelay, "start-delay", 0, "time between binding and the first message")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			printHelp(help, flags)
			return nil, err
		}
		return nil, fmt.Errorf("%w, see --help", err)
	}

	check := func(ok bool, name string, value any, allowed string) {
		if !ok {
			problems = append(problems, fmt.Errorf("--%s %v: must be %s", name, value, allowed))
		}
	}
	if flags.NArg() > 0 {
		problems = append(problems, fmt.Errorf("%q: there are only flags, see --help", flags.Args()))
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	switch {
	case defaultEndpoints[transport] == "":
		check(false, "transport", strconv.Quote(transport), "tcp or ipc")
	case !given["endpoint"]:
		o.endpoint = defaultEndpoints[transport]
	case given["transport"]:
		check(strings.HasPrefix(o.endpoint, transport+"://"), "transport", transport, "that of --endpoint "+o.endpoint)
	}
	check(o.ranks >= 1 && o.ranks <= maxRanks, "ranks", o.ranks, fmt.Sprintf("1 to %d", maxRanks))
	check(o.dpStartRank >= 0, "dp-start-rank", o.dpStartRank, "0 or more")
	check(o.rate > 0 && o.rate <= maxRate, "rate", o.rate, fmt.Sprintf("above 0, at most %d", maxRate))
	check(o.duration >= 0, "duration", o.duration, "0 or more")
	check(o.startDelay >= 0, "start-delay", o.startDelay, "0 or more")
	var err error
	if o.profile, err = load.ProfileByName(profile); err != nil {
		check(false, "profile", profile, "one of "+strings.Join(load.ProfileNames(), ", "))
	}
	for name := range strings.SplitSeq(faults, ",") {
		if name = strings.TrimSpace(name); name != "" {
			check(slices.Contains(faultNames(), name), "faults", strconv.Quote(name), "one of "+strings.Join(faultNames(), ", "))
			o.faults = append(o.faults, fault(name))
		}
	}
	if len(problems) == 0 {
		o.endpoints, err = rankEndpoints(o.endpoint, o.dpStartRank, o.ranks)
		if err != nil {
			problems = append(problems, err)
		}
	}
	return &o, errors.Join(problems...)
}

func printHelp(w io.Writer, flags *flag.FlagSet) {
	_, _ = fmt.Fprint(w, "fpmsim simulates an LLM engine that publishes forward pass metrics over ZMQ PUB.\n\nUsage: fpmsim [flags]\n\n")
	flags.VisitAll(func(f *flag.Flag) {
		_, _ = fmt.Fprintf(w, "  --%s (default %s)\n        %s\n", f.Name, cmp.Or(f.DefValue, `""`), f.Usage)
	})
}

// rankEndpoints gives each rank the endpoint that engines give it: vLLM adds
// the rank to the port, SGLang appends it to the path, also 0.
func rankEndpoints(endpoint string, first, n int) ([]string, error) {
	bad := func(allowed string) ([]string, error) {
		return nil, fmt.Errorf("--endpoint %s: must be %s", endpoint, allowed)
	}
	out := make([]string, 0, n)
	scheme, rest, _ := strings.Cut(endpoint, "://")
	switch {
	case scheme == "ipc" && rest != "":
		for rank := first; rank < first+n; rank++ {
			path := fmt.Sprintf("%s.%d", rest, rank)
			if len(path) > maxIPCPath {
				return bad(fmt.Sprintf("a path of at most %d bytes with the rank: %s has %d", maxIPCPath, path, len(path)))
			}
			out = append(out, "ipc://"+path)
		}
	case scheme == "tcp":
		host, portText, err := net.SplitHostPort(rest)
		port, portErr := strconv.Atoi(portText)
		if err != nil || portErr != nil || port < 1 || port > 65535 || host == "" {
			return bad("tcp://host:port with a port of 1 to 65535")
		}
		if last := port + first + n - 1; last > 65535 {
			return bad(fmt.Sprintf("a port that leaves room for the ranks: rank %d would bind %d", first+n-1, last))
		}
		for rank := first; rank < first+n; rank++ {
			out = append(out, "tcp://"+net.JoinHostPort(host, strconv.Itoa(port+rank)))
		}
	default:
		return bad("tcp://host:port or ipc://path")
	}
	return out, nil
}
