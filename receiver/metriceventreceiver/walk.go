// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"errors"
	"unicode/utf8"

	"github.com/otelcol-fpm/otelcol-fpm/internal/msgpack"
)

// maxDepth is how deep maps and arrays may nest; the message is level 1.
const maxDepth = 32

// walker reads a payload and rejects what may not be where it is.
//
// Text that it returns aliases the payload. Its rejections have no field: who
// knows what was being read names it. The zero walker is ready for Reset.
type walker struct {
	msgpack.Reader
}

// peek tells what comes next, of which there must be something.
func (w *walker) peek() (msgpack.Kind, *rejection) {
	got := w.Peek()
	if got == msgpack.End {
		return got, failed(msgpack.ErrCutShort)
	}
	return got, nil
}

func (w *walker) expect(want msgpack.Kind) *rejection {
	if w.Peek() == want {
		return nil
	}
	got, rejected := w.peek()
	if rejected == nil {
		rejected = w.unexpected(got, want.String())
	}
	return rejected
}

// unexpected rejects the value that comes next, which it may read to show it.
func (w *walker) unexpected(got msgpack.Kind, want string) *rejection {
	var value any = got
	switch got {
	case msgpack.Bool:
		value = w.Bool()
	case msgpack.Int, msgpack.Float:
		if n, rejected := w.number(); rejected == nil {
			value = n
		}
	case msgpack.String:
		if text, rejected := w.text(); rejected == nil {
			value = text
		}
	}
	return malformed("", value, want)
}

func (w *walker) mapLen() (int, *rejection) {
	if rejected := w.expect(msgpack.Map); rejected != nil {
		return 0, rejected
	}
	n, err := w.MapLen()
	return n, failed(err)
}

func (w *walker) arrayLen() (int, *rejection) {
	if rejected := w.expect(msgpack.Array); rejected != nil {
		return 0, rejected
	}
	n, err := w.ArrayLen()
	return n, failed(err)
}

// text reads a string, which must be UTF-8.
func (w *walker) text() ([]byte, *rejection) {
	if rejected := w.expect(msgpack.String); rejected != nil {
		return nil, rejected
	}
	text, err := w.Text()
	if err != nil {
		return nil, failed(err)
	}
	if !utf8.Valid(text) {
		return nil, malformed("", text, "UTF-8 text")
	}
	return text, nil
}

// integer reads an int of any width that fits pdata.
func (w *walker) integer() (int64, *rejection) {
	if rejected := w.expect(msgpack.Int); rejected != nil {
		return 0, rejected
	}
	value, err := w.Int()
	return value, failed(err)
}

// number reads an int or a float.
func (w *walker) number() (number, *rejection) {
	got, rejected := w.peek()
	switch {
	case rejected != nil:
		return number{}, rejected
	case got == msgpack.Int:
		value, err := w.Int()
		return intNumber(value), failed(err)
	case got == msgpack.Float:
		value, err := w.Float()
		return floatNumber(value), failed(err)
	default:
		return number{}, w.unexpected(got, "a number")
	}
}

// skip reads over one value and checks its form only. depth is the level that
// the value has if it is a map or an array.
func (w *walker) skip(depth int) *rejection {
	got, rejected := w.peek()
	if rejected != nil {
		return rejected
	}
	var (
		n   int // values in it
		err error
	)
	switch got {
	case msgpack.Nil:
		w.Nil()
	case msgpack.Bool:
		w.Bool()
	case msgpack.Int:
		if _, err = w.Int(); !errors.Is(err, msgpack.ErrCutShort) {
			err = nil // form only
		}
	case msgpack.Float:
		_, err = w.Float()
	case msgpack.String:
		_, err = w.Text()
	case msgpack.Bin:
		_, err = w.Bin()
	case msgpack.Ext:
		_, err = w.Ext()
	case msgpack.Array:
		if n, err = w.ArrayLen(); err == nil {
			return w.skipAll(n, depth)
		}
	case msgpack.Map:
		if n, err = w.MapLen(); err == nil {
			return w.skipAll(2*n, depth)
		}
	default:
		return malformed("", got, "msgpack")
	}
	return failed(err)
}

// skipAll reads over the n values that a map or an array at a level has.
func (w *walker) skipAll(n, depth int) *rejection {
	if depth > maxDepth {
		return malformed("", "more levels of maps and arrays", "at most 32")
	}
	for ; n > 0; n-- {
		if rejected := w.skip(depth + 1); rejected != nil {
			return rejected
		}
	}
	return nil
}

// failed makes the reader's error a rejection; nil is none.
func failed(err error) *rejection {
	if err == nil {
		return nil
	}
	if large, ok := errors.AsType[msgpack.RangeError](err); ok {
		return &rejection{rejectedOutOfRange, "", uint64(large), "at most 9223372036854775807"}
	}
	return malformed("", "a payload cut short", "whole msgpack values")
}
