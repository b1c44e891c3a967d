// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"cmp"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
)

// tracker knows which files are there and which runs they make. It has no I/O
// and no clock.
//
// Invariant: a run is due once. Whatever comes for it after done is ignored.
type tracker struct {
	settle, incompleteAfter time.Duration

	files map[string]*trackedFile
	runs  map[string]*trackedRun
}

func newTracker(settle, incompleteAfter time.Duration) *tracker {
	return &tracker{
		settle: settle, incompleteAfter: incompleteAfter,
		files: make(map[string]*trackedFile), runs: make(map[string]*trackedRun),
	}
}

// trackedFile is one version of a file.
type trackedFile struct {
	info fs.FileInfo
	// header is nil for what is no artifact, or of a run that is done.
	header *header
	// again: the file could not be read, and may be readable the next time
	// without having changed.
	again bool
}

// header is what is kept of an artifact.
type header struct {
	path string
	kind benchmark.Kind
	// run is the run's id; of a file without one a digest of its text.
	run        string
	rank, size int
	probe      benchmark.ProbeState
	// sidecars are where a merged file's sidecar may be.
	sidecars []string
}

// trackedRun is a run that is not done.
type trackedRun struct {
	id    string
	files []*header
	// first is when its first artifact came, changed when the last one did.
	first, changed time.Time
	attempt        attempt
}

// outcome is what becomes of a version of a file.
type outcome string

const (
	// fileTaken: it is part of a run.
	fileTaken outcome = "taken"
	// fileDuplicate: a copy; another file is of the same run and rank.
	fileDuplicate outcome = "duplicate"
	// fileIgnored: its run was delivered before.
	fileIgnored outcome = "ignored"
	// fileRejected: it is no artifact.
	fileRejected outcome = "rejected"
)

// known reports whether this version of a file was looked into.
func (t *tracker) known(path string, info fs.FileInfo) bool {
	file := t.files[path]
	return file != nil && !file.again && sameVersion(file.info, info)
}

// sameVersion reports whether a file was not written since.
func sameVersion(a, b fs.FileInfo) bool {
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}

// reject takes note of a version that is no artifact. first is false when it was
// rejected before. lost are runs that this left without a file.
func (t *tracker) reject(path string, info fs.FileInfo, again bool) (first bool, lost []string) {
	before := t.files[path]
	first = before == nil || !before.again || !sameVersion(before.info, info)
	lost = t.detach(path)
	t.files[path] = &trackedFile{info: info, again: again}
	return first, lost
}

// ignore takes note of a version whose run is done.
func (t *tracker) ignore(path string, info fs.FileInfo) (lost []string) {
	lost = t.detach(path)
	t.files[path] = &trackedFile{info: info}
	return lost
}

// take adds a version to its run.
func (t *tracker) take(h *header, info fs.FileInfo, now time.Time) (result outcome, lost []string) {
	run := t.runs[h.run]
	if run == nil {
		run = &trackedRun{id: h.run}
		t.runs[h.run] = run
	}
	// A new version of a file stays in its run, which must not look lost.
	if before := t.files[h.path]; before != nil && before.header != nil && before.header.run == h.run {
		run.remove(before.header)
	} else {
		lost = t.detach(h.path)
	}
	t.files[h.path] = &trackedFile{info: info, header: h}
	run.files = append(run.files, h)
	slices.SortFunc(run.files, func(a, b *header) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.rank, b.rank), cmp.Compare(a.path, b.path))
	})
	if !slices.Contains(run.members(), h) {
		return fileDuplicate, lost
	}
	if h.kind != benchmark.Sidecar {
		if run.first.IsZero() {
			run.first = now
		}
		run.changed = now
	}
	return fileTaken, lost
}

// keep forgets the files that are not among present. lost are the runs that have
// no file left.
func (t *tracker) keep(present map[string]bool) (lost []string) {
	for path := range t.files {
		if !present[path] {
			lost = append(lost, t.detach(path)...)
			delete(t.files, path)
		}
	}
	return lost
}

// detach takes a file out of its run.
func (t *tracker) detach(path string) (lost []string) {
	file := t.files[path]
	if file == nil || file.header == nil {
		return nil
	}
	run := t.runs[file.header.run]
	if run == nil {
		return nil
	}
	run.remove(file.header)
	if !slices.ContainsFunc(run.files, isArtifact) {
		if isArtifact(file.header) {
			lost = []string{run.id}
		}
		if len(run.files) == 0 {
			delete(t.runs, run.id)
		}
		run.first = time.Time{}
	}
	return lost
}

func isArtifact(h *header) bool { return h.kind != benchmark.Sidecar }

// done ends a run: it is delivered or given up. Its files stay known.
func (t *tracker) done(run *trackedRun) {
	for _, h := range run.files {
		if file := t.files[h.path]; file != nil {
			file.header = nil
		}
	}
	delete(t.runs, run.id)
}

// due are the runs that are to be delivered now, the oldest first.
func (t *tracker) due(now time.Time) []*trackedRun {
	var due []*trackedRun
	for _, run := range t.runs {
		if at, ok := t.dueAt(run); ok && !now.Before(at) && !now.Before(run.attempt.next) {
			due = append(due, run)
		}
	}
	slices.SortFunc(due, func(a, b *trackedRun) int {
		return cmp.Or(a.first.Compare(b.first), cmp.Compare(a.id, b.id))
	})
	return due
}

// dueAt is when a run is to be delivered as it is; ok is false for one that has
// only a sidecar.
func (t *tracker) dueAt(run *trackedRun) (at time.Time, ok bool) {
	if run.first.IsZero() {
		return time.Time{}, false
	}
	if !run.complete() {
		return run.first.Add(t.incompleteAfter), true
	}
	if !run.awaitsSidecar() {
		return run.changed, true
	}
	return run.changed.Add(t.settle), true
}

func (r *trackedRun) remove(h *header) {
	r.files = slices.DeleteFunc(r.files, func(other *header) bool { return other == h })
}

// members are the files that make the run, in the order that a Checker wants: of
// copies the first by path.
func (r *trackedRun) members() []*header {
	var members []*header
	for _, h := range r.files {
		last := len(members) - 1
		if last >= 0 && members[last].kind == h.kind && members[last].rank == h.rank &&
			(h.rank != benchmark.NoRank || h.kind == benchmark.Sidecar) {
			continue
		}
		members = append(members, h)
	}
	return members
}

// complete reports whether there is a merged file, or a file of every rank.
func (r *trackedRun) complete() bool {
	size := 0
	ranks := make(map[int]bool)
	for _, h := range r.files {
		switch h.kind {
		case benchmark.Merged:
			return true
		case benchmark.Rank:
			size = max(size, h.size)
			ranks[h.rank] = true
		}
	}
	delete(ranks, benchmark.NoRank)
	return size > 0 && len(ranks) >= size
}

// awaitsSidecar reports whether a sidecar may still come: it is not there, and
// either the merged file has an engine block that nobody answered for, or the
// merged file itself is still to come.
func (r *trackedRun) awaitsSidecar() bool {
	merged, pending := false, false
	for _, h := range r.files {
		switch h.kind {
		case benchmark.Sidecar:
			return false
		case benchmark.Merged:
			merged = true
			pending = pending || h.probe == benchmark.ProbePending
		}
	}
	return pending || !merged
}

// sidecarPaths are where the sidecar of a run may be that is still to come.
func (r *trackedRun) sidecarPaths() []string {
	if !r.awaitsSidecar() {
		return nil
	}
	var paths []string
	for _, h := range r.files {
		paths = append(paths, h.sidecars...)
	}
	return paths
}
