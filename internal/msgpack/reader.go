// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package msgpack reads msgpack values one after the other, by the format's
// specification (github.com/msgpack/msgpack, spec.md). What a value may be is
// for the caller to say: it peeks at the kind, and reads what it wants there.
//
//	Peek ─▶ Kind ─▶ Bool | Int | Float | Text | Bin | ArrayLen | MapLen | …
//
// It is not the msgpack library's decoder, which reads each byte through two
// interfaces, takes nil for 0 and wraps large unsigned values: reading a forward
// pass by it took 1.2 of the 4 µs that decoding the message and writing its body
// cost. The library is what the tests compare it with.
package msgpack

import (
	"errors"
	"fmt"
	"math"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// ErrCutShort is the error of a value that does not end within the payload. The
// rest of the payload cannot be read.
var ErrCutShort = errors.New("payload cut short")

// RangeError is an integer above 2⁶³−1, which was read over.
type RangeError uint64

// Error implements error.
func (e RangeError) Error() string {
	return fmt.Sprintf("integer %d above %d", uint64(e), math.MaxInt64)
}

// Reader reads a payload from its beginning to its end. Bytes that it returns
// alias the payload. But for Peek and what only tells where it is, each method
// reads one kind and is called after Peek has returned that kind. The zero Reader
// is at the end.
//
// Invariant (TestEveryPrefixIsCutShort): it never reads beyond the payload,
// whatever lengths values announce.
type Reader struct {
	payload []byte
	at      int // at most len(payload)
}

// Reset begins at the beginning of a payload, which it keeps.
func (r *Reader) Reset(payload []byte) { r.payload, r.at = payload, 0 }

// Payload is what Reset was given.
func (r *Reader) Payload() []byte { return r.payload }

// Left is the number of bytes not read yet.
func (r *Reader) Left() int { return len(r.payload) - r.at }

// At is the offset of what comes next.
func (r *Reader) At() int { return r.at }

// Seek goes to an offset that At has returned.
func (r *Reader) Seek(offset int) { r.at = offset }

// Peek tells what comes next.
func (r *Reader) Peek() Kind {
	if r.at == len(r.payload) {
		return End
	}
	return kinds[r.payload[r.at]]
}

// Nil reads a nil.
func (r *Reader) Nil() { r.at++ }

// Bool reads a boolean.
func (r *Reader) Bool() bool { return r.code() == msgpcode.True }

// Int reads an integer of any width. Its error is ErrCutShort or a RangeError.
func (r *Reader) Int() (int64, error) {
	code := r.code()
	if msgpcode.IsFixedNum(code) {
		return int64(int8(code)), nil
	}
	return r.sizedInt(code)
}

func (r *Reader) sizedInt(code byte) (int64, error) {
	if code <= msgpcode.Uint64 {
		value, err := r.unsigned(1 << (code - msgpcode.Uint8))
		if value > math.MaxInt64 {
			return 0, RangeError(value)
		}
		return int64(value), err
	}
	size := 1 << (code - msgpcode.Int8)
	value, err := r.unsigned(size)
	unused := 64 - 8*size
	return int64(value<<unused) >> unused, err
}

// Float reads a float of either width.
func (r *Reader) Float() (float64, error) {
	if r.code() == msgpcode.Float {
		bits, err := r.unsigned(4)
		return float64(math.Float32frombits(uint32(bits))), err
	}
	bits, err := r.unsigned(8)
	return math.Float64frombits(bits), err
}

// Text reads a string, which need not be UTF-8.
func (r *Reader) Text() ([]byte, error) {
	if code := r.payload[r.at]; code&^msgpcode.FixedStrMask == msgpcode.FixedStrLow {
		r.at++
		return r.bytes(int(code & msgpcode.FixedStrMask))
	}
	return r.sized(msgpcode.Str8)
}

// Bin reads binary.
func (r *Reader) Bin() ([]byte, error) { return r.sized(msgpcode.Bin8) }

// Ext reads an extension and returns its type with its data.
func (r *Reader) Ext() ([]byte, error) {
	code := r.code()
	if code >= msgpcode.FixExt1 {
		return r.bytes(1 + 1<<(code-msgpcode.FixExt1))
	}
	n, err := r.unsigned(1 << (code - msgpcode.Ext8))
	if err != nil {
		return nil, err
	}
	return r.bytes(1 + int(n))
}

// ArrayLen reads the announced length of an array, which says nothing about how
// many elements follow: allocate nothing by it.
func (r *Reader) ArrayLen() (int, error) {
	return r.length(msgpcode.FixedArrayLow, msgpcode.FixedArrayMask, msgpcode.Array16)
}

// MapLen reads the announced length of a map, which says nothing about how many
// keys follow.
func (r *Reader) MapLen() (int, error) {
	return r.length(msgpcode.FixedMapLow, msgpcode.FixedMapMask, msgpcode.Map16)
}

// code reads the byte that a value begins with.
func (r *Reader) code() byte {
	code := r.payload[r.at]
	r.at++
	return code
}

// unsigned reads a big-endian number of 1, 2, 4 or 8 bytes.
func (r *Reader) unsigned(size int) (uint64, error) {
	if size > r.Left() {
		return 0, ErrCutShort
	}
	var value uint64
	for _, b := range r.payload[r.at : r.at+size] {
		value = value<<8 | uint64(b)
	}
	r.at += size
	return value, nil
}

// sized reads bytes whose length stands before them: in one byte after the code
// first, in two and four after the next ones.
func (r *Reader) sized(first byte) ([]byte, error) {
	n, err := r.unsigned(1 << (r.code() - first))
	if err != nil {
		return nil, err
	}
	return r.bytes(int(n))
}

func (r *Reader) bytes(n int) ([]byte, error) {
	if n > r.Left() {
		return nil, ErrCutShort
	}
	bytes := r.payload[r.at : r.at+n]
	r.at += n
	return bytes, nil
}

// length reads the number of elements of an array or a map: fixed bits of the
// code have it, or two bytes after the code first, or four after the next one.
func (r *Reader) length(fixed, mask, first byte) (int, error) {
	code := r.code()
	if code&^mask == fixed {
		return int(code & mask), nil
	}
	n, err := r.unsigned(2 << (code - first))
	return int(n), err
}
