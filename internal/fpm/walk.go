// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/otelcol-fpm/otelcol-fpm/internal/msgpack"
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

// walker reads a payload and rejects what may not be where it is.
//
// Strings it returns alias the payload. Its errors have no Field yet: who
// knows the key that was being read adds it (RejectError.under). The zero
// walker is ready for Reset.
type walker struct {
	msgpack.Reader
}

// peek tells what comes next, of which there must be something.
func (w *walker) peek() (msgpack.Kind, *RejectError) {
	got := w.Peek()
	if got == msgpack.End {
		return got, w.failed(msgpack.ErrCutShort)
	}
	return got, nil
}

// expect says what is wrong when something else than want comes next.
func (w *walker) expect(want msgpack.Kind) *RejectError {
	if w.Peek() == want {
		return nil
	}
	got, rejected := w.peek()
	if rejected != nil {
		return rejected
	}
	return unexpected(w.describe(got), want.String())
}

// failed makes the reader's error a rejection.
func (w *walker) failed(err error) *RejectError {
	if large, ok := errors.AsType[msgpack.RangeError](err); ok {
		return outOfRange("", uint64(large))
	}
	return unexpected(fmt.Sprintf("a payload cut short after %d bytes", len(w.Payload())), "a whole msgpack map")
}

// describe reads the value that comes next for an error that says it should
// not be there.
func (w *walker) describe(got msgpack.Kind) string {
	switch got {
	case msgpack.Bool:
		return "the boolean " + strconv.FormatBool(w.Bool())
	case msgpack.Int:
		if value, rejected := w.integer(); rejected == nil {
			return "the integer " + strconv.FormatInt(value, 10)
		}
	case msgpack.Float:
		if value, err := w.Float(); err == nil {
			return "the float " + formatShort(value)
		}
	case msgpack.String:
		if value, rejected := w.text(); rejected == nil {
			return "the string " + quoteShort(value)
		}
	}
	return got.String()
}

func (w *walker) mapLen() (int, *RejectError) {
	if rejected := w.expect(msgpack.Map); rejected != nil {
		return 0, rejected
	}
	n, err := w.MapLen()
	if err != nil {
		return 0, w.failed(err)
	}
	if n > maxKeys {
		return 0, unexpected(fmt.Sprintf("a map of %d keys", n), fmt.Sprintf("at most %d keys", maxKeys))
	}
	return n, nil
}

func (w *walker) arrayLen() (int, *RejectError) {
	if rejected := w.expect(msgpack.Array); rejected != nil {
		return 0, rejected
	}
	n, err := w.ArrayLen()
	if err != nil {
		return 0, w.failed(err)
	}
	return n, nil
}

// key reads a map key. The result aliases the payload.
func (w *walker) key() ([]byte, *RejectError) {
	if got := w.Peek(); got != msgpack.String {
		if got == msgpack.End {
			return nil, w.failed(msgpack.ErrCutShort)
		}
		return nil, unexpected(w.describe(got)+" as a key", "string keys")
	}
	return w.validText()
}

// text reads a string and checks that it is UTF-8. The result aliases the
// payload.
func (w *walker) text() ([]byte, *RejectError) {
	if rejected := w.expect(msgpack.String); rejected != nil {
		return nil, rejected
	}
	return w.validText()
}

func (w *walker) validText() ([]byte, *RejectError) {
	text, err := w.Text()
	if err != nil {
		return nil, w.failed(err)
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
	if (got == msgpack.Array || got == msgpack.Map) && depth > maxDepth {
		return tooDeep("")
	}
	switch got {
	case msgpack.Nil:
		w.Nil()
	case msgpack.Bool:
		w.Bool()
	case msgpack.Int:
		_, rejected = w.integer()
	case msgpack.Float:
		if _, err := w.Float(); err != nil {
			return w.failed(err)
		}
	case msgpack.String:
		_, rejected = w.text()
	case msgpack.Array:
		n, rejected := w.arrayLen()
		for ; n > 0 && rejected == nil; n-- {
			rejected = w.skip(depth + 1)
		}
		return rejected
	case msgpack.Map:
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
