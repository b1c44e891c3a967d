// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/load"
)

// maxFiles bounds how many files are known at a time. The first by name are
// looked into, the others left out and counted.
const maxFiles = 65536

// rejectedLimit is the reason for files beyond maxFiles.
const rejectedLimit benchmark.Reason = "limit"

// scan looks into what is new or has changed.
func (r *benchmarkReceiver) scan(ctx context.Context, now time.Time) {
	paths := r.matches()
	present := make(map[string]bool, len(paths))
	for _, path := range paths {
		present[path] = true
		if ctx.Err() != nil {
			return
		}
		r.look(ctx, path, now)
	}
	// A merged file names its sidecar, which include need not match.
	for _, run := range r.tracker.runs {
		for _, path := range run.sidecarPaths() {
			if present[path] || r.followed[path] == "" && !exists(path) {
				continue
			}
			r.followed[path] = run.id
			present[path] = true
			r.look(ctx, path, now)
		}
	}
	for path, run := range r.followed {
		if r.tracker.runs[run] == nil {
			delete(r.followed, path)
		} else {
			present[path] = true
		}
	}
	r.lose(r.tracker.keep(present))
	for path := range r.unreadable {
		if !present[path] {
			r.readable(path)
		}
	}
	maps.DeleteFunc(r.unasked, func(path string, _ *trackedFile) bool { return !present[path] })
}

// readable ends the trouble that a file was.
func (r *benchmarkReceiver) readable(path string) {
	if r.unreadable[path] {
		delete(r.unreadable, path)
		r.status.set(path, nil)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// matches are the files that include names, sorted. Files that are being
// written end in .tmp.
func (r *benchmarkReceiver) matches() []string {
	var paths []string
	for _, pattern := range r.config.Include {
		found, err := filepath.Glob(pattern)
		if err != nil {
			continue // Validate has checked the pattern
		}
		paths = append(paths, found...)
	}
	paths = slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, ".tmp") })
	slices.Sort(paths)
	paths = slices.Compact(paths)
	beyond := max(0, len(paths)-r.maxFiles)
	if more := beyond - r.beyond; more > 0 {
		for range more {
			r.ledger.rejected(rejectedLimit)
		}
		r.warn("", string(rejectedLimit), "Files left out: there are too many",
			zap.Int("files", len(paths)), zap.Int("limit", r.maxFiles), zap.String("first_left_out", paths[r.maxFiles]))
	}
	r.beyond = beyond
	return paths[:len(paths)-beyond]
}

// look takes a file in when it is new or has changed.
func (r *benchmarkReceiver) look(ctx context.Context, path string, now time.Time) {
	info, err := os.Stat(path)
	if err == nil && r.tracker.known(path, info) {
		return
	}
	if waiting, ok := r.unasked[path]; ok && err == nil && sameVersion(waiting.info, info) {
		r.admit(ctx, waiting.header, info, now)
		return
	}
	a, read, err := load.File(path, r.config.MaxFileBytes)
	if read == nil {
		read = info
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), read == nil:
		return // gone since it was listed; keep forgets it
	case err != nil:
		r.reject(path, read, err)
		return
	}
	r.readable(path)
	if run := r.followed[path]; run != "" && (a.Kind != benchmark.Sidecar || a.RunID != run) {
		r.reject(path, read, strangeSidecar(a, run))
		return
	}
	r.admit(ctx, newHeader(a), read, now)
}

// admit adds an artifact to its run, unless that was delivered. When the storage
// cannot say, the artifact waits for the next scan, without being read again.
func (r *benchmarkReceiver) admit(ctx context.Context, h *header, info fs.FileInfo, now time.Time) {
	delivered, err := r.delivered.has(ctx, h.run)
	if err != nil {
		r.unasked[h.path] = &trackedFile{info: info, header: h}
		r.status.set("asking", fmt.Errorf("storage: %w", err))
		r.warn("storage", "get", "Cannot ask the storage whether a run was delivered; trying again", zap.Error(err))
		return
	}
	delete(r.unasked, h.path)
	r.status.set("asking", nil)
	if delivered {
		r.lose(r.tracker.ignore(h.path, info))
		r.ledger.file(fileIgnored)
		return
	}
	result, lost := r.tracker.take(h, info, now)
	r.lose(lost)
	r.ledger.file(result)
	r.logger.Debug("Benchmark artifact", zap.String("file", h.path), zap.String("outcome", string(result)),
		zap.Stringer("kind", h.kind), zap.String("run_id", h.run), zap.Int("dp_rank", h.rank))
}

func newHeader(a *benchmark.Artifact) *header {
	h := &header{path: a.File, kind: a.Kind, run: a.RunID, rank: a.Rank, size: a.Size}
	if a.Kind != benchmark.Sidecar {
		h.probe = a.ProbeState()
	}
	if a.Kind == benchmark.Merged {
		h.sidecars = load.SidecarPaths(a)
	}
	if h.run == "" {
		sum := sha256.Sum256(a.Root.JSON())
		h.run = "sha256:" + hex.EncodeToString(sum[:])
	}
	return h
}

// strangeSidecar is the error for a file that a merged file named as its
// sidecar.
func strangeSidecar(a *benchmark.Artifact, run string) error {
	if a.Kind != benchmark.Sidecar {
		return &benchmark.ReadError{Reason: benchmark.ReasonSchema, Field: "schema", Got: "a " + a.Kind.String() + " file", Want: "a sidecar"}
	}
	return &benchmark.ReadError{
		Reason: benchmark.ReasonSidecarRun, Field: "run_id", Got: fmt.Sprintf("%q", a.RunID), Want: fmt.Sprintf("%q", run),
	}
}

// reject counts a file that is no artifact, once a version.
func (r *benchmarkReceiver) reject(path string, info fs.FileInfo, err error) {
	reason := benchmark.ReasonUnreadable
	var wrong *benchmark.ReadError
	if errors.As(err, &wrong) {
		reason = wrong.Reason
	}
	if reason == benchmark.ReasonUnreadable {
		r.unreadable[path] = true
		r.status.set(path, fmt.Errorf("%s: %w", path, err))
	} else {
		r.readable(path)
	}
	first, lost := r.tracker.reject(path, info, reason == benchmark.ReasonUnreadable)
	r.lose(lost)
	if !first {
		return
	}
	r.ledger.file(fileRejected)
	r.ledger.rejected(reason)
	r.warn(path, string(reason), "Benchmark file rejected", zap.String("file", path), zap.Error(err))
}

// lose counts runs whose files went away, or became another run's, before they
// were delivered.
func (r *benchmarkReceiver) lose(runs []string) {
	for _, run := range runs {
		r.ledger.run(runLost)
		r.warn(run, string(runLost), "Benchmark run lost: its files are gone, and it was not delivered", zap.String("run_id", run))
	}
}
