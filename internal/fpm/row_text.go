// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"bytes"
	"math"
	"strconv"
)

// The text of numbers and strings is that of Rust's serde_json, in which
// Dynamo writes its traces. encoding/json differs: it writes 100.0 as 100,
// stays in fixed notation up to 1e21, and escapes U+2028 and U+2029.

// Floats are in fixed notation for decimal exponents −5…15, that is, for
// magnitudes in [fixedFrom, fixedBelow).
const (
	fixedFrom  = 1e-5
	fixedBelow = 1e16
)

// appendFloat appends the shortest digits that read back as the same float64,
// always with a fraction in fixed notation (100.0, -0.0), and with a signed
// exponent without padding outside of it (1e+16, 5e-324). What is no number in
// JSON becomes null.
func appendFloat(dst []byte, value float64) []byte {
	size := math.Abs(value)
	switch {
	case value == 0:
		if math.Signbit(value) {
			return append(dst, "-0.0"...)
		}
		return append(dst, "0.0"...)
	case math.IsNaN(value) || math.IsInf(value, 0):
		return append(dst, "null"...)
	case size >= fixedFrom && size < fixedBelow:
		start := len(dst)
		dst = strconv.AppendFloat(dst, value, 'f', -1, 64)
		if bytes.IndexByte(dst[start:], '.') < 0 {
			dst = append(dst, ".0"...)
		}
		return dst
	default:
		dst = strconv.AppendFloat(dst, value, 'e', -1, 64)
		// Go pads exponents to two digits: 1e-06.
		if n := len(dst); dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
			dst = append(dst[:n-2], dst[n-1])
		}
		return dst
	}
}

// appendString appends a JSON string: only the quote, the backslash and
// U+0000…U+001F are escaped, everything else goes raw. text must be UTF-8.
func appendString(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, text[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, `\b`...)
		case '\t':
			dst = append(dst, `\t`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\f':
			dst = append(dst, `\f`...)
		case '\r':
			dst = append(dst, `\r`...)
		default:
			dst = append(dst, `\u00`...)
			dst = append(dst, hex[c>>4], hex[c&0xf])
		}
	}
	dst = append(dst, text[start:]...)
	return append(dst, '"')
}
