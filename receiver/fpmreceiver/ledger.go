// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"context"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-fpm/otelcol-fpm/receiver/fpmreceiver/internal/metadata"
)

// ledger accounts for every message in the receiver's own telemetry.
//
// Invariant (asserted at the end of every behaviour test): once input has ended
// and all is quiet, and after Shutdown, for each signal that has a pipeline,
//
//	read = accepted + duplicate + rejected
//	accepted = delivered(signal) + dropped(signal, all reasons)
//
// Oversize stands apart: it closes a connection before a message is read.
//
// Invariant (TestAcceptedIsCountedFirst): no message counts as delivered or dropped
// before it counts as accepted.
type ledger struct {
	counters *metadata.TelemetryBuilder
	// uncounted are accepted messages that the counter gets when somebody looks, or
	// when one is delivered or dropped: adding each costs a third of decoding it.
	uncounted atomic.Int64
	counting  sync.Mutex
}

// Reasons beside those of the decoder.
const (
	// rejectedOversize: a peer announced a message over the limit.
	rejectedOversize = "oversize"
	// rejectedRankLimit: a rank beyond max_ranks.
	rejectedRankLimit = "rank_limit"

	// droppedQueueFull: the pipeline was too slow; the oldest messages go.
	droppedQueueFull = "queue_full"
	// droppedRefused: the next consumer refused for good.
	droppedRefused = "refused"
	// droppedShutdown: not delivered before the end of Shutdown.
	droppedShutdown = "shutdown"
)

// signal is a kind of pipeline.
type signal int

const (
	signalMetrics signal = iota
	signalLogs
	signalCount
)

var signalNames = [...]string{"metrics", "logs"}

func (s signal) String() string { return signalNames[s] }

// labels are a counter's attributes, made once: a message must not cost an
// allocation here.
type labels []metric.AddOption

func withLabels(attributes ...attribute.KeyValue) labels {
	return labels{metric.WithAttributeSet(attribute.NewSet(attributes...))}
}

var (
	outcomeAccepted  = withLabels(attribute.String("outcome", "accepted"))
	outcomeDuplicate = withLabels(attribute.String("outcome", "duplicate"))
	outcomeRejected  = withLabels(attribute.String("outcome", "rejected"))

	ofSignal = [...]labels{
		withLabels(attribute.String("signal", signalMetrics.String())),
		withLabels(attribute.String("signal", signalLogs.String())),
	}
)

// begin makes the series that every receiver has visible before they count.
func (l *ledger) begin() {
	ctx := context.Background()
	for _, outcome := range []labels{outcomeAccepted, outcomeDuplicate, outcomeRejected} {
		l.counters.ReceiverFpmMessages.Add(ctx, 0, outcome...)
	}
	for _, counter := range []metric.Int64Counter{
		l.counters.ReceiverFpmLost, l.counters.ReceiverFpmOverflow,
		l.counters.ReceiverFpmRestarts, l.counters.ReceiverFpmSequenceMismatch,
	} {
		counter.Add(ctx, 0)
	}
}

// accepted counts a message that goes to the pipelines, and what its counter
// says of messages before it.
func (l *ledger) accepted(s step, sequenceMismatch bool) {
	l.uncounted.Add(1)
	ctx := context.Background()
	if s.lost > 0 {
		l.counters.ReceiverFpmLost.Add(ctx, s.lost)
	}
	if s.restart {
		l.counters.ReceiverFpmRestarts.Add(ctx, 1)
	}
	if sequenceMismatch {
		l.counters.ReceiverFpmSequenceMismatch.Add(ctx, 1)
	}
}

// count brings the counter of accepted messages up to date. It returns when that is
// done, also where another goroutine does it.
func (l *ledger) count() {
	l.counting.Lock()
	defer l.counting.Unlock()
	if n := l.uncounted.Swap(0); n > 0 {
		l.counters.ReceiverFpmMessages.Add(context.Background(), n, outcomeAccepted...)
	}
}

func (l *ledger) duplicate() {
	l.counters.ReceiverFpmMessages.Add(context.Background(), 1, outcomeDuplicate...)
}

func (l *ledger) rejected(reason string) {
	ctx := context.Background()
	if reason != rejectedOversize {
		l.counters.ReceiverFpmMessages.Add(ctx, 1, outcomeRejected...)
	}
	l.counters.ReceiverFpmRejected.Add(ctx, 1, withLabels(attribute.String("reason", reason))...)
}

func (l *ledger) delivered(s signal, messages int) {
	l.count()
	l.counters.ReceiverFpmDelivered.Add(context.Background(), int64(messages), ofSignal[s]...)
}

func (l *ledger) dropped(s signal, reason string, messages int) {
	l.count()
	l.counters.ReceiverFpmDropped.Add(context.Background(), int64(messages),
		withLabels(attribute.String("signal", s.String()), attribute.String("reason", reason))...)
}

func (l *ledger) overflowed(observations int) {
	if observations > 0 {
		l.counters.ReceiverFpmOverflow.Add(context.Background(), int64(observations))
	}
}
