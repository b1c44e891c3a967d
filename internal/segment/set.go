// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Options say how segments are written.
type Options struct {
	// Path is the configured path; see Base.
	Path string
	// RollBytes bounds the text in a segment of more than one line, in bytes
	// before compression.
	RollBytes int64
	// MaxSegments is how many segments of one id stay, the active one counted.
	MaxSegments int
	// DirectoryMode is for directories that have to be made.
	DirectoryMode fs.FileMode
	// Sync says when files are synced to the disk.
	Sync Sync
	// FS is the file system; nil is the operating system's.
	FS FS
}

// Sync says when a segment is synced to the disk.
type Sync int

// The times of a sync.
const (
	// SyncNever leaves it to the operating system.
	SyncNever Sync = iota
	// SyncRoll syncs closed segments, in Closed.Finish.
	SyncRoll
	// SyncFlush also syncs after each flush, before its lines count as written.
	SyncFlush
)

// Set is all segments of one base path. It is safe for concurrent use.
//
// No two writers have the same name (TestWritersNeverShareAName): they would
// remove each other's files.
//
// The directory is listed once (TestRollIgnoresForeignFiles): after that the
// set knows its own files by heart, and the cost of a roll does not depend on
// what else lies in the directory.
type Set struct {
	options Options
	fs      FS
	base    string
	dir     string

	// preparing keeps slow directory work out of mu.
	preparing sync.Mutex
	prepared  bool

	mu    sync.Mutex
	names map[string]*nameState
}

// nameState is what the set knows of the segments of one name.
type nameState struct {
	// owner has the name while a writer is open.
	owned bool
	owner string
	// next is the index of the next segment; exhausted when there is none.
	next      uint64
	exhausted bool
	// foreign says that something else than a segment took an index.
	foreign bool
	// closed are regular files by rising index.
	closed []closedFile
	// activeSize is the size of the segment being written.
	activeSize int64
}

type closedFile struct {
	index    uint64
	size     int64
	modified time.Time
}

// NewSet makes a set. It touches no file.
func NewSet(options Options) *Set {
	s := &Set{options: options, fs: options.FS, base: Base(options.Path), names: map[string]*nameState{}}
	if s.fs == nil {
		s.fs = OS{}
	}
	s.dir = filepath.Dir(s.base)
	return s
}

// Prepare makes the directory, tries whether files can be made in it, and
// lists it. Once it has succeeded it does nothing more. Writers call it
// themselves; calling it early tells early.
func (s *Set) Prepare() error {
	s.preparing.Lock()
	defer s.preparing.Unlock()
	if s.prepared {
		return nil
	}
	if err := s.fs.MkdirAll(s.dir, s.options.DirectoryMode); err != nil {
		return explain(s.fs, err, s.dir)
	}
	if err := s.probe(); err != nil {
		return explain(s.fs, err, s.dir)
	}
	found := map[string]*nameState{}
	if err := s.fs.List(s.dir, func(entry fs.DirEntry) { scan(found, filepath.Base(s.base), entry) }); err != nil {
		return explain(s.fs, err, s.dir)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, state := range found {
		slices.SortFunc(state.closed, func(a, b closedFile) int { return cmp.Compare(a.index, b.index) })
		known := s.name(name)
		known.next, known.exhausted, known.foreign, known.closed = state.next, state.exhausted, state.foreign, state.closed
	}
	s.prepared = true
	return nil
}

// probe makes and removes an empty file.
func (s *Set) probe() error {
	name := filepath.Join(s.dir, fmt.Sprintf(".%s.write-probe-%d", filepath.Base(s.base), os.Getpid()))
	file, err := s.fs.Create(name)
	if errors.Is(err, fs.ErrExist) { // left by a process that was killed
		if err = s.fs.Remove(name); err == nil {
			file, err = s.fs.Create(name)
		}
	}
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), s.fs.Remove(name))
}

// scan takes note of one directory entry. Whatever has a segment's name takes
// its index; only regular files are segments.
func scan(found map[string]*nameState, baseName string, entry fs.DirEntry) {
	name, index, ok := parseName(baseName, entry.Name())
	if !ok {
		return
	}
	state := found[name]
	if state == nil {
		state = &nameState{}
		found[name] = state
	}
	state.take(index)
	if !entry.Type().IsRegular() {
		state.foreign = true
		return
	}
	if info, err := entry.Info(); err == nil {
		state.closed = append(state.closed, closedFile{index: index, size: info.Size(), modified: info.ModTime()})
	}
}

// take marks an index as used.
func (n *nameState) take(index uint64) {
	switch {
	case index == math.MaxUint64:
		n.exhausted = true
	case index >= n.next:
		n.next = index + 1
	}
}

// name returns the state of a name; mu must be held.
func (s *Set) name(name string) *nameState {
	state := s.names[name]
	if state == nil {
		state = &nameState{}
		s.names[name] = state
	}
	return state
}

// Open gives an id a writer. When another id's writer has the same sanitized
// name, alike is that other id and the new writer's name carries a hash. No
// file is touched. The caller opens one writer an id, and closes it.
func (s *Set) Open(id string) (writer *Writer, alike string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := nameFor(s.base, id)
	for digits := hashDigits; s.name(name).owned; digits = min(2*digits, 64) {
		if alike == "" {
			alike = s.names[name].owner
		}
		name = hashed(s.base, id, digits)
	}
	state := s.name(name)
	state.owned, state.owner = true, id
	return &Writer{set: s, name: name, state: state}, alike
}

// release takes a name back.
func (s *Set) release(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.names[name]
	state.owned, state.owner = false, ""
	s.drop(name)
}

// drop forgets a name that left nothing on disk, so that the set does not grow
// with the ids that came and went; mu must be held.
func (s *Set) drop(name string) {
	state := s.names[name]
	if state != nil && !state.owned && !state.foreign && !state.exhausted && len(state.closed) == 0 {
		delete(s.names, name)
	}
}
