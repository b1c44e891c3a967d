// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"fmt"
)

// scanner reads JSON text (RFC 8259) from one line, token by token. It is
// stricter than encoding/json in two points: text must be UTF-8, and a \u
// escape must not be half of a surrogate pair.
//
// Its errors have no Field yet, as those of a walker.
type scanner struct {
	text []byte
	at   int
	// unescaped holds the last string that had escapes.
	unescaped []byte
}

func (s *scanner) reset(text []byte) { s.text, s.at = text, 0 }

// next skips blanks and returns the byte that comes, 0 at the end of the line.
func (s *scanner) next() byte {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// ends checks that nothing but blanks is left.
func (s *scanner) ends() *RejectError {
	if s.next() != 0 || s.at < len(s.text) {
		return s.unlike("the end of the line")
	}
	return nil
}

// unlike is the error of a byte that should not come here.
func (s *scanner) unlike(want string) *RejectError {
	if s.at >= len(s.text) {
		return unexpected("the end of the line", want)
	}
	return unexpected(fmt.Sprintf("%q at byte %d", s.text[s.at], s.at), want)
}

// opens reads the bracket that begins an object or an array, and reports
// whether it is empty; then it has read the end too.
func (s *scanner) opens(open, end byte) (empty bool, rejected *RejectError) {
	if s.next() != open {
		return false, s.wrongKind(map[byte]string{'{': "an object", '[': "an array"}[open])
	}
	s.at++
	if s.next() != end {
		return false, nil
	}
	s.at++
	return true, nil
}

// goesOn reads the comma behind an element, or the end of them.
func (s *scanner) goesOn(end byte) (more bool, rejected *RejectError) {
	switch s.next() {
	case ',':
		s.at++
		return true, nil
	case end:
		s.at++
		return false, nil
	}
	return false, s.unlike(fmt.Sprintf("',' or %q", end))
}

// key reads a key and the colon behind it. The result is valid until the next
// string is read.
func (s *scanner) key() ([]byte, *RejectError) {
	if s.next() != '"' {
		return nil, s.unlike("a key in double quotes")
	}
	key, rejected := s.str()
	if rejected != nil {
		return nil, rejected
	}
	if s.next() != ':' {
		return nil, s.unlike("':'").under(fieldName(key))
	}
	s.at++
	return key, nil
}

// number reads the text of a number. It is an integer when it has neither a
// fraction nor an exponent.
func (s *scanner) number() (text []byte, integer bool, rejected *RejectError) {
	start := s.at
	if s.peek() == '-' {
		s.at++
	}
	if s.peek() == '0' {
		s.at++
	} else if !s.digits() {
		return nil, false, s.unlike("a digit")
	}
	integer = true
	if s.peek() == '.' {
		integer = false
		s.at++
		if !s.digits() {
			return nil, false, s.unlike("a digit behind the point")
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		integer = false
		s.at++
		if c = s.peek(); c == '+' || c == '-' {
			s.at++
		}
		if !s.digits() {
			return nil, false, s.unlike("a digit of the exponent")
		}
	}
	return s.text[start:s.at], integer, nil
}

// digits reads at least one.
func (s *scanner) digits() bool {
	start := s.at
	for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at > start
}

func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// literal reads true, false or null.
func (s *scanner) literal(word string) *RejectError {
	if end := s.at + len(word); end <= len(s.text) && string(s.text[s.at:end]) == word {
		s.at = end
		return nil
	}
	return s.unlike(aValue)
}

const aValue = "a JSON value"

// skip reads over one value of any kind. depth is the level that it has if it
// is an object or an array.
func (s *scanner) skip(depth int) *RejectError {
	switch c := s.next(); c {
	case '"':
		_, rejected := s.str()
		return rejected
	case '{', '[':
		if depth > maxDepth {
			return tooDeep("")
		}
		return s.skipInside(c, depth)
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		if c == '-' || '0' <= c && c <= '9' {
			_, _, rejected := s.number()
			return rejected
		}
		return s.unlike(aValue)
	}
}

func (s *scanner) skipInside(open byte, depth int) *RejectError {
	end := open + 2 // '}' and ']' are two behind '{' and '['
	empty, rejected := s.opens(open, end)
	for more := !empty; more && rejected == nil; {
		if open == '{' {
			if _, rejected = s.key(); rejected != nil {
				return rejected
			}
		}
		if rejected = s.skip(depth + 1); rejected == nil {
			more, rejected = s.goesOn(end)
		}
	}
	return rejected
}

// fields reads an object whose known keys are names, in any order: read is
// called in front of the value of names[i], all other values are skipped. depth
// is the object's level. seen has bit i for names[i].
func (s *scanner) fields(depth int, names []string, read func(i int) *RejectError) (seen int, rejected *RejectError) {
	empty, rejected := s.opens('{', '}')
	for more := !empty; more && rejected == nil; {
		var key []byte
		if key, rejected = s.key(); rejected != nil {
			return seen, rejected
		}
		i := 0
		for i < len(names) && string(key) != names[i] {
			i++
		}
		switch {
		case i == len(names):
			rejected = s.skip(depth + 1)
		case seen&(1<<i) != 0:
			rejected = twice(names[i])
		default:
			seen |= 1 << i
			if rejected = read(i); rejected != nil {
				rejected.under(names[i])
			}
		}
		if rejected == nil {
			more, rejected = s.goesOn('}')
		}
	}
	return seen, rejected
}

// firstMissing is the first of names that was not seen.
func firstMissing(seen int, names []string) (name string, is bool) {
	for i, name := range names {
		if seen&(1<<i) == 0 {
			return name, true
		}
	}
	return "", false
}

// wrongKind is the error of a value that is not of the wanted kind, or of
// bytes that are no value.
func (s *scanner) wrongKind(want string) *RejectError {
	c := s.next()
	start := s.at
	switch {
	case c == '{':
		return unexpected("an object", want)
	case c == '[':
		return unexpected("an array", want)
	case c == '"':
		text, rejected := s.str()
		if rejected != nil {
			return rejected
		}
		return unexpected("the string "+quoteShort(text), want)
	}
	if rejected := s.skip(maxDepth); rejected != nil {
		return rejected
	}
	return unexpected(string(s.text[start:s.at]), want)
}
