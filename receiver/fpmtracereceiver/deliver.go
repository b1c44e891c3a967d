// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/zap"
)

// Waits between attempts at a consumer that refuses.
const (
	initialRetry = 50 * time.Millisecond
	maxRetry     = 5 * time.Second
)

// flush delivers the batch to all signals, as long as it takes, and then stores
// the positions behind it. It is false when the receiver is stopped before all
// consumers have taken it; then the positions of those that have are stored.
//
// Invariant (TestNothingIsStoredBeforeItIsDelivered): a stored position has only
// rows before it that its signal's consumer has taken or refused for good.
func (r *reader) flush(ctx context.Context) bool {
	b := &r.batch
	if r.over || b.empty() {
		return !r.over
	}
	settled := true
	var taken [signalCount]bool
	for s := range r.pipes {
		taken[s] = r.deliver(ctx, signal(s))
		settled = settled && taken[s]
	}
	for _, f := range b.files {
		for s := range taken {
			if taken[s] {
				f.taken[s] = f.cursor
			}
		}
		if f.taken.first() != f.cursor {
			f.lines = -1 // those in front of another member
		}
	}
	r.savePositions(ctx, b.files)
	if !settled {
		r.over = true
		return false
	}
	r.ledger.settled(&b.tally)
	r.progress.settled(&b.tally, r)
	b.clear()
	return true
}

// deliver hands the rows of a batch to one signal's consumer until it takes them
// or refuses them for good. It is false when the receiver is stopped before.
func (r *reader) deliver(ctx context.Context, s signal) bool {
	if r.pipes[s] == nil {
		return true
	}
	rows := make([]*entry, 0, len(r.batch.rows))
	for i := range r.batch.rows {
		if r.batch.rows[i].to[s] {
			rows = append(rows, &r.batch.rows[i])
		}
	}
	if len(rows) == 0 {
		return true
	}
	waits := backoff.NewExponentialBackOff()
	waits.InitialInterval, waits.MaxInterval = initialRetry, maxRetry
	waits.Reset()
	for {
		err := r.pipes[s].deliver(ctx, rows)
		switch {
		case err == nil:
			r.ledger.delivered(s, len(rows))
			return true
		case consumererror.IsPermanent(err):
			r.ledger.dropped(s, droppedRefused, len(rows))
			r.warn("", droppedRefused+s.String(), "Rows dropped: the next consumer refused them for good",
				zap.Stringer("signal", s), zap.Int("rows", len(rows)), zap.Error(err))
			return true
		}
		r.warn("", "retry"+s.String(), "The next consumer refused rows for now; files wait",
			zap.Stringer("signal", s), zap.Int("rows", len(rows)), zap.Error(err))
		select {
		case <-time.After(waits.NextBackOff()):
		case <-r.stop:
			return false
		case <-ctx.Done():
			return false
		}
	}
}
