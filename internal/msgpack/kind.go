// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package msgpack

import "github.com/vmihailenco/msgpack/v5/msgpcode"

// Kind is a msgpack type family.
type Kind int

// The kinds. Their text is for messages about input.
const (
	Nil Kind = iota
	Bool
	Int
	Float
	String
	Bin
	Array
	Map
	Ext
	// Invalid is the one code that msgpack never uses.
	Invalid
	// End is no value: nothing is left.
	End
)

var kindNames = [...]string{
	"nil", "a boolean", "an integer", "a float", "a string", "binary", "an array", "a map", "an extension", "an invalid code", "the end",
}

// String is the kind in words, such as "an integer".
func (k Kind) String() string { return kindNames[k] }

// kinds has the family of the value that begins with each code byte.
var kinds = func() (table [256]Kind) {
	for code := range table {
		table[code] = kindOf(byte(code))
	}
	return table
}()

func kindOf(code byte) Kind {
	switch {
	case msgpcode.IsFixedNum(code):
		return Int
	case msgpcode.IsFixedMap(code):
		return Map
	case msgpcode.IsFixedArray(code):
		return Array
	case msgpcode.IsFixedString(code):
		return String
	}
	switch code {
	case msgpcode.Nil:
		return Nil
	case msgpcode.False, msgpcode.True:
		return Bool
	case msgpcode.Float, msgpcode.Double:
		return Float
	case msgpcode.Uint8, msgpcode.Uint16, msgpcode.Uint32, msgpcode.Uint64,
		msgpcode.Int8, msgpcode.Int16, msgpcode.Int32, msgpcode.Int64:
		return Int
	case msgpcode.Str8, msgpcode.Str16, msgpcode.Str32:
		return String
	case msgpcode.Bin8, msgpcode.Bin16, msgpcode.Bin32:
		return Bin
	case msgpcode.Array16, msgpcode.Array32:
		return Array
	case msgpcode.Map16, msgpcode.Map32:
		return Map
	case msgpcode.FixExt1, msgpcode.FixExt2, msgpcode.FixExt4, msgpcode.FixExt8, msgpcode.FixExt16,
		msgpcode.Ext8, msgpcode.Ext16, msgpcode.Ext32:
		return Ext
	}
	return Invalid
}
