// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"context"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// pipe makes rows into one signal's data and hands it on. It builds the data
// anew at every call: what a consumer refused may have been changed by it.
type pipe interface {
	deliver(ctx context.Context, rows []*entry) error
}

// scopes makes the resources and scopes of a batch.
type scopes struct {
	name, version string
}

func (s scopes) describe(resource pcommon.Resource, scope pcommon.InstrumentationScope, key workerKey) {
	attributes := resource.Attributes()
	attributes.EnsureCapacity(4)
	for _, attribute := range [...]struct{ key, value string }{
		{fpm.AttrServiceNamespace, key.Namespace},
		{fpm.AttrServiceName, key.Component},
		{fpm.AttrServiceInstanceID, key.ProducerID},
	} {
		if attribute.value != "" { // a service has a name or none
			attributes.PutStr(attribute.key, attribute.value)
		}
	}
	attributes.PutStr(fpm.AttrWorkerID, key.workerID)
	scope.SetName(s.name)
	scope.SetVersion(s.version)
}

// logsPipe turns rows into log records, one each, with the rows' own times.
type logsPipe struct {
	scopes
	next   consumer.Logs
	report *receiverhelper.ObsReport
	body   *fpm.BodyWriter
}

func (p *logsPipe) deliver(ctx context.Context, rows []*entry) error {
	ctx = p.report.StartLogsOp(ctx)
	err := p.next.ConsumeLogs(ctx, p.build(rows))
	p.report.EndLogsOp(ctx, format, len(rows), err)
	return err
}

func (p *logsPipe) build(rows []*entry) plog.Logs {
	logs := plog.NewLogs()
	made := make(map[workerKey]plog.ScopeLogs)
	var (
		scope plog.ScopeLogs
		of    *rank
	)
	for _, row := range rows {
		if of != row.rank {
			of = row.rank
			var ok bool
			if scope, ok = made[of.key.workerKey]; !ok {
				resource := logs.ResourceLogs().AppendEmpty()
				scope = resource.ScopeLogs().AppendEmpty()
				p.describe(resource.Resource(), scope.Scope(), of.key.workerKey)
				made[of.key.workerKey] = scope
			}
		}
		fpm.AppendRowLog(scope, p.body, &row.Row, row.own)
	}
	return logs
}

// metricsPipe turns rows into metrics.
//
// Invariant (TestOnlyDeliveredPointsLinkTheNext): the links of a rank change
// only with a batch that was delivered.
type metricsPipe struct {
	scopes
	next   consumer.Metrics
	report *receiverhelper.ObsReport
	form   *fpm.HistogramForm
	ledger *ledger

	// Of the batch at hand:
	touched    []*rank
	overflowed int
}

func (p *metricsPipe) deliver(ctx context.Context, rows []*entry) error {
	metrics := p.build(rows)
	points := metrics.DataPointCount()
	ctx = p.report.StartMetricsOp(ctx)
	err := p.next.ConsumeMetrics(ctx, metrics)
	p.report.EndMetricsOp(ctx, format, points, err)
	if err == nil {
		for _, r := range p.touched {
			r.links = r.next
		}
		p.ledger.overflowed(p.overflowed)
	}
	for _, r := range p.touched {
		r.touched = false
	}
	clear(p.touched)
	p.touched = p.touched[:0]
	return err
}

// build makes the metrics of a batch. It changes nothing that a failed attempt
// would have to put back.
func (p *metricsPipe) build(rows []*entry) pmetric.Metrics {
	p.overflowed = 0
	metrics := pmetric.NewMetrics()
	passes := make(map[workerKey]int)
	for _, row := range rows {
		passes[row.rank.key.workerKey]++
	}
	made := make(map[workerKey]*fpm.WorkerMetrics, len(passes))
	metrics.ResourceMetrics().EnsureCapacity(len(passes))
	latest := make(map[*rank]*entry) // without sampled rows
	var (
		worker *fpm.WorkerMetrics
		of     *rank
	)
	for _, row := range rows {
		if of != row.rank {
			of = row.rank
			if worker = made[of.key.workerKey]; worker == nil {
				resource := metrics.ResourceMetrics().AppendEmpty()
				scope := resource.ScopeMetrics().AppendEmpty()
				p.describe(resource.Resource(), scope.Scope(), of.key.workerKey)
				worker = fpm.NewWorkerMetrics(scope, p.form, passes[of.key.workerKey])
				made[of.key.workerKey] = worker
			}
		}
		pass := fpm.Pass{Record: &row.Record, Time: row.time, CounterStart: row.counterStart}
		if row.sampled() {
			worker.Sampled(pass)
			continue
		}
		p.overflowed += worker.Pass(pass, p.links(row))
		latest[of] = row
	}
	for _, r := range p.touched { // in order, for the same data at every attempt
		row := latest[r]
		made[r.key.workerKey].Lost(r.key.RankAttributes, row.lost, row.time)
	}
	return metrics
}

// links are those of the row's rank in this batch, which begin with what was
// delivered.
func (p *metricsPipe) links(row *entry) *fpm.Links {
	r := row.rank
	if !r.touched {
		r.touched = true
		r.next = r.links
		r.next.Began = row.began
		p.touched = append(p.touched, r)
	}
	return &r.next
}
