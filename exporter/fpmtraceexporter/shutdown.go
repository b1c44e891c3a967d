// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"context"
	"fmt"
	"time"
)

// shutdown writes what was taken and ends. With a deadline it gives up shortly
// before it; what is not on disk then is counted.
func (e *traceExporter) shutdown(ctx context.Context) error {
	e.status.end()
	e.mu.Lock()
	wasRunning := e.running
	e.running = false
	e.mu.Unlock()
	if !wasRunning {
		return nil
	}
	e.calls.Wait() // so that a call is taken whole; it only computes, and ends soon
	defer e.telemetry.builder.Shutdown()
	if !e.cfg.Enabled {
		return nil
	}
	defer e.releasePath()

	close(e.stop)
	e.sampling.Wait()
	e.handOnSamples()
	e.mu.Lock()
	open := e.producers.closeAll()
	e.mu.Unlock()

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, p := range open {
			<-p.done
		}
		close(e.closed)
		e.background.Wait()
	}()
	soft, cancel := beforeDeadline(ctx)
	defer cancel()
	if waitFor(soft, ended) {
		return nil
	}
	lost := e.abort()
	if !waitFor(ctx, ended) {
		return fmt.Errorf("traces were not written in time: %d records were dropped, and a write is still going on: %w", lost, ctx.Err())
	}
	return fmt.Errorf("traces were not written in time: %d records were dropped", lost)
}

// abort drops what is not being written at this moment.
func (e *traceExporter) abort() (lost int) {
	e.aborted.Store(true)
	var t tally
	e.mu.Lock()
	for _, p := range e.producers.closing {
		if rows := e.queue.dropAll(&p.lane); rows > 0 {
			t.drop(reasonShutdown, p.id, rows)
			lost += rows
		}
	}
	e.mu.Unlock()
	e.settle(&t)
	return lost
}

// beforeDeadline leaves some of the time to end in an orderly way.
func beforeDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	margin := min(time.Until(deadline)/10, 500*time.Millisecond)
	return context.WithDeadlineCause(ctx, deadline.Add(-margin), context.DeadlineExceeded)
}

func waitFor(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
	}
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
