// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"bytes"
	"errors"
	"io"
	"math"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// maxDepth is how deep maps and arrays may nest; the message is level 1.
const maxDepth = 32

// walker reads one msgpack value after the other from a payload. It looks at
// the code byte before every typed read, because the library's typed reads take
// nil for 0 and wrap large unsigned values.
//
// Text that it returns aliases the payload. Its rejections have no field: who
// knows what was being read names it. The zero walker is ready for reset and
// must not be copied after that.
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

// at is the offset of what comes next.
func (w *walker) at() int { return len(w.payload) - w.reader.Len() }

// seek goes to an offset that at has returned.
func (w *walker) seek(offset int) {
	_, _ = w.reader.Seek(int64(offset), io.SeekStart) // a bytes.Reader goes anywhere
}

// peek tells what comes next.
func (w *walker) peek() (kind, *rejection) {
	code, err := w.decoder.PeekCode()
	if err != nil {
		return kindInvalid, w.broken(err)
	}
	return kindOf(code), nil
}

func (w *walker) expect(want kind) *rejection {
	got, rejected := w.peek()
	if rejected == nil && got != want {
		rejected = w.unexpected(got, string(want))
	}
	return rejected
}

// unexpected rejects the value that comes next, which it may read to show it.
func (w *walker) unexpected(got kind, want string) *rejection {
	var value any = string(got)
	switch got {
	case kindBool:
		if is, err := w.decoder.DecodeBool(); err == nil {
			value = is
		}
	case kindInt, kindFloat:
		if n, rejected := w.number(); rejected == nil {
			value = n
		}
	case kindText:
		if text, rejected := w.text(); rejected == nil {
			value = text
		}
	}
	return malformed("", value, want)
}

func (w *walker) mapLen() (int, *rejection) {
	if rejected := w.expect(kindMap); rejected != nil {
		return 0, rejected
	}
	n, err := w.decoder.DecodeMapLen()
	if err != nil {
		return 0, w.broken(err)
	}
	return n, nil
}

// arrayLen reads the announced length of an array, which says nothing about how
// many elements follow: allocate nothing by it.
func (w *walker) arrayLen() (int, *rejection) {
	if rejected := w.expect(kindArray); rejected != nil {
		return 0, rejected
	}
	n, err := w.decoder.DecodeArrayLen()
	if err != nil {
		return 0, w.broken(err)
	}
	return n, nil
}

// text reads a string, which must be UTF-8.
func (w *walker) text() ([]byte, *rejection) {
	if rejected := w.expect(kindText); rejected != nil {
		return nil, rejected
	}
	n, err := w.decoder.DecodeBytesLen()
	if err != nil {
		return nil, w.broken(err)
	}
	start := w.at()
	if rejected := w.pass(n); rejected != nil {
		return nil, rejected
	}
	text := w.payload[start:w.at()]
	if !utf8.Valid(text) {
		return nil, malformed("", text, "UTF-8 text")
	}
	return text, nil
}

// integer reads an int of any width that fits pdata.
func (w *walker) integer() (int64, *rejection) {
	code, err := w.decoder.PeekCode()
	if err != nil {
		return 0, w.broken(err)
	}
	if got := kindOf(code); got != kindInt {
		return 0, w.unexpected(got, string(kindInt))
	}
	if code == msgpcode.Uint64 {
		value, err := w.decoder.DecodeUint64()
		if err != nil {
			return 0, w.broken(err)
		}
		if value > math.MaxInt64 {
			return 0, &rejection{rejectedOutOfRange, "", value, "at most 9223372036854775807"}
		}
		return int64(value), nil
	}
	value, err := w.decoder.DecodeInt64()
	if err != nil {
		return 0, w.broken(err)
	}
	return value, nil
}

// number reads an int or a float.
func (w *walker) number() (number, *rejection) {
	got, rejected := w.peek()
	switch {
	case rejected != nil:
		return number{}, rejected
	case got == kindInt:
		value, rejected := w.integer()
		return intNumber(value), rejected
	case got == kindFloat:
		value, err := w.decoder.DecodeFloat64()
		if err != nil {
			return number{}, w.broken(err)
		}
		return floatNumber(value), nil
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
	var err error
	switch got {
	case kindNil:
		err = w.decoder.DecodeNil()
	case kindBool:
		_, err = w.decoder.DecodeBool()
	case kindInt:
		_, err = w.decoder.DecodeInt64()
	case kindFloat:
		_, err = w.decoder.DecodeFloat64()
	case kindText, kindBin:
		var n int
		if n, err = w.decoder.DecodeBytesLen(); err == nil {
			return w.pass(n)
		}
	case kindExt:
		var n int
		if _, n, err = w.decoder.DecodeExtHeader(); err == nil {
			return w.pass(n)
		}
	case kindArray:
		var n int
		if n, err = w.decoder.DecodeArrayLen(); err == nil {
			return w.skipAll(n, depth)
		}
	case kindMap:
		var n int
		if n, err = w.decoder.DecodeMapLen(); err == nil {
			return w.skipAll(2*n, depth)
		}
	default:
		return malformed("", string(got), "msgpack")
	}
	if err != nil {
		return w.broken(err)
	}
	return nil
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

// pass goes over n bytes.
func (w *walker) pass(n int) *rejection {
	if n > w.left() {
		return w.broken(io.ErrUnexpectedEOF)
	}
	w.seek(w.at() + n)
	return nil
}

// broken is the rejection of a payload that the library could not read on.
func (w *walker) broken(err error) *rejection {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return malformed("", "a payload cut short", "whole msgpack values")
	}
	return malformed("", err.Error(), "msgpack")
}
