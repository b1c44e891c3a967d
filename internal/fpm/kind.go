// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import "github.com/vmihailenco/msgpack/v5/msgpcode"

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

// kinds has the family of the value that begins with each code byte.
var kinds = func() (table [256]kind) {
	for code := range table {
		table[code] = kindOf(byte(code))
	}
	return table
}()

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
