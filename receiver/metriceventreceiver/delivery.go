// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"
)

// Waits between attempts at a consumer that refuses for now.
const (
	initialRetry = 50 * time.Millisecond
	maxRetry     = 5 * time.Second
)

// delivery moves events from the queue to the next consumer, in batches.
// Whatever becomes of an accepted event is counted here. All but push and
// abandon are one goroutine's.
//
// Invariant (TestOnlyDeliveredPointsLinkTheNext): what links the points of a
// series changes only with a batch that was delivered.
type delivery struct {
	next   consumer.Metrics
	report *receiverhelper.ObsReport
	queue  *queue
	ledger ledger
	log    *log

	timeout   time.Duration
	maxEvents int
	batch     batch

	mu sync.Mutex
	// hand is on its way to the consumer.
	hand []chunk
	// abandoned: Shutdown has counted hand and queue as dropped, and is over.
	abandoned bool
}

// push queues accepted events.
func (d *delivery) push(c chunk) { d.dropFull(d.queue.push(c)) }

// run delivers what waits each timeout, and at once when there is enough for a
// whole batch, until stop is closed. Then it delivers what is left, as long as
// ctx lasts, and counts the rest.
func (d *delivery) run(ctx context.Context, stop <-chan struct{}) {
	ticker := time.NewTicker(d.timeout)
	defer ticker.Stop()
	waits := newRetries()
	for refused := false; ; {
		tick, enough, least := ticker.C, d.queue.enough, 1
		var retry <-chan time.Time
		if refused {
			tick, enough, retry = nil, nil, time.After(waits.NextBackOff())
		} else {
			waits.Reset()
		}
		select {
		case <-stop:
			d.drain(ctx)
			return
		case <-enough:
			least = d.maxEvents
		case <-tick:
		case <-retry:
		}
		refused = !d.flush(ctx, stop, least)
	}
}

// flush delivers batches as long as that many events wait. It is false when the
// consumer refused for now.
func (d *delivery) flush(ctx context.Context, stop <-chan struct{}, least int) bool {
	for d.queue.waiting() >= least {
		select {
		case <-stop:
			return true
		default:
		}
		if !d.once(ctx) {
			return false
		}
	}
	return true
}

// drain delivers what is left while ctx lasts.
func (d *delivery) drain(ctx context.Context) {
	waits := newRetries()
	for ctx.Err() == nil && d.queue.waiting() > 0 {
		if d.once(ctx) {
			continue
		}
		select {
		case <-time.After(waits.NextBackOff()):
		case <-ctx.Done():
		}
	}
	d.abandon()
}

// once hands on one batch. It is false when the consumer refused for now: then
// the events are back in the queue.
func (d *delivery) once(ctx context.Context) bool {
	d.mu.Lock()
	d.hand = d.queue.take(d.maxEvents)
	hand := d.hand
	d.mu.Unlock()
	if len(hand) == 0 {
		return true
	}
	err := d.deliver(ctx, hand)

	d.mu.Lock()
	defer d.mu.Unlock()
	if d.abandoned {
		return false
	}
	d.hand = nil
	switch {
	case err == nil:
		settle(hand)
		d.ledger.deliver(count(hand))
		return true
	case consumererror.IsPermanent(err):
		d.drop(hand, droppedRefused)
		d.log.warn("pipeline", droppedRefused, "Events dropped: the next consumer refused them for good",
			zap.Int("events", count(hand)), zap.Error(err))
		return true
	default:
		d.log.warn("pipeline", "retry", "The next consumer refused events for now; trying again while the queue has room",
			zap.Int("events", count(hand)), zap.Error(err))
		d.dropFull(d.queue.restore(hand))
		return false
	}
}

// deliver makes a batch of events into metrics and hands them on.
func (d *delivery) deliver(ctx context.Context, hand []chunk) error {
	for _, c := range hand {
		for i := range c {
			d.batch.add(&c[i])
		}
	}
	metrics := d.batch.metrics(pcommon.NewTimestampFromTime(time.Now()))
	points := metrics.DataPointCount()
	ctx = d.report.StartMetricsOp(ctx)
	err := d.next.ConsumeMetrics(ctx, metrics)
	d.report.EndMetricsOp(ctx, transport, points, err)
	d.batch.end(err == nil)
	return err
}

// abandon counts all that is not delivered as dropped. A consumer that still
// holds the batch at hand may take it later, which then counts no more.
func (d *delivery) abandon() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.abandoned {
		return
	}
	d.abandoned = true
	left := append(d.hand, d.queue.take(math.MaxInt)...)
	if n := count(left); n > 0 {
		d.drop(left, droppedShutdown)
		d.log.warn("pipeline", droppedShutdown, "Events dropped: not delivered before the end of shutdown", zap.Int("events", n))
	}
}

// dropFull counts events for which the queue has no room.
func (d *delivery) dropFull(out []chunk) {
	if len(out) > 0 {
		d.drop(out, droppedQueueFull)
		d.log.warn("pipeline", droppedQueueFull, "Oldest events dropped: the pipeline is slower than the engines and the queue is full",
			zap.Int("events", count(out)))
	}
}

func (d *delivery) drop(chunks []chunk, reason string) {
	d.ledger.drop(reason, count(chunks))
	settle(chunks)
}

// settle tells the series that nothing more becomes of these events.
func settle(chunks []chunk) {
	for _, c := range chunks {
		for i := range c {
			c[i].series.waiting.Add(-1)
		}
	}
}

func newRetries() *backoff.ExponentialBackOff {
	waits := backoff.NewExponentialBackOff()
	waits.InitialInterval, waits.MaxInterval = initialRetry, maxRetry
	waits.Reset()
	return waits
}
