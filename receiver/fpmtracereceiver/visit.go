// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-fpm/otelcol-fpm/internal/segment"
)

// visit reads one member of a file, and further ones when its last line goes on
// in them. final takes what is incomplete at the end as it is; followed says that
// the series has a later file. It is false when the receiver is stopped.
func (r *reader) visit(ctx context.Context, f *file, final, followed bool) bool {
	opened, err := openFile(f.path, f.base, r.config.FollowSymlinks)
	if err != nil {
		r.unreadable(f, err)
		return true
	}
	defer opened.Close()
	if err := r.recognise(f, opened); err != nil {
		r.unreadable(f, err)
		return true
	}
	r.lines.Reset()
	place := place{file: f, lines: f.lines, now: time.Now()}
	for at := f.cursor.Offset; ; {
		found, err := r.members.Next(opened, at, f.size)
		if err == nil {
			err = f.remember(opened, &found)
		}
		if err != nil {
			r.unreadable(f, err)
			return true
		}
		if found.Skipped > 0 {
			r.skip(&place, &found)
		}
		if !found.Whole {
			r.end(&place, found.Cut(), final, followed)
			break
		}
		ok, err := r.member(ctx, &place, &found)
		if !ok {
			return false
		}
		if err != nil {
			r.unreadable(f, err)
			return true
		}
		if !r.lines.Begun() {
			break
		}
		at = found.End
	}
	r.status.set("file "+f.path, nil)
	return true
}

// place is where a visit is.
type place struct {
	file *file
	// lines is the number of lines in front of the member being read; -1 when it
	// is not known.
	lines int64
	// now is the time of the visit, for rows without one.
	now time.Time
}

// line is the number of the nth line of the member in the text of the file, 0
// when it is not known.
func (p *place) line(nth int64) int64 {
	if p.lines < 0 {
		return 0
	}
	return p.lines + nth
}

// pass goes over the lines of a member.
func (p *place) pass(lines int64) {
	if p.lines >= 0 {
		p.lines += lines
	}
}

// moveTo moves the file's cursor to the beginning of a member.
func (r *reader) moveTo(p *place, offset int64) {
	p.file.moveTo(offset)
	p.file.lines = p.lines
	r.batch.touch(p.file)
}

// recognise checks that an open file is the one that was read before. One that
// was cut back is: its writer takes back what it could not write whole.
func (r *reader) recognise(f *file, opened *os.File) error {
	info, err := opened.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errNotRegular
	}
	f.suspect = false
	if f.head.Size > 0 {
		now, err := headOf(opened, f.head.Size)
		if err != nil {
			return err
		}
		if now != f.head {
			r.lose(f, "A file was replaced before it was read to its end")
			r.logger.Info("A file was replaced by another one of the same name: it is read from its beginning", zap.String("file", f.path))
			f.restart()
		}
	}
	f.size, f.info = info.Size(), info
	if f.cursor.Offset > f.size {
		f.moveTo(f.size)
		r.batch.touch(f)
	}
	return nil
}

// remember notes by what the file can be told from others, once so much of it
// is there for good.
func (f *file) remember(opened io.ReaderAt, found *segment.Found) error {
	if f.head.Size > 0 {
		return nil
	}
	fixed := found.Start
	if found.Whole {
		fixed = found.End
	}
	if fixed == 0 {
		return nil
	}
	var err error
	f.head, err = headOf(opened, fixed)
	return err
}

// skip passes over bytes that belong to no member that verifies.
func (r *reader) skip(p *place, found *segment.Found) {
	if r.lines.Begun() { // the rest of the line is among them
		r.restOfLine(p, position{Offset: found.Start})
	}
	r.ledger.skipped(skippedCorrupt, found.Skipped)
	r.progress.bytes += found.Skipped
	r.warn(p.file.path, skippedCorrupt, "Bytes skipped that belong to no gzip member that verifies",
		zap.Int64("offset", found.Start-found.Skipped), zap.Int64("bytes", found.Skipped), zap.Error(found.Problem))
	r.moveTo(p, found.Start)
}

// end decides on what is left at the end of a file: an incomplete member (cut),
// a line without a newline, or nothing.
func (r *reader) end(p *place, cut, final, followed bool) {
	f := p.file
	begun := r.lines.Begun()
	switch {
	case cut && !final:
		f.endsIn(endCut)
	case cut && followed:
		if begun {
			r.restOfLine(p, position{Offset: f.size})
		}
		r.torn(f, "A file ends in an incomplete gzip member, and a later one exists: it is skipped")
		r.moveTo(p, f.size)
	case cut:
		r.torn(f, "A file ends in an incomplete gzip member: it is left to a later run")
		f.endsIn(endLeft)
	case begun && !final:
		f.endsIn(endBegun)
	case begun:
		r.restOfLine(p, position{Offset: f.size})
		r.moveTo(p, f.size)
	}
}

func (r *reader) torn(f *file, text string) {
	r.ledger.skipped(skippedTorn, f.unread())
	r.progress.bytes += f.unread()
	r.warn(f.path, skippedTorn, text, zap.Int64("offset", f.cursor.Offset), zap.Int64("bytes", f.unread()))
}

// restOfLine takes a line that has no newline, and will have none.
func (r *reader) restOfLine(p *place, behind position) {
	line, size := r.lines.Rest()
	r.line(p, line, size, p.line(1), behind)
	p.pass(1)
}

// member reads the lines of a member. ok is false when the receiver is stopped.
func (r *reader) member(ctx context.Context, p *place, found *segment.Found) (ok bool, err error) {
	f := p.file
	if r.batch.holds(f) && !r.flush(ctx) {
		return false, nil
	}
	done := int64(0)
	if found.Start == f.cursor.Offset {
		done = f.cursor.Lines
	}
	text, err := r.members.Text()
	if err != nil {
		return true, err
	}
	r.lines.Continue(text)
	for {
		line, size, err := r.lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return true, err
		}
		if r.lines.Ended() <= done {
			continue
		}
		f.lines = p.lines
		r.line(p, line, size, p.line(r.lines.Ended()), position{Offset: found.Start, Lines: r.lines.Ended()})
		if r.batch.full() && !r.flush(ctx) {
			return false, nil
		}
	}
	r.ledger.member()
	r.progress.bytes += found.End - found.Start
	p.pass(r.lines.Ended())
	if !r.lines.Begun() {
		r.moveTo(p, found.End)
	}
	return true, nil
}

// unreadable takes note that a file cannot be read now. It is tried again at the
// next poll.
func (r *reader) unreadable(f *file, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		f.missing = time.Now()
		r.lose(f, "A file is gone before it was read to its end")
		return
	}
	f.unreadable = true
	err = explain(err)
	r.warn(f.path, "unreadable", "A file cannot be read; it is tried again", zap.Error(err))
	r.status.set("file "+f.path, err)
}
