// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-fpm/otelcol-fpm/internal/lograte"
)

// log shows what is wrong with the input, at a bounded rate.
type log struct {
	logger *zap.Logger
	lines  lograte.Limiter
}

// warn logs at most one line a source, reason and ten seconds.
func (l *log) warn(source, reason, text string, fields ...zap.Field) {
	show, hidden := l.lines.Allow(lograte.Key{Source: source, Reason: reason}, time.Now())
	if !show {
		return
	}
	if hidden > 0 {
		fields = append(fields, zap.Int("not_shown", hidden))
	}
	l.logger.Warn(text, append(fields, zap.String("reason", reason))...)
}

// tally gathers what was rejected of one message, by reason. Only the latest
// rejection of each is kept for its line.
type tally [reasonCount]struct {
	events    int
	rejection *rejection
	metric    []byte
}

func (t *tally) add(r *rejection, e *event) {
	of := &t[r.reason]
	of.events++
	of.rejection, of.metric = r, e.metric
}
