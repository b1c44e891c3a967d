// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"context"
	"errors"
	"time"
)

const (
	// shutdownTimeout bounds a Shutdown whose context has no deadline, which is
	// what the Collector gives.
	shutdownTimeout = 5 * time.Second
	// settleTime is left of it, at most, to consumers that were told that the
	// time is over.
	settleTime = 500 * time.Millisecond
)

// errHanging is the error of a Shutdown that left a consumer behind.
var errHanging = errors.New("a consumer did not return before the end of shutdown; what it holds is counted as dropped")

// Shutdown implements component.Component. It stops reading, delivers what is
// queued, and returns within the deadline of ctx or shutdownTimeout, whichever
// is first. What is not delivered by then is counted.
func (r *fpmReceiver) Shutdown(ctx context.Context) error {
	r.stopOnce.Do(func() {
		r.forget()
		if r.cancelDeliver != nil {
			r.stopErr = r.stop(ctx)
		}
	})
	return r.stopErr
}

func (r *fpmReceiver) stop(ctx context.Context) error {
	if r.cancelIntake != nil {
		r.cancelIntake()
		r.intake.Wait() // at once: nothing in intake blocks
	}
	close(r.stopPipes)
	defer r.ledger.counters.Shutdown()
	defer r.cancelDeliver()

	left := shutdownTimeout
	if deadline, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(deadline))
	}
	settle := min(settleTime, left/10)
	if left <= 0 {
		settle = settleTime / 10 // late as it is, what can be counted in order shall be
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.pipes.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-time.After(left - settle):
	case <-ctx.Done():
	}
	r.cancelDeliver()
	select {
	case <-done:
		return nil
	case <-time.After(settle):
	}
	for _, run := range r.runners {
		if run != nil {
			run.abandon()
		}
	}
	return errHanging
}
