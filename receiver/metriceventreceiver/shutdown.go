// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"context"
	"errors"
	"time"
)

const (
	// shutdownTimeout bounds a Shutdown whose context has no deadline, which is
	// what the Collector gives.
	shutdownTimeout = 5 * time.Second
	// settleTime is left of it, at most, to a consumer that was told that the time
	// is over.
	settleTime = 500 * time.Millisecond
)

// errHanging is the error of a Shutdown that left the consumer behind.
var errHanging = errors.New("the consumer did not return before the end of shutdown; what it holds is counted as dropped")

// Shutdown implements component.Component. It stops reading, delivers what was
// accepted, and returns within the deadline of ctx or shutdownTimeout, whichever
// is first. What is not delivered by then is counted.
func (r *metricEventReceiver) Shutdown(ctx context.Context) error {
	if r.cancelDeliver == nil {
		return nil
	}
	cancel := r.cancelDeliver
	r.cancelDeliver = nil
	defer cancel()
	defer r.ledger.counters.Shutdown()
	r.server.close()
	close(r.stopDelivery)

	left := shutdownTimeout
	if deadline, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(deadline))
	}
	settle := min(settleTime, left/10)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.background.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-time.After(left - settle):
	case <-ctx.Done():
	}
	cancel()
	select {
	case <-done:
		return nil
	case <-time.After(max(settle, settleTime/10)):
		r.delivery.abandon()
		return errHanging
	}
}
