// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"context"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// logsPipe turns messages into log records, one each. It has no state that a
// failed attempt would have to put back.
type logsPipe struct {
	receiver *fpmReceiver
	next     consumer.Logs
	report   *receiverhelper.ObsReport
	body     *fpm.BodyWriter
}

func newLogsPipe(r *fpmReceiver, next consumer.Logs, report *receiverhelper.ObsReport) *logsPipe {
	return &logsPipe{receiver: r, next: next, report: report, body: fpm.NewBodyWriter()}
}

// deliver implements pipe.
func (p *logsPipe) deliver(ctx context.Context, messages []*message) (held int, err error) {
	if len(messages) == 0 {
		return 0, nil
	}
	ctx = p.report.StartLogsOp(ctx)
	err = p.next.ConsumeLogs(ctx, p.build(messages))
	p.report.EndLogsOp(ctx, transport, len(messages), err)
	return 0, err
}

// finish implements pipe: a log record needs no end.
func (p *logsPipe) finish(context.Context) (held int, err error) { return 0, nil }

func (p *logsPipe) build(messages []*message) plog.Logs {
	logs := plog.NewLogs()
	scopes := make(map[*worker]plog.ScopeLogs)
	for _, m := range messages {
		scope, ok := scopes[m.worker]
		if !ok {
			resource := logs.ResourceLogs().AppendEmpty()
			m.worker.resource.CopyTo(resource.Resource())
			scope = resource.ScopeLogs().AppendEmpty()
			p.receiver.setScope(scope.Scope())
			scopes[m.worker] = scope
		}
		fpm.AppendLog(scope, p.body, &m.record, m.sequence, m.time)
	}
	return logs
}
