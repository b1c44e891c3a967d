// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"context"
	"errors"

	"github.com/otelcol-fpm/otelcol-fpm/internal/shutdown"
)

// errHanging is the error of a Shutdown that left the consumer behind.
var errHanging = errors.New("the consumer did not return before the end of shutdown; what it holds is counted as dropped")

// Shutdown implements component.Component. It stops reading, delivers what was
// accepted, and returns within the deadline of ctx or shutdown.Timeout, whichever
// is first. What is not delivered by then is counted.
func (r *metricEventReceiver) Shutdown(ctx context.Context) error {
	if r.cancelDeliver == nil {
		return nil
	}
	cancel := r.cancelDeliver
	r.cancelDeliver = nil
	defer r.ledger.counters.Shutdown()
	r.server.close()
	close(r.stopDelivery)
	if shutdown.Wait(ctx, &r.background, cancel) {
		return nil
	}
	r.delivery.abandon()
	return errHanging
}
