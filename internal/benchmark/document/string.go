// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// str reads a string and checks its escapes and its UTF-8.
func (p *parser) str() error {
	p.at++
	start, plain := p.at, true
	for {
		if p.at >= len(p.text) {
			return p.unexpected(`the end of a string`)
		}
		switch c := p.text[p.at]; {
		case c == '"':
			err := p.add(node{start: uint32(start), end: p.offset(0), kind: String, plain: plain})
			p.at++
			return err
		case c == '\\':
			plain = false
			if err := p.escape(); err != nil {
				return err
			}
		case c < ' ':
			return p.wrong(fmt.Sprintf("control character 0x%02x", c), "it escaped")
		case c < utf8.RuneSelf:
			p.at++
		default:
			r, size := utf8.DecodeRune(p.text[p.at:])
			if r == utf8.RuneError && size < 2 {
				return p.wrong(fmt.Sprintf("byte 0x%02x", c), "UTF-8")
			}
			p.at += size
		}
	}
}

func (p *parser) escape() error {
	p.at++
	if p.at >= len(p.text) {
		return p.unexpected("an escape")
	}
	if bytes.IndexByte([]byte(`"\/bfnrt`), p.text[p.at]) >= 0 {
		p.at++
		return nil
	}
	if p.text[p.at] != 'u' {
		return p.unexpected("an escape")
	}
	p.at++
	for range 4 {
		if p.at >= len(p.text) || !isHex(p.text[p.at]) {
			return p.unexpected("a hexadecimal digit")
		}
		p.at++
	}
	return nil
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// appendUnescaped appends the meaning of the text of a string that str took.
// Half of a surrogate pair becomes U+FFFD.
func appendUnescaped(dst, text []byte) []byte {
	for {
		plain := bytes.IndexByte(text, '\\')
		if plain < 0 {
			return append(dst, text...)
		}
		dst = append(dst, text[:plain]...)
		c := text[plain+1]
		text = text[plain+2:]
		switch c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r := hex4(text)
			text = text[4:]
			if utf16.IsSurrogate(r) {
				second := rune(utf8.RuneError)
				if len(text) >= 6 && text[0] == '\\' && text[1] == 'u' {
					second = hex4(text[2:])
				}
				if r = utf16.DecodeRune(r, second); r != utf8.RuneError {
					text = text[6:]
				}
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, c)
		}
	}
}

func hex4(text []byte) rune {
	r, _ := strconv.ParseUint(string(text[:4]), 16, 32)
	return rune(r)
}
