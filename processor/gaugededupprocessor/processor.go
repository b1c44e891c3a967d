// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-fpm/otelcol-fpm/internal/lograte"
	"github.com/otelcol-fpm/otelcol-fpm/internal/observation"
	"github.com/otelcol-fpm/otelcol-fpm/processor/gaugededupprocessor/internal/metadata"
)

// gaugeDedup is the processor.
//
// Invariant LedgerBalances: the decisions counted for a batch add up to its points.
//
// Invariant RefusedNeverHappened: after a batch that the next consumer refused, folds are as before it, and gauges are
// as before it but for owing their next assignment.
type gaugeDedup struct {
	cfg     *Config
	refresh observation.Refresh
	include globs
	next    consumer.Metrics
	clock   func() time.Duration

	telemetry *metadata.TelemetryBuilder
	logger    *zap.Logger
	lines     lograte.Limiter
	batches   sync.Pool

	mu    sync.Mutex // guards the table, but not the states of its resources
	table *observation.Table[resource]
}

func newGaugeDedup(set processor.Settings, cfg *Config, next consumer.Metrics, clock func() time.Duration) (*gaugeDedup, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	p := &gaugeDedup{
		cfg:       cfg,
		refresh:   observation.Refresh{Interval: cfg.RefreshInterval, Tolerance: cfg.Tolerance},
		include:   cfg.Include.Metrics,
		next:      next,
		clock:     clock,
		telemetry: telemetry,
		logger:    set.Logger,
		table:     observation.NewTable[resource](cfg.MaxSeries, cfg.SeriesTTL),
	}
	p.batches.New = func() any { return newBatch(p) }
	return p, nil
}

// Start begins to report the number of series.
func (p *gaugeDedup) Start(context.Context, component.Host) error {
	return p.telemetry.RegisterProcessorGaugeDedupSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		o.Observe(int64(p.table.Series()))
		return nil
	})
}

// Shutdown ends what Start began. Nothing is held back, so nothing is left to be delivered.
func (p *gaugeDedup) Shutdown(context.Context) error {
	p.telemetry.Shutdown()
	return nil
}

// Capabilities says that the processor changes what it is given.
func (*gaugeDedup) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

// ConsumeMetrics judges the points of the batch and forwards what is left. The turns of the batch's resources are kept
// until the next consumer returns, so that points of one resource go on in the order in which they were judged.
func (p *gaugeDedup) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	points := md.DataPointCount()
	b := p.batches.Get().(*batch)
	defer p.recycle(b)

	if err := b.take(ctx, md); err != nil {
		b.ledger.refuse(points)
		b.ledger.record(ctx, p.telemetry)
		return err
	}
	defer b.leave()
	b.see(p.clock())

	b.walk(md)
	if md.ResourceMetrics().Len() > 0 {
		if err := p.next.ConsumeMetrics(ctx, md); err != nil {
			b.undo()
			b.ledger.refuse(points)
			b.ledger.record(ctx, p.telemetry)
			return err
		}
	}
	b.settle()
	b.ledger.record(ctx, p.telemetry)
	return nil
}

func (p *gaugeDedup) recycle(b *batch) {
	b.reset()
	p.batches.Put(b)
}
