// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package gaugededupprocessor

import (
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/otelcol-fpm/otelcol-fpm/internal/observation"
)

// complaint is the latest offender of a batch for one reason, and how many there were.
type complaint struct {
	reason   string
	message  string
	metric   string
	resource string
	error    error
	count    int
}

// complain notes an offender; of several with one reason the latest.
func (l *ledger) complain(at place, reason, message string, err *observation.Rejection) {
	c := complaint{reason: reason, message: message, metric: at.metric.Name(), resource: instance(at.resource.Resource())}
	if err != nil {
		c.error = err
	}
	for i := range l.complaints {
		if l.complaints[i].reason == reason {
			c.count = l.complaints[i].count
			c.count++
			l.complaints[i] = c
			return
		}
	}
	c.count = 1
	l.complaints = append(l.complaints, c)
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

// quiet is the time in which a reason is logged once.
const quiet = 10 * time.Second

// complaints writes log lines, at most one a reason and 10 s.
type complaints struct {
	logger *zap.Logger
	mu     sync.Mutex
	last   map[string]lastComplaint
}

type lastComplaint struct {
	at       time.Duration
	notShown int
}

func newComplaints(logger *zap.Logger) *complaints {
	return &complaints{logger: logger, last: map[string]lastComplaint{}}
}

// report logs the complaints of a batch at the monotonic time now.
func (c *complaints) report(now time.Duration, all []complaint) {
	if len(all) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range all {
		last, known := c.last[o.reason]
		if known && now-last.at < quiet {
			last.notShown += o.count
			c.last[o.reason] = last
			continue
		}
		c.logger.Warn(o.message,
			zap.String("reason", o.reason), zap.String("metric", o.metric), zap.String("instance", o.resource),
			zap.Int("not_shown", last.notShown+o.count-1), zap.Error(o.error))
		c.last[o.reason] = lastComplaint{at: now}
	}
}
