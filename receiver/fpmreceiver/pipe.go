// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/zap"
)

// pipe makes a batch of messages into one signal's data and hands it on. It
// builds the batch anew at every call: data that a consumer refused may have
// been changed by it. A call without messages hands on what time alone brings.
type pipe interface {
	deliver(ctx context.Context, messages []*message) error
}

const (
	// maxBatchBytes bounds the payloads of a batch beside max_messages: as pdata
	// they take many times their size.
	maxBatchBytes = 4 << 20
	// Waits between attempts at a consumer that refuses.
	initialRetry = 50 * time.Millisecond
	maxRetry     = 5 * time.Second
)

// runner moves messages from a signal's queue into its pipe.
type runner struct {
	receiver *fpmReceiver
	signal   signal
	queue    *queue
	pipe     pipe
	batch    []*message
}

// run delivers a batch each timeout, and at once when there are enough messages
// for one, until stop is closed. Then it delivers what is queued, as long as
// ctx lasts, and counts the rest.
func (r *runner) run(ctx context.Context, stop <-chan struct{}) {
	ticker := time.NewTicker(r.receiver.config.Batch.Timeout)
	defer ticker.Stop()
	waits := newRetries()
	for {
		retry := r.flush(ctx, waits)
		select {
		case <-stop:
			r.drain(ctx)
			return
		case <-retry:
		case <-wait(retry == nil, ticker.C):
		case <-wait(retry == nil, r.queue.enough):
		}
	}
}

// wait is the channel, or one that never answers.
func wait[T any](use bool, channel <-chan T) <-chan T {
	if use {
		return channel
	}
	return nil
}

// flush delivers batches until less than a whole one is left. When the consumer
// refuses for now, it returns a channel that tells when to try again.
func (r *runner) flush(ctx context.Context, waits *backoff.ExponentialBackOff) (retry <-chan time.Time) {
	for {
		if !r.once(ctx, waits) {
			return time.After(waits.NextBackOff())
		}
		if queued, _ := r.queue.length(); queued < r.receiver.config.Batch.MaxMessages {
			return nil
		}
	}
}

// once delivers one batch. It is false when the messages are back in the queue.
func (r *runner) once(ctx context.Context, waits *backoff.ExponentialBackOff) bool {
	defer func() { clear(r.batch) }()
	r.batch = r.queue.take(r.batch[:0], r.receiver.config.Batch.MaxMessages, maxBatchBytes)
	err := r.pipe.deliver(ctx, r.batch)
	counts := &r.receiver.ledger.signals[r.signal]
	switch {
	case err == nil:
		counts.delivered.Add(int64(len(r.batch)))
		waits.Reset()
	case consumererror.IsPermanent(err):
		counts.dropped.add(droppedRefused, int64(len(r.batch)))
		waits.Reset()
		r.receiver.warn(r.signal.String(), droppedRefused, "Messages dropped: the next consumer refused them for good",
			zap.Stringer("signal", r.signal), zap.Int("messages", len(r.batch)), zap.Error(err))
	default:
		r.queue.restore(r.batch)
		r.receiver.warn(r.signal.String(), "retry", "The next consumer refused messages for now; trying again while the queue has room",
			zap.Stringer("signal", r.signal), zap.Error(err))
		return false
	}
	return true
}

// drain delivers what is left before the deadline of ctx.
func (r *runner) drain(ctx context.Context) {
	waits := newRetries()
	for {
		queued, _ := r.queue.length()
		if queued == 0 || ctx.Err() != nil {
			break
		}
		if !r.once(ctx, waits) {
			select {
			case <-time.After(waits.NextBackOff()):
			case <-ctx.Done():
			}
		}
	}
	if left, _ := r.queue.length(); left > 0 {
		r.receiver.ledger.signals[r.signal].dropped.add(droppedShutdown, int64(left))
		r.receiver.logger.Warn("Messages dropped: not delivered before the end of shutdown",
			zap.Stringer("signal", r.signal), zap.Int("messages", left))
	}
}

func newRetries() *backoff.ExponentialBackOff {
	waits := backoff.NewExponentialBackOff()
	waits.InitialInterval, waits.MaxInterval = initialRetry, maxRetry
	waits.Reset()
	return waits
}
