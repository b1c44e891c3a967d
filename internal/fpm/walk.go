// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
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
// Strings it returns alias the payload.
type walker struct {
	payload []byte
	reader  bytes.Reader
	decoder *msgpack.Decoder
}

func newWalker() *walker {
	w := &walker{}
	w.decoder = msgpack.NewDecoder(&w.reader)
	return w
}

func (w *walker) reset(payload []byte) {
	w.payload = payload
	w.reader.Reset(payload)
	w.decoder.ResetReader(&w.reader)
}

// left is the number of bytes not read yet.
func (w *walker) left() int { return w.reader.Len() }

// kind is a msgpack type family.
type kind int

const (
	kindNil kind = iota
	kindBool
	kindInt
	kindFloat
	kindString
	kindBin
	kindArray
	kindMap
	kindExt
	kindInvalid
)

var kindNames = [...]string{
	"nil", "a boolean", "an integer", "a float", "a string", "binary", "an array", "a map", "an extension", "an invalid code",
}

func (k kind) String() string { return kindNames[k] }

func kindOf(code byte) kind {
	switch {
	case msgpcode.IsFixedNum(code):
		return kindInt
	case msgpcode.IsFixedMap(code):
		return kindMap
	case msgpcode.IsFixedArray(code):
		return kindArray
	case msgpcode.IsFixedString(code):
		return kindString
	}
	switch code {
	case msgpcode.Nil:
		return kindNil
	case msgpcode.False, msgpcode.True:
		return kindBool
	case msgpcode.Float, msgpcode.Double:
		return kindFloat
	case msgpcode.Uint8, msgpcode.Uint16, msgpcode.Uint32, msgpcode.Uint64,
		msgpcode.Int8, msgpcode.Int16, msgpcode.Int32, msgpcode.Int64:
		return kindInt
	case msgpcode.Str8, msgpcode.Str16, msgpcode.Str32:
		return kindString
	case msgpcode.Bin8, msgpcode.Bin16, msgpcode.Bin32:
		return kindBin
	case msgpcode.Array16, msgpcode.Array32:
		return kindArray
	case msgpcode.Map16, msgpcode.Map32:
		return kindMap
	case msgpcode.FixExt1, msgpcode.FixExt2, msgpcode.FixExt4, msgpcode.FixExt8, msgpcode.FixExt16,
		msgpcode.Ext8, msgpcode.Ext16, msgpcode.Ext32:
		return kindExt
	}
	return kindInvalid
}

// peek tells what comes next.
func (w *walker) peek(field string) (kind, *RejectError) {
	code, err := w.decoder.PeekCode()
	if err != nil {
		return kindInvalid, w.broken(field, err)
	}
	return kindOf(code), nil
}

// expect is peek for one allowed kind.
func (w *walker) expect(field string, want kind) *RejectError {
	got, rejected := w.peek(field)
	if rejected != nil {
		return rejected
	}
	if got != want {
		return malformed(field, got.String(), want.String())
	}
	return nil
}

func (w *walker) mapLen(field string) (int, *RejectError) {
	if rejected := w.expect(field, kindMap); rejected != nil {
		return 0, rejected
	}
	n, err := w.decoder.DecodeMapLen()
	if err != nil {
		return 0, w.broken(field, err)
	}
	if n > maxKeys {
		return 0, malformed(field, fmt.Sprintf("a map of %d keys", n), fmt.Sprintf("at most %d keys", maxKeys))
	}
	return n, nil
}

func (w *walker) arrayLen(field string) (int, *RejectError) {
	if rejected := w.expect(field, kindArray); rejected != nil {
		return 0, rejected
	}
	n, err := w.decoder.DecodeArrayLen()
	if err != nil {
		return 0, w.broken(field, err)
	}
	return n, nil
}

// text reads a string and checks that it is UTF-8. The result aliases the
// payload.
func (w *walker) text(field string) ([]byte, *RejectError) {
	if rejected := w.expect(field, kindString); rejected != nil {
		return nil, rejected
	}
	n, err := w.decoder.DecodeBytesLen()
	if err != nil {
		return nil, w.broken(field, err)
	}
	if n > w.reader.Len() {
		return nil, w.broken(field, io.ErrUnexpectedEOF)
	}
	start := len(w.payload) - w.reader.Len()
	text := w.payload[start : start+n]
	if _, err := w.reader.Seek(int64(n), io.SeekCurrent); err != nil {
		return nil, w.broken(field, err)
	}
	if !utf8.Valid(text) {
		return nil, malformed(field, quoteShort(text), "UTF-8 text")
	}
	return text, nil
}

// integer reads an int of any width that fits pdata.
func (w *walker) integer(field string) (int64, *RejectError) {
	got, rejected := w.peek(field)
	if rejected != nil {
		return 0, rejected
	}
	if got != kindInt {
		value := got.String()
		if got == kindFloat {
			f, _ := w.decoder.DecodeFloat64()
			value += " (" + formatShort(f) + ")"
		}
		return 0, malformed(field, value, kindInt.String())
	}
	code, _ := w.decoder.PeekCode()
	if code == msgpcode.Uint64 {
		value, err := w.decoder.DecodeUint64()
		if err != nil {
			return 0, w.broken(field, err)
		}
		if value > math.MaxInt64 {
			return 0, outOfRange(field, value)
		}
		return int64(value), nil
	}
	value, err := w.decoder.DecodeInt64()
	if err != nil {
		return 0, w.broken(field, err)
	}
	return value, nil
}

// count reads an int that may not be negative.
func (w *walker) count(field string) (int64, *RejectError) {
	value, rejected := w.integer(field)
	if rejected == nil && value < 0 {
		rejected = malformed(field, strconv.FormatInt(value, 10), "0 or more")
	}
	return value, rejected
}

// float reads a float of either width.
func (w *walker) float(field string) (float64, *RejectError) {
	code, err := w.decoder.PeekCode()
	if err != nil {
		return 0, w.broken(field, err)
	}
	if code == msgpcode.Float {
		value, err := w.decoder.DecodeFloat32()
		if err != nil {
			return 0, w.broken(field, err)
		}
		return float64(value), nil
	}
	value, err := w.decoder.DecodeFloat64()
	if err != nil {
		return 0, w.broken(field, err)
	}
	return value, nil
}

// measure reads a finite number that may not be negative: publishers put ints
// into fields that are declared float.
func (w *walker) measure(field string) (float64, *RejectError) {
	got, rejected := w.peek(field)
	if rejected != nil {
		return 0, rejected
	}
	var value float64
	switch got {
	case kindInt:
		var whole int64
		whole, rejected = w.integer(field)
		value = float64(whole)
	case kindFloat:
		value, rejected = w.float(field)
	default:
		return 0, malformed(field, got.String(), "a number")
	}
	if rejected != nil {
		return 0, rejected
	}
	if math.IsNaN(value) || math.IsInf(value, 0) || value < 0 {
		return 0, malformed(field, formatShort(value), "a finite number, 0 or more")
	}
	return value, nil
}

// skip reads over one value of an unknown key and checks it like any other:
// what is kept must be writable later.
func (w *walker) skip(field string, depth int) *RejectError {
	got, rejected := w.peek(field)
	if rejected != nil {
		return rejected
	}
	if (got == kindArray || got == kindMap) && depth > maxDepth {
		return tooDeep(field)
	}
	switch got {
	case kindNil:
		if err := w.decoder.DecodeNil(); err != nil {
			return w.broken(field, err)
		}
	case kindBool:
		if _, err := w.decoder.DecodeBool(); err != nil {
			return w.broken(field, err)
		}
	case kindInt:
		_, rejected = w.integer(field)
	case kindFloat:
		_, rejected = w.float(field)
	case kindString:
		_, rejected = w.text(field)
	case kindArray:
		n, rejected := w.arrayLen(field)
		for ; n > 0 && rejected == nil; n-- {
			rejected = w.skip(field, depth+1)
		}
		return rejected
	case kindMap:
		n, rejected := w.mapLen(field)
		for ; n > 0 && rejected == nil; n-- {
			if _, rejected = w.key(field); rejected == nil {
				rejected = w.skip(field, depth+1)
			}
		}
		return rejected
	default:
		return malformed(field, got.String(), "nil, a boolean, a number, a string, an array or a map")
	}
	return rejected
}

// fieldName makes a key from the wire fit for an error.
func fieldName(key []byte) string {
	if len(key) > maxFieldName || !plain(key) {
		return quoteShort(key)
	}
	return string(key)
}

const maxFieldName = 64

func plain(key []byte) bool {
	for _, c := range key {
		if c < ' ' || c == '"' || c > '~' {
			return false
		}
	}
	return true
}

// key reads a map key.
func (w *walker) key(parent string) ([]byte, *RejectError) {
	got, rejected := w.peek(parent)
	if rejected != nil {
		return nil, rejected
	}
	if got != kindString {
		return nil, malformed(parent, got.String()+" as a key", "string keys")
	}
	return w.text(parent)
}

func tooDeep(field string) *RejectError {
	return malformed(field, fmt.Sprintf("more than %d levels", maxDepth), fmt.Sprintf("at most %d levels of maps and arrays", maxDepth))
}

// broken is the error of a payload that the library could not read on.
func (w *walker) broken(field string, err error) *RejectError {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return malformed(field, fmt.Sprintf("a payload cut short after %d bytes", len(w.payload)), "a whole msgpack map")
	}
	return malformed(field, err.Error(), "msgpack")
}

func formatShort(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }
