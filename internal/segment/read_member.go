// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/gzip"
)

const (
	// keepText is how much text of a member is kept while it is verified; it is
	// several times what a flush writes. The text of a larger member is
	// decompressed once more when it is read, so that memory does not depend on
	// what a file holds.
	keepText = 4 << 20
	// maxText bounds the text of a member. It is where the length in a member's
	// trailer wraps.
	maxText = 1<<32 - 1
	// maxSearch bounds the work of one search for a member, in bytes read and
	// decompressed in vain.
	maxSearch = 1 << 30
	// inputBuffer is how much of a file is read at once.
	inputBuffer = 64 << 10
)

var (
	errCut      = errors.New("the gzip member is cut short")
	errNoHeader = errors.New("no gzip member begins here")
	errTooLarge = errors.New("the gzip member holds too much text")
	errGaveUp   = errors.New("no gzip member was found with reasonable effort")
)

// Reader reads gzip files member by member. It keeps several megabytes of
// buffers and serves any number of files, one after the other. It belongs to one
// goroutine.
//
// Invariant (TestNothingIsReadBeforeItVerifies): what Text gives out belongs to a
// member whose length and checksum were right when it was found.
type Reader struct {
	keep, limit, search int64

	file   io.ReaderAt
	input  input
	buffer *bufio.Reader
	zip    *gzip.Reader
	chunk  []byte
	text   []byte
	found  Found
}

// Found is what lies behind an offset of a file.
type Found struct {
	// Whole: there is a member that verifies, from Start to End, with Size bytes
	// of text. Otherwise Start is where a member begins that is not complete, or
	// the end of what was looked at.
	Whole      bool
	Start, End int64
	Size       int64
	// Skipped is the number of bytes in front of Start, which belong to no member
	// that verifies.
	Skipped int64
	// Problem says why no member begins at the offset, when none does.
	Problem error
}

// Cut reports that what begins at Start may become whole when the file grows.
func (f *Found) Cut() bool { return !f.Whole && f.Start < f.End }

// NewReader makes a reader.
func NewReader() *Reader {
	r := &Reader{keep: keepText, limit: maxText, search: maxSearch, zip: new(gzip.Reader), chunk: make([]byte, inputBuffer)}
	r.buffer = bufio.NewReaderSize(&r.input, inputBuffer)
	return r
}

// Next finds the first whole member at or behind offset, in a file of which
// size bytes are looked at. An error is one of reading the file.
//
// A member that does not verify is passed over only when a later one does or
// when more bytes could not complete it. The search goes by the first bytes of a
// header; JSON text cannot hold them, so that they are not found inside of a
// member that was stored without compression.
func (r *Reader) Next(file io.ReaderAt, offset, size int64) (Found, error) {
	r.file = file
	r.found = Found{Start: size, End: size}
	spent := int64(0)
	for start := offset; start < size; {
		end, text, err := r.verify(start, size)
		if r.input.err != nil {
			return Found{}, r.input.err
		}
		if err == nil {
			r.found.Whole, r.found.Start, r.found.End, r.found.Size = true, start, end, text
			break
		}
		if r.found.Problem == nil {
			r.found.Problem = err
		}
		if errors.Is(err, errCut) {
			r.found.Start = min(r.found.Start, start)
		}
		if spent += text + inputBuffer; spent > r.search {
			r.found.Start, r.found.Problem = size, fmt.Errorf("%w: %w", errGaveUp, r.found.Problem)
			break
		}
		if start, err = r.seek(start+1, size); err != nil {
			return Found{}, err
		}
	}
	r.found.Skipped = r.found.Start - offset
	return r.found, nil
}

// Text reads the text of the member that Next has found, once. An error other
// than io.EOF is one of reading the file, or says that it has changed.
func (r *Reader) Text() (io.Reader, error) {
	if r.found.Size <= r.keep {
		return bytes.NewReader(r.text), nil
	}
	if err := r.open(r.found.Start, r.found.End); err != nil {
		return nil, err
	}
	return r.zip, nil
}

// open begins to decompress what lies between two offsets.
func (r *Reader) open(start, end int64) error {
	r.input = input{file: r.file, at: start, end: end}
	r.buffer.Reset(&r.input)
	if err := r.zip.Reset(r.buffer); err != nil {
		return err
	}
	r.zip.Multistream(false)
	return nil
}

// verify decompresses the member at start. text is how much it was, also of one
// that does not verify.
func (r *Reader) verify(start, size int64) (end, text int64, err error) {
	if err := r.open(start, size); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, 0, errCut
		}
		return 0, 0, errNoHeader
	}
	r.text = r.text[:0]
	for {
		into := r.chunk
		if text < r.keep {
			r.text = slices.Grow(r.text, inputBuffer)
			into = r.text[len(r.text):cap(r.text)]
		}
		n, err := r.zip.Read(into)
		if text < r.keep {
			r.text = r.text[:len(r.text)+n]
		}
		text += int64(n)
		switch {
		case text > r.limit:
			return 0, text, fmt.Errorf("%w: more than %d bytes", errTooLarge, r.limit)
		case errors.Is(err, io.EOF):
			return r.input.at - int64(r.buffer.Buffered()), text, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return 0, text, errCut
		case err != nil:
			return 0, text, err
		}
	}
}

// magic begins a gzip header: two bytes of identification and the only method
// there is.
var magic = []byte{0x1f, 0x8b, 8}

// seek finds the first place at or behind offset where a header may begin, also
// one of which the file ends before the magic does.
func (r *Reader) seek(offset, size int64) (int64, error) {
	for offset < size {
		n, err := r.file.ReadAt(r.chunk[:min(int64(len(r.chunk)), size-offset)], offset)
		if n == 0 {
			if err == nil || errors.Is(err, io.EOF) {
				return size, nil
			}
			return 0, err
		}
		chunk := r.chunk[:n]
		if i := bytes.Index(chunk, magic); i >= 0 {
			return offset + int64(i), nil
		}
		tail := max(0, n-len(magic)+1)
		for tail < n && !bytes.HasPrefix(magic, chunk[tail:]) {
			tail++
		}
		if offset+int64(n) == size || tail == 0 {
			return offset + int64(tail), nil
		}
		offset += int64(tail)
	}
	return size, nil
}

// input reads a part of a file, and keeps the error that is not its end.
type input struct {
	file    io.ReaderAt
	at, end int64
	err     error
}

func (in *input) Read(p []byte) (int, error) {
	if in.at >= in.end {
		return 0, io.EOF
	}
	n, err := in.file.ReadAt(p[:min(int64(len(p)), in.end-in.at)], in.at)
	in.at += int64(n)
	if n > 0 {
		return n, nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		in.err = err
	}
	return 0, err
}
