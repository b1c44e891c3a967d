// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-fpm/otelcol-fpm/internal/observation"
	"github.com/otelcol-fpm/otelcol-fpm/processor/gaugededupprocessor/internal/metadata"
)

// decision is what happened to a point; every point that comes in gets exactly one.
type decision int

const (
	first      = decision(observation.First)
	changed    = decision(observation.Changed)
	refreshed  = decision(observation.Refreshed)
	suppressed = decision(observation.Suppressed)
	// foldedPoint: its observations are part of its series' outgoing point.
	foldedPoint decision = iota
	// thinned: a newer point of the same cumulative sum made it superfluous.
	thinned
	// passed: it went on as it came.
	passed
	// rejected: it was not fit; rejections say why.
	rejected
	// refused: the next consumer refused the batch.
	refused
	decisions
)

var decisionNames = [decisions]string{
	"first", "changed", "refreshed", "suppressed", "folded", "thinned", "passed", "rejected", "refused",
}

const (
	untrackedGauge = iota
	untrackedSum
	untrackedHistogram
	untrackedKinds
)

var untrackedNames = [untrackedKinds]string{"gauge", "sum", "histogram"}

// ledger counts what happened to the points of one batch.
type ledger struct {
	points     [decisions]int
	untracked  [untrackedKinds]int
	evictions  int
	rejections map[observation.Reason]int
	restarts   map[observation.Restart]int
}

func newLedger() ledger {
	return ledger{rejections: map[observation.Reason]int{}, restarts: map[observation.Restart]int{}}
}

func (l *ledger) reset() {
	clear(l.rejections)
	clear(l.restarts)
	*l = ledger{rejections: l.rejections, restarts: l.restarts}
}

// refuse makes the ledger that of a refused batch. Only what was evicted stays: that was due anyway.
func (l *ledger) refuse(points int) {
	evictions := l.evictions
	l.reset()
	l.evictions = evictions
	l.points[refused] = points
}

// record adds the ledger to the internal telemetry.
func (l *ledger) record(ctx context.Context, t *metadata.TelemetryBuilder) {
	for d, n := range l.points {
		if n > 0 {
			t.ProcessorGaugeDedupPoints.Add(ctx, int64(n), decisionOptions[d]...)
		}
	}
	for kind, n := range l.untracked {
		if n > 0 {
			t.ProcessorGaugeDedupUntracked.Add(ctx, int64(n), untrackedOptions[kind]...)
		}
	}
	if l.evictions > 0 {
		t.ProcessorGaugeDedupEvictions.Add(ctx, int64(l.evictions))
	}
	for reason, n := range l.rejections {
		t.ProcessorGaugeDedupRejections.Add(ctx, int64(n), rejectionOptions[reason]...)
	}
	for why, n := range l.restarts {
		t.ProcessorGaugeDedupRestarts.Add(ctx, int64(n), restartOptions[why]...)
	}
}

// The options are made once, so that counting allocates nothing.
var (
	decisionOptions  = options("decision", decisionNames[:])
	untrackedOptions = options("kind", untrackedNames[:])
	rejectionOptions = optionsByName("reason", observation.Reasons())
	restartOptions   = optionsByName("reason", observation.Restarts())
)

func options(key string, names []string) [][]metric.AddOption {
	all := make([][]metric.AddOption, len(names))
	for i, name := range names {
		all[i] = []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(attribute.String(key, name)))}
	}
	return all
}

func optionsByName[N ~string](key string, names []N) map[N][]metric.AddOption {
	all := map[N][]metric.AddOption{}
	for _, name := range names {
		all[name] = options(key, []string{string(name)})[0]
	}
	return all
}
