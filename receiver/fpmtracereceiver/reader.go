// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
	"github.com/otelcol-fpm/otelcol-fpm/internal/lograte"
	"github.com/otelcol-fpm/otelcol-fpm/internal/segment"
)

// maxRowBytes bounds a line.
const maxRowBytes = 16 << 20

// reader reads the files, in one goroutine.
type reader struct {
	config *Config
	logger *zap.Logger
	ledger ledger
	store  *store
	status *status
	stop   <-chan struct{}
	pipes  [signalCount]pipe // nil without a pipeline
	log    lograte.Limiter

	patterns []*pattern
	files    map[string]*file
	order    []*series
	// known are positions of an earlier run whose files were not seen yet.
	known    map[string]saved
	unstored unstored
	// refused are what patterns found and what is not read, and why.
	refused map[string]string
	// first: nothing was looked for yet.
	first bool

	members *segment.Reader
	lines   *segment.Lines
	rows    *fpm.RowReader
	ranks   *ranks
	batch   batch
	// over: the receiver was stopped while a consumer refused the batch. Who has
	// taken it must not get it again.
	over bool

	progress         progress
	followed, unread atomic.Int64
}

func newReader(config *Config, logger *zap.Logger, ledger ledger, store *store, status *status, stop <-chan struct{}) *reader {
	r := &reader{
		config: config, logger: logger, ledger: ledger, store: store, status: status, stop: stop,
		files: map[string]*file{}, first: true,
		members: segment.NewReader(), lines: segment.NewLines(maxRowBytes), rows: new(fpm.RowReader), ranks: newRanks(),
	}
	for _, text := range config.Include {
		r.patterns = append(r.patterns, newPattern(text, config.FollowSymlinks))
	}
	return r
}

// resume takes up what an earlier run has stored.
func (r *reader) resume(ctx context.Context) error {
	known, resumed, damaged, err := r.store.load(ctx)
	if err != nil {
		return err
	}
	r.known = known
	for _, path := range damaged {
		r.logger.Warn("The stored position of a file is damaged: it is read from its beginning", zap.String("file", path))
	}
	if resumed {
		r.first = false
		r.logger.Info("Positions of an earlier run are taken up; start_at does not apply", zap.Int("files", len(known)))
	}
	return nil
}

// run reads until the receiver is stopped or, in mode once, all is read; then
// done is true.
func (r *reader) run(ctx context.Context) (done bool) {
	once := r.config.Mode == modeOnce
	poll := time.NewTicker(r.config.PollInterval)
	defer poll.Stop()
	r.progress.begin(time.Now())
	for {
		r.scan(ctx, time.Now())
		more := true
		for since := time.Now(); more && !r.stopped() && (once || time.Since(since) < r.config.PollInterval); {
			more = r.pass(ctx)
		}
		if !r.flush(ctx) || r.stopped() {
			return false
		}
		if more {
			continue // it is time to look for new files, not to wait
		}
		r.progress.pause(r)
		if once {
			r.finish()
			return true
		}
		select {
		case <-poll.C:
		case <-r.stop:
			return false
		}
	}
}

func (r *reader) stopped() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// pass visits each series for one member. more is false when there is nothing to
// be read at this moment.
func (r *reader) pass(ctx context.Context) (more bool) {
	finished := r.config.Mode == modeOnce
	for _, s := range r.order {
		f, final := s.next(finished)
		if f == nil {
			continue
		}
		more = true
		if !r.visit(ctx, f, final, f != s.files[len(s.files)-1]) {
			return false
		}
	}
	r.count()
	return more
}

// count makes the numbers that telemetry shows.
func (r *reader) count() {
	followed, unread := int64(0), int64(0)
	for _, f := range r.files {
		if f.missing.IsZero() {
			followed++
			unread += f.unread()
		}
	}
	r.followed.Store(followed)
	r.unread.Store(unread)
}

// finish tells that mode once has come to its end.
func (r *reader) finish() {
	attributes := pcommon.NewMap()
	attributes.PutBool("fpm_trace.done", true)
	attributes.PutInt("fpm_trace.files", int64(len(r.files)))
	attributes.PutInt("fpm_trace.rows", r.progress.rows)
	attributes.PutInt("fpm_trace.rejected", r.progress.rejected)
	if len(r.files) == 0 {
		r.logger.Warn("Done: no file matches include", zap.Strings("include", r.config.Include))
	} else {
		r.logger.Info("Done: all files are read", r.progress.summary(r, time.Now())...)
	}
	r.status.done(attributes)
}

// warn logs at most one line a file, reason and ten seconds.
func (r *reader) warn(file, reason, text string, fields ...zap.Field) {
	show, hidden := r.log.Allow(lograte.Key{Source: file, Reason: reason}, time.Now())
	if !show {
		return
	}
	if hidden > 0 {
		fields = append(fields, zap.Int("not_shown", hidden))
	}
	r.logger.Warn(text, append(fields, zap.String("file", file), zap.String("reason", reason))...)
}
