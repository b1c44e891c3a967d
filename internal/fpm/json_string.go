// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// str reads a string. The result is valid until the next string is read.
func (s *scanner) str() ([]byte, *RejectError) {
	if s.next() != '"' {
		return nil, s.wrongKind("a string")
	}
	start := s.at + 1
	ascii := true
	for i := start; i < len(s.text); i++ {
		c := s.text[i]
		switch {
		case c == '"':
			s.at = i + 1
			return s.checked(s.text[start:i], ascii)
		case c == '\\':
			return s.escaped(start, i)
		case c < ' ':
			s.at = i
			return nil, s.unlike("control characters to be escaped")
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	s.at = len(s.text)
	return nil, s.unlike("the end of a string")
}

func (s *scanner) checked(text []byte, ascii bool) ([]byte, *RejectError) {
	if !ascii && !utf8.Valid(text) {
		return nil, unexpected(quoteShort(text), "UTF-8 text")
	}
	return text, nil
}

// escaped reads a string on from its first escape at i.
func (s *scanner) escaped(start, i int) ([]byte, *RejectError) {
	out := append(s.unescaped[:0], s.text[start:i]...)
	defer func() { s.unescaped = out }()
	for i < len(s.text) {
		c := s.text[i]
		switch {
		case c == '"':
			s.at = i + 1
			return s.checked(out, false)
		case c == '\\':
			r, n := unescape(s.text[i:])
			if n == 0 {
				s.at = i
				return nil, unexpected(fmt.Sprintf("%q at byte %d", s.text[i:min(i+6, len(s.text))], i), "an escape of JSON")
			}
			out = utf8.AppendRune(out, r)
			i += n
		case c < ' ':
			s.at = i
			return nil, s.unlike("control characters to be escaped")
		default:
			out = append(out, c)
			i++
		}
	}
	s.at = len(s.text)
	return nil, s.unlike("the end of a string")
}

// simpleEscapes are the escapes of one letter.
var simpleEscapes = [256]rune{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// unescape reads the escape that text begins with, and the second half of a
// surrogate pair with the first; n is 0 when it is none.
func unescape(text []byte) (r rune, n int) {
	if len(text) < 2 {
		return 0, 0
	}
	if text[1] != 'u' {
		if r = simpleEscapes[text[1]]; r == 0 {
			return 0, 0
		}
		return r, 2
	}
	high, ok := hex4(text)
	switch {
	case !ok:
		return 0, 0
	case !utf16.IsSurrogate(high):
		return high, 6
	}
	low, ok := hex4(text[6:])
	if r = utf16.DecodeRune(high, low); !ok || r == utf8.RuneError {
		return 0, 0
	}
	return r, 12
}

// hex4 reads \uXXXX.
func hex4(text []byte) (r rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	for _, c := range text[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
