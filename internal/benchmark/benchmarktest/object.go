// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmarktest

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Object is a JSON object that keeps the order of its keys. A value is nil, a
// bool, int, float64, string, *Object, List or Raw.
type Object struct {
	keys   []string
	values map[string]any
}

// List is a JSON list.
type List = []any

// Raw is JSON text as it stands, sound or not.
type Raw string

// NewObject makes an object of keys and values in turn.
func NewObject(pairs ...any) *Object {
	o := &Object{values: make(map[string]any)}
	for i := 0; i < len(pairs); i += 2 {
		o.put(pairs[i].(string), pairs[i+1])
	}
	return o
}

// At is the value at a dotted path; numbers are indices of lists. It panics
// when there is none, for a test that names one is wrong.
func (o *Object) At(path string) any {
	var value any = o
	for key := range strings.SplitSeq(path, ".") {
		switch parent := value.(type) {
		case *Object:
			member, ok := parent.values[key]
			if !ok {
				panic(fmt.Sprintf("benchmarktest: no %s in %s", key, path))
			}
			value = member
		case List:
			index, err := strconv.Atoi(key)
			if err != nil {
				panic(err)
			}
			value = parent[index]
		default:
			panic(fmt.Sprintf("benchmarktest: nothing below %s in %s", key, path))
		}
	}
	return value
}

// Object is At for an object.
func (o *Object) Object(path string) *Object { return o.At(path).(*Object) }

// List is At for a list.
func (o *Object) List(path string) List { return o.At(path).(List) }

// Set puts a value at a dotted path, the last key of which may be new.
func (o *Object) Set(path string, value any) {
	dot := strings.LastIndexByte(path, '.')
	if dot < 0 {
		o.put(path, value)
		return
	}
	switch parent := o.At(path[:dot]).(type) {
	case *Object:
		parent.Set(path[dot+1:], value)
	case List:
		index, err := strconv.Atoi(path[dot+1:])
		if err != nil {
			panic(err)
		}
		parent[index] = value
	}
}

func (o *Object) put(key string, value any) {
	if _, known := o.values[key]; !known {
		o.keys = append(o.keys, key)
	}
	o.values[key] = value
}

// Delete takes a key away.
func (o *Object) Delete(path string) {
	if dot := strings.LastIndexByte(path, '.'); dot >= 0 {
		o.Object(path[:dot]).Delete(path[dot+1:])
		return
	}
	for i, key := range o.keys {
		if key == path {
			o.keys = append(o.keys[:i], o.keys[i+1:]...)
			break
		}
	}
	delete(o.values, path)
}

// Clone copies a value and all below it.
func Clone[T any](value T) T { return clone(value).(T) }

func clone(value any) any {
	switch value := value.(type) {
	case *Object:
		copied := NewObject()
		for _, key := range value.keys {
			copied.put(key, clone(value.values[key]))
		}
		return copied
	case List:
		copied := make(List, len(value))
		for i, item := range value {
			copied[i] = clone(item)
		}
		return copied
	default:
		return value
	}
}

// JSON is the text as Python's json.dump(…, indent=2) writes it.
func (o *Object) JSON() []byte { return appendValue(nil, o, "\n") }

func appendValue(dst []byte, value any, newline string) []byte {
	switch value := value.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, value)
	case int:
		return strconv.AppendInt(dst, int64(value), 10)
	case float64:
		return append(dst, pythonFloat(value)...)
	case string:
		return appendString(dst, value)
	case Raw:
		return append(dst, value...)
	case List:
		if len(value) == 0 {
			return append(dst, "[]"...)
		}
		inner := newline + "  "
		for i, item := range value {
			dst = append(dst, "[,"[min(i, 1)])
			dst = append(dst, inner...)
			dst = appendValue(dst, item, inner)
		}
		return append(append(dst, newline...), ']')
	case *Object:
		if len(value.keys) == 0 {
			return append(dst, "{}"...)
		}
		inner := newline + "  "
		for i, key := range value.keys {
			dst = append(dst, "{,"[min(i, 1)])
			dst = append(dst, inner...)
			dst = appendString(dst, key)
			dst = append(dst, ": "...)
			dst = appendValue(dst, value.values[key], inner)
		}
		return append(append(dst, newline...), '}')
	default:
		panic(fmt.Sprintf("benchmarktest: a %T is no JSON", value))
	}
}

// pythonFloat is repr of a float: always with a point or an exponent of two
// digits.
func pythonFloat(value float64) string {
	switch {
	case math.IsNaN(value):
		return "NaN"
	case math.IsInf(value, 0):
		return map[bool]string{true: "Infinity", false: "-Infinity"}[value > 0]
	}
	if size := math.Abs(value); value != 0 && (size < 1e-4 || size >= 1e16) {
		return strconv.FormatFloat(value, 'e', -1, 64)
	}
	text := strconv.FormatFloat(value, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

func appendString(dst []byte, text string) []byte {
	dst = append(dst, '"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r >= ' ' && r < 0x7f:
			dst = append(dst, byte(r))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			dst = fmt.Appendf(dst, `\u%04x\u%04x`, high, low)
		default:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		}
	}
	return append(dst, '"')
}
