// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// Writer writes the segments of one id. It belongs to one goroutine.
//
// Invariants, each with a test of its name:
//   - A line never lies in two segments (TestLineNeverLiesInTwoSegments).
//   - A segment of more than one line holds at most RollBytes of text
//     (TestSegmentHoldsAtMostRollBytes).
//   - Nothing is ever appended behind a torn member
//     (TestNothingIsAppendedBehindATornMember).
type Writer struct {
	set   *Set
	name  string
	state *nameState

	file File
	// info identifies the file, path is where it should be.
	info  fs.FileInfo
	path  string
	index uint64
	// size is the end of the last good member, text what its members hold.
	size, text int64
	// written is the time of the last good member.
	written time.Time
}

// Report is what came of a call.
type Report struct {
	// Lines and Text (bytes) are what was written whole, File the bytes it took.
	Lines int
	Text  int64
	File  int64
	// Rolls counts segments closed because they were full, Pruned removed ones.
	Rolls  int
	Pruned int
	// Closed are segments that came to their end; the caller must Finish each.
	Closed []Closed
	// Troubles did not keep the lines from being written.
	Troubles []error
}

// Write appends whole lines, each ending in its only newline, as few members
// as the segments allow. After an error the report tells how many lines, from
// the first on, were written all the same; the rest may be written again:
// nothing of them is left in a file.
func (w *Writer) Write(compressor *Compressor, lines []byte, now time.Time) (Report, error) {
	var report Report
	for len(lines) > 0 {
		n := fit(lines, w.text, w.set.options.RollBytes)
		if n == 0 {
			report.Rolls++
			w.Seal(&report)
			continue
		}
		if err := w.member(compressor, lines[:n], now, &report); err != nil {
			return report, err
		}
		lines = lines[n:]
	}
	return report, nil
}

// fit is how many bytes of lines go into a segment that holds text bytes
// already: whole lines up to the limit, or a first line alone whatever its
// size. Zero asks for the next segment.
func fit(lines []byte, text, limit int64) int {
	if text+int64(len(lines)) <= limit {
		return len(lines)
	}
	if room := limit - text; room > 0 {
		if n := bytes.LastIndexByte(lines[:room], '\n') + 1; n > 0 {
			return n
		}
	}
	if text > 0 {
		return 0
	}
	return bytes.IndexByte(lines, '\n') + 1
}

// Name is the id's part of the file names.
func (w *Writer) Name() string { return w.name }

// Idle says since when nothing was written to an open segment; ok is false
// when none is open.
func (w *Writer) Idle() (since time.Time, ok bool) { return w.written, w.file != nil }

// member appends lines as one gzip member.
func (w *Writer) member(compressor *Compressor, lines []byte, now time.Time, report *Report) error {
	if w.file != nil {
		if err := w.checkPlace(); err != nil {
			report.Troubles = append(report.Troubles, err)
			w.abandon(report)
		}
	}
	if w.file == nil {
		if err := w.create(); err != nil {
			return err
		}
	}
	packed, err := compressor.member(lines)
	if err != nil {
		return err
	}
	n, err := w.file.Write(packed)
	if err == nil && n < len(packed) {
		err = io.ErrShortWrite
	}
	if err != nil {
		w.cutBack(report)
		return fmt.Errorf("write segment: %w", err)
	}
	if w.set.options.Sync == SyncFlush {
		err := w.file.Sync()
		if err == nil && w.size == 0 {
			err = w.set.fs.SyncDir(w.set.dir)
		}
		if err != nil {
			// What a failed sync has done to the file nobody knows.
			w.cutBack(report)
			w.abandon(report)
			return fmt.Errorf("sync segment: %w", err)
		}
	}
	first := w.size == 0
	w.size += int64(n)
	w.text += int64(len(lines))
	w.written = now
	w.set.mu.Lock()
	w.state.activeSize = w.size
	w.set.mu.Unlock()
	report.Lines += bytes.Count(lines, []byte{'\n'})
	report.Text += int64(len(lines))
	report.File += int64(n)
	if first {
		w.prune(report)
	}
	return nil
}

// create begins a segment under the next free index.
func (w *Writer) create() error {
	if err := w.set.Prepare(); err != nil {
		return err
	}
	for {
		index, err := w.nextIndex()
		if err != nil {
			return err
		}
		path := fileName(w.set.base, w.name, index)
		file, err := w.set.fs.Create(path)
		if errors.Is(err, fs.ErrNotExist) { // the directory went away
			if err = w.set.fs.MkdirAll(w.set.dir, w.set.options.DirectoryMode); err == nil {
				file, err = w.set.fs.Create(path)
			}
		}
		if errors.Is(err, fs.ErrExist) {
			w.takeIndex(index)
			continue
		}
		if err != nil {
			return explain(w.set.fs, err, w.set.dir)
		}
		info, err := file.Stat()
		if err != nil {
			return errors.Join(err, file.Close(), w.set.fs.Remove(path))
		}
		w.takeIndex(index)
		w.file, w.info, w.path, w.index = file, info, path, index
		w.size, w.text = 0, 0
		return nil
	}
}

func (w *Writer) nextIndex() (uint64, error) {
	w.set.mu.Lock()
	defer w.set.mu.Unlock()
	if w.state.exhausted {
		return 0, fmt.Errorf("no segment index left behind %s", fileName(w.set.base, w.name, 1<<64-1))
	}
	return w.state.next, nil
}

func (w *Writer) takeIndex(index uint64) {
	w.set.mu.Lock()
	defer w.set.mu.Unlock()
	w.state.take(index)
}

// Seal ends the active segment, if there is one; the next line begins another.
func (w *Writer) Seal(report *Report) {
	if w.file == nil {
		return
	}
	report.Closed = append(report.Closed, Closed{set: w.set, file: w.file, path: w.path})
	w.set.mu.Lock()
	w.state.closed = append(w.state.closed, closedFile{index: w.index, size: w.size, modified: w.written})
	w.state.activeSize = 0
	w.set.mu.Unlock()
	w.file = nil
	w.size, w.text = 0, 0
}

// Close ends the active segment and gives the name back.
func (w *Writer) Close() Report {
	var report Report
	w.Seal(&report)
	w.set.release(w.name)
	return report
}

// Closed is a segment that will not grow any more.
type Closed struct {
	set  *Set
	file File
	path string
}

// Path names the file.
func (c Closed) Path() string { return c.path }

// Finish syncs the file, if that is asked for, and closes it. It may take
// long, and may run in any goroutine.
func (c Closed) Finish() error {
	var err error
	if c.set.options.Sync != SyncNever {
		err = errors.Join(c.file.Sync(), c.set.fs.SyncDir(c.set.dir))
	}
	if err = errors.Join(err, c.file.Close()); err != nil {
		return fmt.Errorf("close segment %s: %w", c.path, err)
	}
	return nil
}
