// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"context"
	"errors"

	"github.com/otelcol-fpm/otelcol-fpm/internal/shutdown"
)

// errHanging is the error of a Shutdown that left a consumer behind.
var errHanging = errors.New("a consumer did not return before the end of shutdown; what it holds is counted as dropped")

// Shutdown implements component.Component. It stops reading, delivers what is
// queued, and returns within the deadline of ctx or shutdown.Timeout, whichever
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
		r.poller.Close()
	}
	r.ledger.count()
	close(r.stopPipes)
	defer r.ledger.counters.Shutdown()
	if shutdown.Wait(ctx, &r.pipes, r.cancelDeliver) {
		return nil
	}
	for _, run := range r.runners {
		if run != nil {
			run.abandon()
		}
	}
	return errHanging
}
