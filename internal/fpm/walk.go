// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"fmt"
	"strconv"
	"unicode/utf8"

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

// walker reads one msgpack value after the other from a payload, by the format's
// specification (github.com/msgpack/msgpack, spec.md).
//
// It is not the msgpack library's decoder, which reads each byte through two
// interfaces: that took 1.2 of the 4 µs that decoding a message and writing its
// body cost. The library is what the tests compare it with.
//
// Strings it returns alias the payload. Its errors have no Field yet: who
// knows the key that was being read adds it (RejectError.under). The zero
// walker is ready for reset.
type walker struct {
	payload []byte
	at      int // where the next value begins, at most len(payload)
}

func (w *walker) reset(payload []byte) { w.payload, w.at = payload, 0 }

// left is the number of bytes not read yet.
func (w *walker) left() int { return len(w.payload) - w.at }

// peek tells what comes next.
func (w *walker) peek() (kind, *RejectError) {
	if w.at == len(w.payload) {
		return kindInvalid, w.cutShort()
	}
	return kinds[w.payload[w.at]], nil
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

// code reads the byte that a value begins with. The caller has peeked at it.
func (w *walker) code() byte {
	code := w.payload[w.at]
	w.at++
	return code
}

// unsigned reads a big-endian number of 1, 2, 4 or 8 bytes.
func (w *walker) unsigned(size int) (uint64, *RejectError) {
	if size > w.left() {
		return 0, w.cutShort()
	}
	var value uint64
	for _, b := range w.payload[w.at : w.at+size] {
		value = value<<8 | uint64(b)
	}
	w.at += size
	return value, nil
}

// length reads the announced length of a string, an array or a map. The code
// byte has fixed bits of it, or says by its distance from the first code with a
// length of its own how many bytes the length has: first, twice, four times.
func (w *walker) length(fixed, mask, first byte, firstSize int) (int, *RejectError) {
	code := w.code()
	if code&^mask == fixed {
		return int(code & mask), nil
	}
	n, rejected := w.unsigned(firstSize << (code - first))
	return int(n), rejected
}

// describe reads the value that comes next for an error that says it should
// not be there.
func (w *walker) describe(got kind) string {
	switch got {
	case kindBool:
		return "the boolean " + strconv.FormatBool(w.boolean())
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
	n, rejected := w.length(msgpcode.FixedMapLow, msgpcode.FixedMapMask, msgpcode.Map16, 2)
	if rejected != nil {
		return 0, rejected
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
	return w.length(msgpcode.FixedArrayLow, msgpcode.FixedArrayMask, msgpcode.Array16, 2)
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
	n, rejected := w.length(msgpcode.FixedStrLow, msgpcode.FixedStrMask, msgpcode.Str8, 1)
	if rejected != nil {
		return nil, rejected
	}
	if n > w.left() {
		return nil, w.cutShort()
	}
	text := w.payload[w.at : w.at+n]
	w.at += n
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
	case kindNil, kindBool:
		w.code()
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

func (w *walker) cutShort() *RejectError {
	return unexpected(fmt.Sprintf("a payload cut short after %d bytes", len(w.payload)), "a whole msgpack map")
}
