// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind of a Value.
type Kind uint8

// The kinds. Missing is the zero Kind: no such value.
const (
	Missing Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

var kindNames = [...]string{"nothing", "null", "a boolean", "a number", "a string", "a list", "an object"}

func (k Kind) String() string { return kindNames[k] }

// Document is a JSON text that was read. It does not change.
type Document struct {
	text  []byte
	nodes []node
}

// Root is the value that the text is.
func (d *Document) Root() Value { return Value{document: d} }

// Value is one value of a document. The zero Value is of kind Missing; all
// methods take it. A Value keeps its whole document in memory; see Detach.
type Value struct {
	document *Document
	at       uint32
}

func (v Value) node() *node { return &v.document.nodes[v.at] }

func (v Value) text() []byte {
	n := v.node()
	return v.document.text[n.start:n.end]
}

// Kind of the value.
func (v Value) Kind() Kind {
	if v.document == nil {
		return Missing
	}
	return v.node().kind
}

// Exists reports whether there is a value, null included.
func (v Value) Exists() bool { return v.document != nil }

// Given reports whether there is a value other than null.
func (v Value) Given() bool { return v.Kind() > Null }

// Get is the member of an object by its key.
func (v Value) Get(key string) Value {
	if v.Kind() != Object {
		return Value{}
	}
	nodes := v.document.nodes
	for at, end := v.at+1, v.node().next; at < end; at = nodes[at+1].next {
		name := Value{v.document, at}
		if nodes[at].plain && string(name.text()) == key || !nodes[at].plain && name.string() == key {
			return Value{v.document, at + 1}
		}
	}
	return Value{}
}

// Path is Get by one key after the other.
func (v Value) Path(keys ...string) Value {
	for _, key := range keys {
		v = v.Get(key)
	}
	return v
}

// Members of an object, in the order of the text.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if v.Kind() != Object {
			return
		}
		for at, end := v.at+1, v.node().next; at < end; at = v.document.nodes[at+1].next {
			if !yield((Value{v.document, at}).string(), Value{v.document, at + 1}) {
				return
			}
		}
	}
}

// Items of an array with their index.
func (v Value) Items() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		if v.Kind() != Array {
			return
		}
		i := 0
		for at, end := v.at+1, v.node().next; at < end; at = v.document.nodes[at].next {
			if !yield(i, Value{v.document, at}) {
				return
			}
			i++
		}
	}
}

// Index is the item of an array. It walks the items before it.
func (v Value) Index(index int) Value {
	for i, item := range v.Items() {
		if i == index {
			return item
		}
	}
	return Value{}
}

// Len is the number of items or members; it walks them.
func (v Value) Len() int {
	count := 0
	switch v.Kind() {
	case Array:
		for range v.Items() {
			count++
		}
	case Object:
		nodes := v.document.nodes
		for at, end := v.at+1, v.node().next; at < end; at = nodes[at+1].next {
			count++
		}
	}
	return count
}

// Text is the meaning of a string.
func (v Value) Text() (string, bool) {
	if v.Kind() != String {
		return "", false
	}
	return v.string(), true
}

func (v Value) string() string {
	if v.node().plain {
		return string(v.text())
	}
	return string(appendUnescaped(nil, v.text()))
}

func (v Value) sameString(other Value) bool {
	if v.node().plain && other.node().plain {
		return bytes.Equal(v.text(), other.text())
	}
	return v.string() == other.string()
}

// Bool is a boolean.
func (v Value) Bool() (value, ok bool) {
	if v.Kind() != Bool {
		return false, false
	}
	return v.node().plain, true
}

// Int is a number that is written without fraction and exponent and fits 64
// bits: what Python reads as int.
func (v Value) Int() (int64, bool) {
	if v.Kind() != Number || !v.node().plain {
		return 0, false
	}
	value, err := strconv.ParseInt(string(v.text()), 10, 64)
	return value, err == nil
}

// Float is any number, as the nearest double. It is finite.
func (v Value) Float() (float64, bool) {
	if v.Kind() != Number {
		return 0, false
	}
	value, _ := strconv.ParseFloat(string(v.text()), 64)
	return value, true
}

// JSON is the text of the value as it stands in the document. The caller must
// not change it. It is nil for Missing.
func (v Value) JSON() []byte {
	if v.document == nil {
		return nil
	}
	n := v.node()
	if n.kind == String {
		return v.document.text[n.start-1 : n.end+1]
	}
	return v.text()
}

// Detach copies the value into a document of its own, so that it can be kept
// without the one it came from.
func (v Value) Detach() Value {
	if v.document == nil {
		return v
	}
	own := &Document{text: bytes.Clone(v.JSON()), nodes: make([]node, v.node().next-v.at)}
	shift := uint32(0)
	if v.Kind() == String {
		shift = 1
	}
	base := v.node().start - shift
	for i := range own.nodes {
		n := v.document.nodes[int(v.at)+i]
		n.start -= base
		n.end -= base
		n.next -= v.at
		own.nodes[i] = n
	}
	return own.Root()
}

// shortBytes is how much of a value a message shows.
const shortBytes = 120

// Short is the value for a message: its text without blanks, cut when long.
// Missing is "absent".
func (v Value) Short() string {
	if v.document == nil {
		return "absent"
	}
	text := v.JSON()
	// Indentation of a deep place is much of the text, but not all of it.
	short := appendCompact(nil, text[:min(len(text), 16*shortBytes)])
	if len(short) <= shortBytes && len(text) <= 16*shortBytes {
		return string(short)
	}
	end := min(len(short), shortBytes)
	for end > 0 && end < len(short) && !utf8.RuneStart(short[end]) {
		end--
	}
	return strings.ToValidUTF8(string(short[:end]), "") + "…"
}

// AppendCompact appends the text of the value without blanks.
func (v Value) AppendCompact(dst []byte) []byte { return appendCompact(dst, v.JSON()) }

// appendCompact takes the beginning of a JSON text, too.
func appendCompact(dst, text []byte) []byte {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\' && i+1 < len(text):
			dst = append(dst, c)
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\n' || c == '\r' || c == '\t'):
			continue
		}
		dst = append(dst, text[i])
	}
	return dst
}
