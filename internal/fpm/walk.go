// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
)

// Limits on what a payload may hold beside its size.
const (
	// maxDepth is how deep maps and arrays may nest; the root map is level 1.
	maxDepth = 32
	// maxKeys is how many keys one map may have: pdata maps are searched from
	// end to end at each insertion, so the cost of a map grows with the square
	// of its keys.
	maxKeys = 1024
	// maxIdentityBytes bounds worker_id and timing_scope, which are remembered
	// for each rank.
	maxIdentityBytes = 4096
)

// walker reads one msgpack value after the other from a payload. It looks at
// the code byte before every typed read, because the library's typed reads
// take nil for 0 and wrap large unsigned values.
//
// Strings it returns alias the payload. Its errors have no Field yet: who
// knows the key that was being read adds it (RejectError.under). The zero
// walker is ready for reset and must not be copied after that.
type walker struct {
	payload []byte
	reader  bytes.Reader
	decoder *msgpack.Decoder
}

func (w *walker) reset(payload []byte) {
	w.payload = payload
	w.reader.Reset(payload)
	if w.decoder == nil {
		w.decoder = msgpack.NewDecoder(&w.reader)
	} else {
		w.decoder.ResetReader(&w.reader)
	}
}

// left is the number of bytes not read yet.
func (w *walker) left() int { return w.reader.Len() }

// peek tells what comes next.
func (w *walker) peek() (kind, *RejectError) {
	code, err := w.decoder.PeekCode()
	if err != nil {
		return kindInvalid, w.broken(err)
	}
	return kindOf(code), nil
}

// expect is peek for one allowed kind.
func (w *walker) expect(want kind) *RejectError {
	got, rejected := w.peek()
	if rejected != nil {
		return rejected
	}
	if got != want {
		return unexpected(w.describe(got), want.String())
	}
	return nil
}

// describe reads the value that comes next for an error that says it should
// not be there.
func (w *walker) describe(got kind) string {
	switch got {
	case kindBool:
		if value, err := w.decoder.DecodeBool(); err == nil {
			return "the boolean " + strconv.FormatBool(value)
		}
	case kindInt:
		if value, rejected := w.integer(); rejected == nil {
			return "the integer " + strconv.FormatInt(value, 10)
		}
	case kindFloat:
		if value, rejected := w.float(); rejected == nil {
			return "the float " + formatShort(value)
		}
	case kindString:
		if value, rejected := w.text(); rejected == nil {
			return "the string " + quoteShort(value)
		}
	}
	return got.String()
}

func (w *walker) mapLen() (int, *RejectError) {
	if rejected := w.expect(kindMap); rejected != nil {
		return 0, rejected
	}
	n, err := w.decoder.DecodeMapLen()
	if err != nil {
		return 0, w.broken(err)
	}
	if n > maxKeys {
		return 0, unexpected(fmt.Sprintf("a map of %d keys", n), fmt.Sprintf("at most %d keys", maxKeys))
	}
	return n, nil
}

// arrayLen reads the announced length of an array, which says nothing about
// how many elements really follow: allocate nothing by it.
func (w *walker) arrayLen() (int, *RejectError) {
	if rejected := w.expect(kindArray); rejected != nil {
		return 0, rejected
	}
	n, err := w.decoder.DecodeArrayLen()
	if err != nil {
		return 0, w.broken(err)
	}
	return n, nil
}

// key reads a map key. The result aliases the payload.
func (w *walker) key() ([]byte, *RejectError) {
	got, rejected := w.peek()
	if rejected != nil {
		return nil, rejected
	}
	if got != kindString {
		return nil, unexpected(w.describe(got)+" as a key", "string keys")
	}
	return w.text()
}

// text reads a string and checks that it is UTF-8. The result aliases the
// payload.
func (w *walker) text() ([]byte, *RejectError) {
	if rejected := w.expect(kindString); rejected != nil {
		return nil, rejected
	}
	n, err := w.decoder.DecodeBytesLen()
	if err != nil {
		return nil, w.broken(err)
	}
	if n > w.left() {
		return nil, w.broken(io.ErrUnexpectedEOF)
	}
	start := len(w.payload) - w.left()
	text := w.payload[start : start+n]
	if _, err := w.reader.Seek(int64(n), io.SeekCurrent); err != nil {
		return nil, w.broken(err)
	}
	if !utf8.Valid(text) {
		return nil, unexpected(quoteShort(text), "UTF-8 text")
	}
	return text, nil
}

// skip reads over one value of an unknown key and checks it like any other:
// what is kept must be writable later. depth is the level that the value has
// if it is a map or an array.
func (w *walker) skip(depth int) *RejectError {
	got, rejected := w.peek()
	if rejected != nil {
		return rejected
	}
	if (got == kindArray || got == kindMap) && depth > maxDepth {
		return tooDeep("")
	}
	switch got {
	case kindNil:
		if err := w.decoder.DecodeNil(); err != nil {
			return w.broken(err)
		}
	case kindBool:
		if _, err := w.decoder.DecodeBool(); err != nil {
			return w.broken(err)
		}
	case kindInt:
		_, rejected = w.integer()
	case kindFloat:
		_, rejected = w.float()
	case kindString:
		_, rejected = w.text()
	case kindArray:
		n, rejected := w.arrayLen()
		for ; n > 0 && rejected == nil; n-- {
			rejected = w.skip(depth + 1)
		}
		return rejected
	case kindMap:
		n, rejected := w.mapLen()
		for ; n > 0 && rejected == nil; n-- {
			if _, rejected = w.key(); rejected == nil {
				rejected = w.skip(depth + 1)
			}
		}
		return rejected
	default:
		return unexpected(got.String(), "nil, a boolean, a number, a string, an array or a map")
	}
	return rejected
}

func tooDeep(field string) *RejectError {
	return malformed(field, fmt.Sprintf("more than %d levels", maxDepth), fmt.Sprintf("at most %d levels of maps and arrays", maxDepth))
}

// broken is the error of a payload that the library could not read on.
func (w *walker) broken(err error) *RejectError {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return unexpected(fmt.Sprintf("a payload cut short after %d bytes", len(w.payload)), "a whole msgpack map")
	}
	return unexpected(err.Error(), "msgpack")
}
