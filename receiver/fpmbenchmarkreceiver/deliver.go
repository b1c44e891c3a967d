// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/zap"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/load"
)

const (
	// firstRetry and maxRetry bound the wait after a consumer refused for now.
	firstRetry = time.Second
	maxRetry   = time.Minute
)

// attempt is how far the delivery of a run has come. A run that a consumer
// refused for now is read and built anew the next time; what was taken of it is
// not sent again, as long as its files are the same.
type attempt struct {
	files   []fs.FileInfo
	signals [signalCount]progress
	// next is when to try again.
	next  time.Time
	waits *backoff.ExponentialBackOff
}

// progress of one signal: how many batches are done with.
type progress struct {
	batches int
	refused bool // some of them for good
	done    bool
}

// signal is a kind of pipeline.
type signal int

const (
	signalMetrics signal = iota
	signalLogs
	signalCount
)

var signalNames = [...]string{"metrics", "logs"}

func (s signal) String() string { return signalNames[s] }

// errChanged: a file is not what it was when it was taken. The next scan sees
// to it.
var errChanged = errors.New("a file of the run changed or is gone")

// deliver reads a run and hands it on. When it cannot be finished the run stays
// and is tried again.
func (r *benchmarkReceiver) deliver(ctx context.Context, run *trackedRun) {
	members := run.members()
	checked, reference, err := r.check(run, members)
	if err != nil {
		r.logger.Debug("Benchmark run not delivered yet", zap.String("run_id", run.id), zap.Error(err))
		return
	}
	r.begin(run, members)
	now := time.Now()
	source := newSource(r, checked, reference, now)
	refusals := []error{
		r.send(ctx, run, signalMetrics, r.metrics != nil, func(from int) error { return r.sendMetrics(ctx, run, source, from) }),
		r.send(ctx, run, signalLogs, r.logs != nil, func(from int) error { return r.sendLogs(ctx, run, source, from) }),
	}
	for _, err := range refusals {
		if err != nil {
			run.attempt.next = time.Now().Add(run.attempt.waits.NextBackOff())
			return
		}
	}
	r.delivered.add(run.id, now)
	r.remember(ctx)
	r.tracker.done(run)
	result := resultOf(checked, run)
	r.ledger.run(result)
	r.logger.Info("Benchmark run delivered", zap.String("run_id", checked.ID), zap.String("outcome", string(result)),
		zap.String("status", checked.Status), zap.Int("points", len(checked.Points)), zap.Int("violations", len(checked.Violations)))
}

// remember stores which runs are done.
func (r *benchmarkReceiver) remember(ctx context.Context) {
	err := r.delivered.flush(context.WithoutCancel(ctx))
	if err == nil {
		r.status.set("storing", nil)
		return
	}
	r.status.set("storing", fmt.Errorf("storage: %w", err))
	r.warn("storage", "set", "Cannot store which runs were delivered; trying again, and after a restart they are delivered again",
		zap.Int("runs", len(r.delivered.unsaved)), zap.Error(err))
}

func resultOf(checked *benchmark.Run, run *trackedRun) runOutcome {
	switch {
	case run.attempt.signals[signalMetrics].refused || run.attempt.signals[signalLogs].refused:
		return runRefused
	case checked.Valid:
		return runValid
	case !run.complete():
		return runIncomplete
	default:
		return runInvalid
	}
}

// begin starts an attempt: a first one, or one more of the same files, or a
// first one again because a file was rewritten.
func (r *benchmarkReceiver) begin(run *trackedRun, members []*header) {
	files := make([]fs.FileInfo, len(members))
	for i, h := range members {
		files[i] = r.tracker.files[h.path].info
	}
	if run.attempt.waits != nil && slices.EqualFunc(run.attempt.files, files, sameVersion) {
		return
	}
	waits := backoff.NewExponentialBackOff()
	waits.InitialInterval, waits.MaxInterval = firstRetry, maxRetry
	waits.Reset()
	run.attempt = attempt{files: files, waits: waits}
}

// check reads the files of a run, one after the other. reference is the first.
func (r *benchmarkReceiver) check(run *trackedRun, members []*header) (*benchmark.Run, *benchmark.Artifact, error) {
	checker := benchmark.NewChecker()
	var reference *benchmark.Artifact
	for _, h := range members {
		a, err := r.load(run, h)
		if err != nil {
			return nil, nil, err
		}
		if h.kind == benchmark.Sidecar {
			if err := checker.AddSidecar(a); err != nil {
				return nil, nil, err
			}
			continue
		}
		checker.Add(a)
		if reference == nil {
			reference = a
		}
	}
	return checker.Finish(), reference, nil
}

// load reads a file again, which must be what it was.
func (r *benchmarkReceiver) load(run *trackedRun, h *header) (*benchmark.Artifact, error) {
	a, info, err := load.File(h.path, r.config.MaxFileBytes)
	if err != nil {
		return nil, errors.Join(errChanged, err)
	}
	if file := r.tracker.files[h.path]; file == nil || !sameVersion(file.info, info) || newHeader(a).run != run.id {
		return nil, fmt.Errorf("%w: %s", errChanged, h.path)
	}
	return a, nil
}

// send hands a signal's batches on, from the first that is not done with.
func (r *benchmarkReceiver) send(ctx context.Context, run *trackedRun, s signal, wanted bool, batches func(from int) error) error {
	state := &run.attempt.signals[s]
	if state.done || !wanted {
		return nil
	}
	err := batches(state.batches)
	if err == nil {
		state.done = true
		r.status.set(s.String(), nil)
		return nil
	}
	if !errors.Is(err, errChanged) && ctx.Err() == nil {
		r.status.set(s.String(), fmt.Errorf("the next consumer of %s refuses: %w", s, err))
		r.warn(s.String(), "retry", "The next consumer refused a benchmark run for now; trying again",
			zap.Stringer("signal", s), zap.String("run_id", run.id), zap.Error(err))
	}
	return err
}

// took judges the answer to one batch: nil for one that is done with.
func (r *benchmarkReceiver) took(run *trackedRun, s signal, err error) error {
	state := &run.attempt.signals[s]
	if err != nil && !consumererror.IsPermanent(err) {
		return err
	}
	state.batches++
	if err != nil {
		state.refused = true
		r.warn(s.String(), string(runRefused), "Part of a benchmark run dropped: the next consumer refused it for good",
			zap.Stringer("signal", s), zap.String("run_id", run.id), zap.Error(err))
	}
	return nil
}
