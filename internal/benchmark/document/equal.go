// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package document

import "bytes"

// Equal reports whether two values mean the same: objects whatever the order of
// their keys, strings whatever their escapes, numbers by value (1 equals 1.0, as
// in Python). Missing equals only Missing.
func Equal(a, b Value) bool {
	if a.Kind() != b.Kind() {
		return false
	}
	switch a.Kind() {
	case Bool:
		return a.node().plain == b.node().plain
	case Number:
		return equalNumbers(a, b)
	case String:
		return a.sameString(b)
	case Array:
		return equalItems(a, b)
	case Object:
		return equalMembers(a, b)
	default:
		return true
	}
}

func equalNumbers(a, b Value) bool {
	if bytes.Equal(a.text(), b.text()) {
		return true
	}
	// Both are integers: what fits 64 bits is compared exactly, since a double
	// would not tell neighbours apart.
	x, exact := a.Int()
	y, alsoExact := b.Int()
	if exact && alsoExact {
		return x == y
	}
	if a.node().plain && b.node().plain {
		return false
	}
	f, _ := a.Float()
	g, _ := b.Float()
	return f == g
}

func equalItems(a, b Value) bool {
	x, y := a.at+1, b.at+1
	for x < a.node().next && y < b.node().next {
		if !Equal(Value{a.document, x}, Value{b.document, y}) {
			return false
		}
		x, y = a.document.nodes[x].next, b.document.nodes[y].next
	}
	return x == a.node().next && y == b.node().next
}

// equalMembers compares in the order of the text as long as the keys agree,
// which is all the way for two files of one encoder; then by key.
func equalMembers(a, b Value) bool {
	x, y := a.at+1, b.at+1
	for x < a.node().next && y < b.node().next {
		if !(Value{a.document, x}).sameString(Value{b.document, y}) {
			return equalByKey(a, b, x, y)
		}
		if !Equal(Value{a.document, x + 1}, Value{b.document, y + 1}) {
			return false
		}
		x, y = a.document.nodes[x+1].next, b.document.nodes[y+1].next
	}
	return x == a.node().next && y == b.node().next
}

// equalByKey compares the members of a from node x on with those of b from y on.
func equalByKey(a, b Value, x, y uint32) bool {
	rest := make(map[string]Value)
	for ; y < b.node().next; y = b.document.nodes[y+1].next {
		rest[(Value{b.document, y}).string()] = Value{b.document, y + 1}
	}
	for ; x < a.node().next; x = a.document.nodes[x+1].next {
		key := (Value{a.document, x}).string()
		other, found := rest[key]
		if !found || !Equal(Value{a.document, x + 1}, other) {
			return false
		}
		delete(rest, key)
	}
	return len(rest) == 0
}
