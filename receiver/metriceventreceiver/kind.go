// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import "github.com/vmihailenco/msgpack/v5/msgpcode"

// kind is a msgpack type family.
type kind string

const (
	kindNil     kind = "nil"
	kindBool    kind = "a boolean"
	kindInt     kind = "an integer"
	kindFloat   kind = "a float"
	kindText    kind = "a string"
	kindBin     kind = "binary"
	kindArray   kind = "an array"
	kindMap     kind = "a map"
	kindExt     kind = "an extension"
	kindInvalid kind = "an invalid code"
)

// kindOf tells the family of the value that begins with a code byte.
func kindOf(code byte) kind {
	switch {
	case msgpcode.IsFixedNum(code), code >= msgpcode.Uint8 && code <= msgpcode.Int64:
		return kindInt
	case msgpcode.IsString(code):
		return kindText
	case msgpcode.IsFixedMap(code), code == msgpcode.Map16, code == msgpcode.Map32:
		return kindMap
	case msgpcode.IsFixedArray(code), code == msgpcode.Array16, code == msgpcode.Array32:
		return kindArray
	case code == msgpcode.Float, code == msgpcode.Double:
		return kindFloat
	case code == msgpcode.Nil:
		return kindNil
	case code == msgpcode.False, code == msgpcode.True:
		return kindBool
	case msgpcode.IsBin(code):
		return kindBin
	case msgpcode.IsExt(code):
		return kindExt
	default:
		return kindInvalid
	}
}
