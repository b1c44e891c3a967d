// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// headSize is how many bytes at the beginning of a file tell it from another
// one of the same name: the header and the first rows, compressed.
const headSize = 512

// settleSize is how many bytes may be incomplete before a file that still grows
// is let alone until it does not: it is being copied.
const settleSize = 4 << 20

// head identifies a file by the first Size of its bytes, which never change.
type head struct {
	Size int64  `json:"size"`
	Hash string `json:"hash"`
}

func headOf(file io.ReaderAt, size int64) (head, error) {
	text := make([]byte, min(size, headSize))
	n, err := file.ReadAt(text, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return head{}, err
	}
	sum := sha256.Sum256(text[:n])
	return head{Size: int64(n), Hash: hex.EncodeToString(sum[:8])}, nil
}

// end is why reading stopped in front of a file's end.
type end int

const (
	// endNone: it did not.
	endNone end = iota
	// endCut: a gzip member is incomplete.
	endCut
	// endBegun: the last line has no newline.
	endBegun
	// endLeft: a gzip member is incomplete, and is left to a later run.
	endLeft
)

// file is a file that is followed.
type file struct {
	// path is that of the file itself, not of a link to it; base is the directory
	// that it must lie in.
	path, base string
	// index is its number in its series.
	index uint64

	head head
	// cursor is what was read of it, taken what became of that.
	cursor position
	taken  positions
	// lines is the number of lines in front of the member at the cursor; -1 when
	// it is not known.
	lines int64

	size int64
	info fs.FileInfo
	// grew: the last look found another size than the one before.
	grew bool
	// end is what was found at the size endAt; still, that a look since then
	// found the same size.
	end   end
	endAt int64
	still bool
	// suspect: it may be another file under the same name.
	suspect bool
	// missing is since when there is no such file; unreadable that it could not
	// be read at the last attempt.
	missing    time.Time
	unreadable bool
}

// unread is the number of bytes behind the cursor.
func (f *file) unread() int64 { return max(0, f.size-f.cursor.Offset) }

// open reports that there is something to be read, now or later.
func (f *file) open() bool {
	if !f.missing.IsZero() || f.unreadable {
		return false
	}
	return f.suspect || f.unread() > 0 && !(f.end == endLeft && f.size == f.endAt)
}

// readable reports that there is something to be read that was not tried in
// vain already.
func (f *file) readable() bool {
	return f.open() && (f.suspect || f.end == endNone || f.size != f.endAt && !(f.grew && f.unread() > settleSize))
}

// endsIn takes note of an end that is incomplete.
func (f *file) endsIn(e end) { f.end, f.endAt, f.still = e, f.size, false }

// look takes note of what a scan saw of the file.
func (f *file) look(info fs.FileInfo) {
	f.grew = info.Size() != f.size
	f.still = !f.grew
	f.suspect = info.Size() < f.cursor.Offset || f.info != nil && !os.SameFile(f.info, info)
	f.size, f.info = info.Size(), info
	f.missing, f.unreadable = time.Time{}, false
}

// restart forgets all that was known of the content: it is another file.
func (f *file) restart() {
	f.head, f.cursor, f.taken, f.lines, f.end = head{}, position{}, positions{}, 0, endNone
}

// moveTo moves the cursor to the beginning of a member.
func (f *file) moveTo(offset int64) {
	f.cursor = position{Offset: offset}
	f.end = endNone
}

// series are the files of one writer, in order.
type series struct {
	name  string
	files []*file
}

// next is the file to be read next, and whether what is incomplete at its end
// has to be taken as it is: because nobody writes any more (finished), or because
// it has not grown and somebody writes into a later file.
//
// A file is not read before those in front of it are read to their end, so that
// order is kept, but for those that cannot be opened: they must not hold up the
// ones behind them.
func (s *series) next(finished bool) (f *file, final bool) {
	for i, f := range s.files {
		followed := i < len(s.files)-1
		switch {
		case f.readable():
			return f, finished
		case !f.open():
		case f.size == f.endAt && f.still && (followed || f.end == endBegun):
			return f, true
		case followed:
			return nil, false
		}
	}
	return nil, false
}
