// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"context"
	"slices"

	"go.uber.org/zap"
)

// unstored is what could not be stored yet.
type unstored struct {
	// list: the list of files has changed. forgotten are those that are out of it.
	list      bool
	forgotten []string
	// files are those whose positions have changed.
	files []*file
}

// remember stores the list of files when it has changed, and what could not be
// stored before.
func (r *reader) remember(ctx context.Context, changed bool) {
	r.unstored.list = r.unstored.list || changed
	if r.store.client == nil || !r.unstored.list && len(r.unstored.files) == 0 {
		return
	}
	if r.unstored.list {
		paths := make([]string, 0, len(r.files)+len(r.known))
		for path := range r.files {
			paths = append(paths, path)
		}
		for path := range r.known { // not seen yet, because a directory cannot be searched
			paths = append(paths, path)
		}
		slices.Sort(paths)
		if !r.stored(r.store.list(ctx, paths, r.unstored.forgotten)) {
			return // a position must not be stored before its file is in the list
		}
		r.unstored.list, r.unstored.forgotten = false, nil
		r.unstored.files = slices.DeleteFunc(r.unstored.files, func(f *file) bool { return r.files[f.path] != f })
	}
	r.savePositions(ctx, nil)
}

// savePositions stores the positions of files, and of those that could not be
// stored before.
func (r *reader) savePositions(ctx context.Context, files []*file) {
	for _, f := range files {
		if !slices.Contains(r.unstored.files, f) {
			r.unstored.files = append(r.unstored.files, f)
		}
	}
	if r.unstored.list || !r.stored(r.store.save(ctx, r.unstored.files)) {
		return
	}
	clear(r.unstored.files)
	r.unstored.files = r.unstored.files[:0]
}

// stored tells whether something was stored.
func (r *reader) stored(err error) bool {
	if err != nil {
		r.warn("", "storage", errNoPositions.Error(), zap.Error(err))
	}
	r.status.set("storage", err)
	return err == nil
}
