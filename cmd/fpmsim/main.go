// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Command fpmsim is a simulated LLM engine: it publishes forward pass metrics
// over ZMQ PUB as engines do, for demos, tests and load.
//
//	flags ──▶ a rank: load.Engine ──▶ wire.AppendMessage ──▶ pub.Publisher ──▶ subscribers
//	                      ▲                    ▲
//	               faults, pace           heartbeats
//
// Each rank has its own engine model, pace, counter and endpoint. The model is
// pure; the clock is in rank, sockets are in pub.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/otelcol-fpm/otelcol-fpm/cmd/fpmsim/internal/pub"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return 2
	}
	if err := simulate(ctx, o, stdout); err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// simulate runs all ranks until each has ended. The first that fails ends the
// others.
func simulate(ctx context.Context, o *options, stdout io.Writer) error {
	ranks, err := bind(o)
	if err != nil {
		return err
	}
	for i, r := range ranks {
		_, _ = fmt.Fprintf(stdout, "rank %d publishes at %s\n", r.number, o.endpoints[i])
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if o.duration > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, o.startDelay+o.duration)
		defer stop()
	}
	var (
		wg     sync.WaitGroup
		failed = make([]error, len(ranks))
	)
	for i, r := range ranks {
		wg.Go(func() {
			if failed[i] = r.run(ctx); failed[i] != nil {
				cancel(failed[i])
			}
		})
	}
	wg.Wait()
	for _, r := range ranks {
		_, _ = fmt.Fprintf(stdout, "rank %d published %d messages, %d dropped\n", r.number, r.published, r.dropped)
	}
	return errors.Join(failed...)
}

// bind binds the endpoints of all ranks, or none.
func bind(o *options) ([]*rank, error) {
	var ranks []*rank
	for i, address := range o.endpoints {
		r, err := newRank(o, o.dpStartRank+i, func() (endpoint, error) { return pub.Listen(address) })
		if err != nil {
			for _, r := range ranks {
				r.close(0)
			}
			return nil, err
		}
		ranks = append(ranks, r)
	}
	return ranks, nil
}
