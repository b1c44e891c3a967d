// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"context"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/zap"
)

// pipe makes a batch of messages into one signal's data and hands it on. It
// builds the batch anew at every call: data that a consumer refused may have
// been changed by it. A call without messages hands on what time alone brings.
//
// held is how many messages were taken, by this call or by one before it, and
// are handed on by a later one. What is refused for now changes nothing.
type pipe interface {
	deliver(ctx context.Context, messages []*message) (held int, err error)
	// finish hands on what ends with the receiver, after the last message was
	// delivered, and holds nothing.
	finish(ctx context.Context) (held int, err error)
}

const (
	// maxBatchBytes bounds the payloads of a batch beside max_messages: as pdata
	// they take many times their size.
	maxBatchBytes = 4 << 20
	// maxTick is how often at least a pipe is asked for what time alone brings.
	maxTick = time.Second
	// Waits between attempts at a consumer that refuses.
	initialRetry = 50 * time.Millisecond
	maxRetry     = 5 * time.Second
)

// runner moves messages from a signal's queue into its pipe. Whatever becomes
// of a message is counted here.
type runner struct {
	receiver *fpmReceiver
	signal   signal
	queue    *queue
	pipe     pipe
	// batchMessages bounds a batch.
	batchMessages int

	mu sync.Mutex
	// batch is on its way to the consumer.
	batch []*message
	// held is how many messages the pipe holds.
	held int
	// abandoned: Shutdown has counted batch and queue as dropped, and is over.
	abandoned bool
}

// push queues an accepted message.
func (r *runner) push(m *message) {
	if out := r.queue.push(m); len(out) > 0 {
		r.dropFull(out)
	}
}

// run delivers a batch each batch::timeout, and at once when there are enough
// messages for one, until stop is closed. Then it delivers what is queued, as
// long as ctx lasts, and counts the rest.
func (r *runner) run(ctx context.Context, stop <-chan struct{}) {
	timeout := r.receiver.config.Batch.Timeout
	ticker := time.NewTicker(min(timeout, maxTick))
	defer ticker.Stop()
	waits := newRetries()
	flushed := time.Now()
	taken := r.once(ctx, 0) // says at the start that nothing is up
	for {
		var (
			retry  <-chan time.Time
			tick   = ticker.C
			enough = r.queue.enough
		)
		if taken {
			waits.Reset()
		} else {
			retry, tick, enough = time.After(waits.NextBackOff()), nil, nil
		}
		select {
		case <-stop:
			r.drain(ctx)
			return
		case <-enough:
			taken = r.flushWhole(ctx)
			continue
		case <-tick:
			if time.Since(flushed) < timeout {
				r.once(ctx, 0)
				continue
			}
		case <-retry:
		}
		flushed = time.Now()
		taken = r.once(ctx, r.batchMessages) && r.flushWhole(ctx)
	}
}

// flushWhole delivers batches as long as a whole one waits. It is false when
// the consumer refused for now.
func (r *runner) flushWhole(ctx context.Context) bool {
	for r.queue.whole() {
		if !r.once(ctx, r.batchMessages) {
			return false
		}
	}
	return true
}

// once hands on one batch of at most maxMessages. It is false when the consumer
// refused for now: the messages are back in the queue.
func (r *runner) once(ctx context.Context, maxMessages int) bool {
	r.mu.Lock()
	r.batch = r.queue.take(r.batch[:0], maxMessages, maxBatchBytes)
	r.mu.Unlock()
	held, err := r.pipe.deliver(ctx, r.batch)
	return r.judge(held, err)
}

// judge counts what became of the batch and of what the pipe held before. It is
// false when the consumer refused for now.
func (r *runner) judge(held int, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.abandoned {
		return false
	}
	defer func() {
		clear(r.batch)
		r.batch = r.batch[:0]
	}()
	over := len(r.batch) + r.held - held
	switch {
	case err == nil:
		r.receiver.ledger.delivered(r.signal, over)
	case consumererror.IsPermanent(err):
		if over == 0 { // it was about endpoints or the end of series
			r.receiver.logger.Debug("The next consumer refused points of no message for good", zap.Stringer("signal", r.signal), zap.Error(err))
			break
		}
		r.drop(over, droppedRefused)
		r.warn(droppedRefused, "Messages dropped: the next consumer refused them for good", over, zap.Error(err))
	default:
		r.warn("retry", "The next consumer refused messages for now; trying again while the queue has room", len(r.batch)+r.held, zap.Error(err))
		if out := r.queue.restore(r.batch); len(out) > 0 {
			r.dropFull(out)
		}
		return false
	}
	r.held = held
	r.settle(r.batch)
	return true
}

// drain delivers what is left while ctx lasts, and then what ends with the
// receiver.
func (r *runner) drain(ctx context.Context) {
	waits := newRetries()
	for over := false; !over && ctx.Err() == nil; {
		taken := false
		if r.queue.length() > 0 {
			taken = r.once(ctx, r.batchMessages)
		} else {
			taken, over = r.finish(ctx)
		}
		if taken {
			continue
		}
		select {
		case <-time.After(waits.NextBackOff()):
		case <-ctx.Done():
		}
	}
	r.abandon()
}

// finish delivers what ends with the receiver. It is over when that was taken, or
// refused and no message is concerned.
func (r *runner) finish(ctx context.Context) (taken, over bool) {
	held, err := r.pipe.finish(ctx)
	if err != nil && r.held == 0 {
		r.receiver.logger.Debug("The next consumer did not take the end of the series", zap.Stringer("signal", r.signal), zap.Error(err))
		return true, true
	}
	taken = r.judge(held, err)
	return taken, taken
}

// abandon counts all that is not delivered as dropped. A consumer that still
// holds the batch at hand may take it later, which then counts no more.
func (r *runner) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.abandoned {
		return
	}
	r.abandoned = true
	left := r.queue.take(append([]*message(nil), r.batch...), r.receiver.config.QueueSize, r.receiver.config.QueueBytes)
	messages := len(left) + r.held
	if messages == 0 {
		return
	}
	r.drop(messages, droppedShutdown)
	r.settle(left)
	r.receiver.logger.Warn("Messages dropped: not delivered before the end of shutdown",
		zap.Stringer("signal", r.signal), zap.Int("messages", messages))
}

func (r *runner) dropFull(out []*message) {
	r.drop(len(out), droppedQueueFull)
	r.settle(out)
	r.warn(droppedQueueFull, "Oldest messages dropped: the pipeline is slower than the engines and the queue is full", len(out))
}

func (r *runner) drop(messages int, reason string) {
	if messages > 0 {
		r.receiver.ledger.dropped(r.signal, reason, messages)
	}
}

// settle tells the ranks that nothing more becomes of these messages.
func (r *runner) settle(messages []*message) {
	if r.signal != signalMetrics {
		return
	}
	for _, m := range messages {
		m.rank.waiting.Add(-1)
	}
}

func (r *runner) warn(reason, text string, messages int, fields ...zap.Field) {
	r.receiver.warn(r.signal.String(), reason, text, append(fields, zap.Stringer("signal", r.signal), zap.Int("messages", messages))...)
}

func newRetries() *backoff.ExponentialBackOff {
	waits := backoff.NewExponentialBackOff()
	waits.InitialInterval, waits.MaxInterval = initialRetry, maxRetry
	waits.Reset()
	return waits
}
