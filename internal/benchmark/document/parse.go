// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
)

const (
	// MaxDepth is how deep arrays and objects may nest. Artifacts nest 12 deep.
	MaxDepth = 64
	// MaxBytes is the longest text: offsets are 32 bits wide.
	MaxBytes = math.MaxInt32
	// bytesPerNode bounds the nodes of a text: no more than one for so many
	// bytes, beyond minNodes. Python's indented artifacts have one for 20 or
	// more, the tightest rewriting of them one for 8.
	bytesPerNode = 4
	minNodes     = 1024
)

// node is a value or a key. The nodes of a document stand in the order of its
// text; those of a subtree are contiguous.
type node struct {
	// start and end bound the text of the value; strings without their quotes.
	start, end uint32
	// next is the node after this one's subtree.
	next uint32
	kind Kind
	// plain: a string without escapes, a number without fraction and exponent,
	// the boolean true.
	plain bool
}

type parser struct {
	text  []byte
	at    int
	nodes []node
	most  int
	depth int
}

// Parse reads text, which must hold one JSON value and be UTF-8. The Document
// keeps text; the caller must not change it. The error is an *Error.
//
// An object that has a key twice is refused: no encoder of artifacts writes it,
// and readers differ in what they take.
func Parse(text []byte) (*Document, error) {
	if len(text) > MaxBytes {
		return nil, &Error{Line: 1, Column: 1, Got: fmt.Sprintf("%d bytes", len(text)), Want: fmt.Sprintf("at most %d", MaxBytes)}
	}
	p := parser{text: text, most: max(minNodes, len(text)/bytesPerNode), nodes: make([]node, 0, min(len(text)/16+1, 1<<20))}
	p.blanks()
	if err := p.value(); err != nil {
		return nil, err
	}
	p.blanks()
	if p.at < len(text) {
		return nil, p.unexpected("the end of the file")
	}
	return &Document{text: text, nodes: p.nodes}, nil
}

func (p *parser) value() error {
	if p.at >= len(p.text) {
		return p.unexpected("a value")
	}
	switch c := p.text[p.at]; {
	case c == '{':
		return p.object()
	case c == '[':
		return p.array()
	case c == '"':
		return p.str()
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	}
	for _, literal := range []struct {
		text  string
		kind  Kind
		plain bool
	}{{"null", Null, false}, {"true", Bool, true}, {"false", Bool, false}} {
		if p.word(literal.text) {
			err := p.add(node{start: p.offset(0), end: p.offset(len(literal.text)), kind: literal.kind, plain: literal.plain})
			p.at += len(literal.text)
			return err
		}
	}
	for _, word := range []string{"NaN", "Infinity"} {
		if p.word(word) {
			return p.notFinite(word)
		}
	}
	return p.unexpected("a value")
}

func (p *parser) object() error {
	return p.nested(Object, '}', func() error {
		if p.at >= len(p.text) || p.text[p.at] != '"' {
			return p.unexpected("a key")
		}
		if err := p.str(); err != nil {
			return err
		}
		p.blanks()
		if p.at >= len(p.text) || p.text[p.at] != ':' {
			return p.unexpected(`":"`)
		}
		p.at++
		p.blanks()
		return p.value()
	})
}

func (p *parser) array() error { return p.nested(Array, ']', p.value) }

// nested reads an object or array; element reads one element of it.
func (p *parser) nested(kind Kind, closing byte, element func() error) error {
	if p.depth == MaxDepth {
		return p.wrong("one level more", fmt.Sprintf("at most %d levels", MaxDepth))
	}
	self := len(p.nodes)
	if err := p.add(node{start: p.offset(0), kind: kind}); err != nil {
		return err
	}
	p.depth++
	p.at++
	p.blanks()
	for first := true; ; first = false {
		if p.at < len(p.text) && p.text[p.at] == closing && first {
			break
		}
		if err := element(); err != nil {
			return err
		}
		p.blanks()
		if p.at >= len(p.text) || p.text[p.at] != closing && p.text[p.at] != ',' {
			return p.unexpected(`"," or "` + string(closing) + `"`)
		}
		if p.text[p.at] == closing {
			break
		}
		p.at++
		p.blanks()
	}
	p.at++
	p.depth--
	p.nodes[self].end = p.offset(0)
	p.nodes[self].next = uint32(len(p.nodes))
	if kind == Object {
		return p.checkKeys(self)
	}
	return nil
}

// checkKeys refuses an object that has a key twice.
func (p *parser) checkKeys(self int) error {
	const few = 16
	var small [few]Value
	seen := small[:0]
	var many map[string]struct{}
	document := &Document{text: p.text, nodes: p.nodes}
	for at := uint32(self) + 1; at < p.nodes[self].next; at = p.nodes[at+1].next {
		key := Value{document: document, at: at}
		if many == nil && len(seen) == few {
			many = make(map[string]struct{}, 2*few)
			for _, other := range seen {
				many[other.string()] = struct{}{}
			}
		}
		twice := false
		if many != nil {
			_, twice = many[key.string()]
			many[key.string()] = struct{}{}
		} else {
			for _, other := range seen {
				twice = twice || other.sameString(key)
			}
			seen = append(seen, key)
		}
		if twice {
			p.at = int(p.nodes[at].start)
			return p.wrong("the key "+key.Short()+" again", "each key once")
		}
	}
	return nil
}

// number reads a number by the grammar of JSON.
func (p *parser) number() error {
	start := p.at
	if p.text[p.at] == '-' {
		p.at++
		if p.word("Infinity") {
			p.at = start
			return p.notFinite("-Infinity")
		}
	}
	switch {
	case p.digits() == 0:
		return p.unexpected("a digit")
	case p.leadingZero(start):
		p.at = start
		return p.wrong("a number that begins with 0", "none")
	}
	plain := true
	if p.at < len(p.text) && p.text[p.at] == '.' {
		plain = false
		p.at++
		if p.digits() == 0 {
			return p.unexpected("a digit")
		}
	}
	if p.at < len(p.text) && (p.text[p.at] == 'e' || p.text[p.at] == 'E') {
		plain = false
		p.at++
		if p.at < len(p.text) && (p.text[p.at] == '+' || p.text[p.at] == '-') {
			p.at++
		}
		if p.digits() == 0 {
			return p.unexpected("a digit")
		}
	}
	text := p.text[start:p.at]
	// Only an exponent or hundreds of digits lead beyond a double.
	if !plain || len(text) > 300 {
		if value, _ := strconv.ParseFloat(string(text), 64); math.IsInf(value, 0) {
			p.at = start
			return p.notFinite("a number beyond a double")
		}
	}
	return p.add(node{start: uint32(start), end: p.offset(0), kind: Number, plain: plain})
}

// leadingZero reports whether the integer that begins at start and ends here
// has a 0 before other digits.
func (p *parser) leadingZero(start int) bool {
	digits := bytes.TrimPrefix(p.text[start:p.at], []byte("-"))
	return len(digits) > 1 && digits[0] == '0'
}

func (p *parser) digits() int {
	start := p.at
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
	}
	return p.at - start
}

func (p *parser) blanks() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\n', '\r', '\t':
			p.at++
		default:
			return
		}
	}
}

func (p *parser) word(word string) bool {
	return len(p.text)-p.at >= len(word) && string(p.text[p.at:p.at+len(word)]) == word
}

func (p *parser) offset(ahead int) uint32 { return uint32(p.at + ahead) }

// add appends a node without a subtree, or one that nested completes.
func (p *parser) add(n node) error {
	if len(p.nodes) >= p.most {
		return p.wrong("one value more", fmt.Sprintf("at most %d values in a file of %d bytes", p.most, len(p.text)))
	}
	n.next = uint32(len(p.nodes)) + 1
	p.nodes = append(p.nodes, n)
	return nil
}

// unexpected is an error about the byte at hand.
func (p *parser) unexpected(want string) error {
	if p.at >= len(p.text) {
		return p.wrong("the end of the file", want)
	}
	return p.wrong(strconv.QuoteRune(rune(p.text[p.at])), want)
}

func (p *parser) notFinite(got string) error {
	err := p.wrong(got, "a finite number")
	err.NotFinite = true
	return err
}

func (p *parser) wrong(got, want string) *Error {
	before := p.text[:min(p.at, len(p.text))]
	return &Error{
		Line:   bytes.Count(before, []byte{'\n'}) + 1,
		Column: len(before) - bytes.LastIndexByte(before, '\n'),
		Got:    got, Want: want,
	}
}
