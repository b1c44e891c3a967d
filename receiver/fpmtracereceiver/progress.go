// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"time"

	"go.uber.org/zap"
)

// progressInterval is how often a long read is told of.
const progressInterval = 30 * time.Second

// progress is what is told of a read that takes long.
type progress struct {
	began, told time.Time
	// rows, rejected and bytes (compressed) are those of all files since the
	// beginning.
	rows, rejected, bytes int64
}

func (p *progress) begin(now time.Time) { p.began, p.told = now, now }

// settled takes note of a batch.
func (p *progress) settled(t *tally, r *reader) {
	p.rows += int64(t.rows())
	p.rejected += int64(t.lines() - t.rows())
	if now := time.Now(); now.Sub(p.told) >= progressInterval {
		p.told = now
		r.count()
		r.logger.Info("Reading traces", append(p.summary(r, now), zap.Int64("unread_bytes", r.unread.Load()))...)
	}
}

// pause is called when all is read for now: what follows is not a long read.
func (p *progress) pause(r *reader) {
	r.count()
	p.told = time.Now()
}

func (p *progress) summary(r *reader, now time.Time) []zap.Field {
	return []zap.Field{
		zap.Int("files", len(r.files)),
		zap.Int64("rows", p.rows),
		zap.Int64("rejected", p.rejected),
		zap.Int64("read_bytes", p.bytes),
		zap.Duration("elapsed", now.Sub(p.began).Round(time.Millisecond)),
	}
}
