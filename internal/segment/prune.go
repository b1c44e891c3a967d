// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// prune keeps the newest segments of the writer's name, the active one
// counted. What someone else removed meanwhile does not count; what cannot be
// removed is tried again at the next segment.
func (w *Writer) prune(report *Report) {
	w.set.mu.Lock()
	closed := slices.Clone(w.state.closed)
	w.set.mu.Unlock()
	keep := w.set.options.MaxSegments - 1
	if len(closed) <= keep {
		return
	}
	old := len(closed)
	for ; old > 0 && keep > 0; old-- {
		index := closed[old-1].index
		if is, err := w.set.isSegment(w.name, index); is || err != nil {
			keep--
		} else {
			w.set.forget(w.name, index)
		}
	}
	for _, file := range closed[:old] {
		removed, err := w.set.remove(w.name, file.index)
		if removed {
			report.Pruned++
		}
		if err != nil {
			report.Troubles = append(report.Troubles, fmt.Errorf("prune: %w", err))
		}
	}
}

// isSegment says whether a closed segment still is a regular file.
func (s *Set) isSegment(name string, index uint64) (bool, error) {
	info, err := s.fs.Lstat(fileName(s.base, name, index))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.Mode().IsRegular(), err
}

// remove deletes a closed segment, and forgets it unless that fails. Folders
// and symbolic links are never removed.
func (s *Set) remove(name string, index uint64) (removed bool, err error) {
	is, err := s.isSegment(name, index)
	if is && err == nil {
		err = s.fs.Remove(fileName(s.base, name, index))
		removed = err == nil
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return false, explain(s.fs, err, s.dir)
	}
	s.forget(name, index)
	return removed, nil
}

// forget drops a closed segment from memory.
func (s *Set) forget(name string, index uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.names[name]
	if state == nil {
		return
	}
	i, found := slices.BinarySearchFunc(state.closed, index, func(file closedFile, index uint64) int {
		return cmp.Compare(file.index, index)
	})
	switch {
	case found && i == 0: // the usual case, and the cheap one
		state.closed = state.closed[1:]
	case found:
		state.closed = slices.Delete(state.closed, i, i+1)
	}
	s.drop(name)
}
