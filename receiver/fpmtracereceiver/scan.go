// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-fpm/otelcol-fpm/internal/segment"
)

const (
	// maxFiles bounds how many files are followed.
	maxFiles = 65536
	// forgetAfter is how long a file that is gone is remembered: it may be back
	// when its volume is mounted again.
	forgetAfter = time.Hour
)

// scan looks for files: new ones, grown ones, and such as are gone.
func (r *reader) scan(ctx context.Context, now time.Time) {
	seen := make(map[string]match)
	refusals := make(map[string]string)
	complete := true
	for _, pattern := range r.patterns {
		matches, refused, err := pattern.find()
		if err != nil {
			complete = false
			r.warn(pattern.base, "directory", "Files cannot be looked for", zap.String("include", pattern.text), zap.Error(err))
		}
		r.status.set("include "+pattern.text, err)
		for _, one := range refused {
			refusals[one.path] = one.err.Error()
			if r.refused[one.path] != one.err.Error() { // told already, at an earlier poll
				r.warn(one.path, "refused", "Not a file that is read", zap.Error(one.err))
			}
		}
		for _, found := range matches {
			if _, already := seen[found.path]; !already {
				seen[found.path] = found
			}
		}
	}
	r.refused = refusals
	changed := r.meet(seen)
	if complete {
		changed = r.miss(seen, now) || changed
	}
	if changed {
		r.arrange()
	}
	r.first = false
	r.count()
	r.remember(ctx, changed)
}

// meet takes note of the files that are there. changed reports new ones.
func (r *reader) meet(seen map[string]match) (changed bool) {
	surplus := 0
	for path, found := range seen {
		f := r.files[path]
		switch {
		case f != nil && !f.missing.IsZero():
			changed = true
		case f == nil && len(r.files) >= maxFiles:
			surplus++
			continue
		case f == nil:
			f = r.newFile(found)
			changed = true
		}
		f.look(found.info)
	}
	if surplus > 0 {
		r.warn(r.patterns[0].base, "file_limit", "More files than can be followed: some are not read",
			zap.Int("limit", maxFiles), zap.Int("not_read", surplus))
	}
	return changed
}

func (r *reader) newFile(found match) *file {
	f := &file{path: found.path, base: found.base}
	r.files[found.path] = f
	if entry, known := r.known[found.path]; known {
		delete(r.known, found.path)
		f.resume(entry)
	} else if r.first && r.config.StartAt == startEnd {
		f.moveTo(found.info.Size())
		f.lines = -1
		r.batch.touch(f)
	}
	return f
}

// miss takes note of the files that are gone, and forgets those that have been
// for long. changed reports that some are not to be read any more.
func (r *reader) miss(seen map[string]match, now time.Time) (changed bool) {
	for path := range r.known { // of an earlier run, and not there
		if _, there := seen[path]; !there {
			delete(r.known, path)
			r.files[path] = &file{path: path, missing: now}
		}
	}
	for path, f := range r.files {
		if _, there := seen[path]; there {
			continue
		}
		if f.missing.IsZero() {
			f.missing = now
			r.status.set("file "+path, nil)
			r.lose(f, "A file is gone before it was read to its end")
			changed = true
		}
		if now.Sub(f.missing) >= forgetAfter {
			delete(r.files, path)
			r.unstored.forgotten = append(r.unstored.forgotten, path)
			changed = true
		}
	}
	return changed
}

// lose counts what nobody will read any more.
func (r *reader) lose(f *file, text string) {
	if unread := f.unread(); unread > 0 {
		r.ledger.skipped(skippedRemoved, unread)
		r.warn(f.path, skippedRemoved, text, zap.Int64("unread_bytes", unread))
	}
	f.size = f.cursor.Offset
}

// arrange puts the files in order: by series and index within it. Files that no
// writer has named stand alone.
func (r *reader) arrange() {
	byName := make(map[string]*series)
	r.order = r.order[:0]
	for _, f := range r.files {
		if !f.missing.IsZero() {
			continue
		}
		name, index, ok := segment.Series(f.path)
		if !ok {
			name = f.path
		}
		f.index = index
		s := byName[name]
		if s == nil {
			s = &series{name: name}
			byName[name] = s
			r.order = append(r.order, s)
		}
		s.files = append(s.files, f)
	}
	for _, s := range r.order {
		slices.SortFunc(s.files, func(a, b *file) int { return cmp.Compare(a.index, b.index) })
	}
	slices.SortFunc(r.order, func(a, b *series) int { return cmp.Compare(a.name, b.name) })
}
