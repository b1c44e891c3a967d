// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// Retention bounds all closed segments of a base path together, those of ids
// without a writer too.
type Retention struct {
	// MaxAge is how long ago a segment may have been written last; 0: no limit.
	MaxAge time.Duration
	// MaxTotalBytes bounds the files' sizes, active segments counted but never
	// removed; 0: no limit.
	MaxTotalBytes int64
}

// Retain removes closed segments, oldest first, until the limits are kept. It
// goes by what the set knows: the listing of its beginning and its own files.
func (s *Set) Retain(limits Retention, now time.Time) (removed int, err error) {
	if limits == (Retention{}) {
		return 0, nil
	}
	if err := s.Prepare(); err != nil {
		return 0, err
	}
	candidates, total := s.oldestFirst()
	var errs []error
	for _, file := range candidates {
		tooOld := limits.MaxAge > 0 && now.Sub(file.modified) > limits.MaxAge
		tooMuch := limits.MaxTotalBytes > 0 && total > limits.MaxTotalBytes
		if !tooOld && !tooMuch {
			continue
		}
		deleted, err := s.remove(file.name, file.index)
		if deleted {
			removed++
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		total -= file.size
	}
	return removed, errors.Join(errs...)
}

type candidate struct {
	closedFile
	name string
}

// oldestFirst lists the closed segments and adds up all sizes.
func (s *Set) oldestFirst() (files []candidate, total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, state := range s.names {
		total += state.activeSize
		for _, file := range state.closed {
			total += file.size
			files = append(files, candidate{closedFile: file, name: name})
		}
	}
	slices.SortFunc(files, func(a, b candidate) int {
		return cmp.Or(a.modified.Compare(b.modified), cmp.Compare(a.name, b.name), cmp.Compare(a.index, b.index))
	})
	return files, total
}
