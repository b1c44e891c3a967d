// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/otelcol-fpm/otelcol-fpm/internal/lograte"
	"github.com/otelcol-fpm/otelcol-fpm/internal/observation"
)

// reject counts a point that is not fit.
func (b *batch) reject(at place, r *observation.Rejection) {
	b.ledger.points[rejected]++
	b.ledger.rejections[r.Reason]++
	b.complain(at, string(r.Reason), "point rejected", zap.Error(r))
}

// restarted counts a folded series that began anew.
func (b *batch) restarted(at place, why observation.Restart) {
	b.ledger.restarts[why]++
	b.complain(at, string(why), "series begins anew")
}

// passUntracked counts a point of a series for which there is no room.
func (b *batch) passUntracked(at place, kind int) {
	b.ledger.points[passed]++
	b.ledger.untracked[kind]++
	b.complain(at, "max_series", "no room for a new series, its points go on as they come",
		zap.Int("max_series", b.p.cfg.MaxSeries))
}

// complain logs, seldom enough. Also for a batch that is refused later: what is wrong with a point does not depend on that.
func (b *batch) complain(at place, reason, message string, more ...zap.Field) {
	source := instance(at.resource.Resource())
	show, hidden := b.p.lines.Allow(lograte.Key{Source: source, Reason: reason}, time.Unix(0, 0).Add(b.now))
	if !show {
		return
	}
	b.p.logger.Warn(message, append(more,
		zap.String("reason", reason),
		zap.String("metric", at.metric.Name()),
		zap.String("instance", source),
		zap.Int("not_shown", hidden),
	)...)
}

// instance names a resource in a log line.
func instance(r pcommon.Resource) string {
	for _, name := range []string{"service.instance.id", "service.name"} {
		if v, ok := r.Attributes().Get(name); ok {
			return v.AsString()
		}
	}
	return ""
}
