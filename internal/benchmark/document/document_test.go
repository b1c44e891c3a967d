// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func parse(t testing.TB, text string) Value {
	t.Helper()
	document, err := Parse([]byte(text))
	require.NoError(t, err)
	return document.Root()
}

func TestParseRefuses(t *testing.T) {
	for _, test := range []struct {
		name, text, want string
		notFinite        bool
	}{
		{name: "nothing", text: "", want: "line 1, column 1: got the end of the file, want a value"},
		{name: "blanks", text: " \n ", want: "line 2, column 2: got the end of the file, want a value"},
		{name: "two values", text: "1 2", want: "line 1, column 3: got '2', want the end of the file"},
		{name: "cut in an object", text: "{\n\"a\": 1", want: "line 2, column 7: got the end of the file, want \",\" or \"}\""},
		{name: "cut in a key", text: `{"a`, want: "line 1, column 4: got the end of the file, want the end of a string"},
		{name: "cut after a key", text: `{"a"`, want: "line 1, column 5: got the end of the file, want \":\""},
		{name: "cut in an array", text: `[1,`, want: "line 1, column 4: got the end of the file, want a value"},
		{name: "cut in an escape", text: `"\`, want: "line 1, column 3: got the end of the file, want an escape"},
		{name: "cut in a code point", text: `"\u12`, want: "line 1, column 6: got the end of the file, want a hexadecimal digit"},
		{name: "cut in a word", text: `tru`, want: "line 1, column 1: got 't', want a value"},
		{name: "comma at the end of an array", text: `[1,]`, want: "line 1, column 4: got ']', want a value"},
		{name: "comma at the end of an object", text: `{"a":1,}`, want: "line 1, column 8: got '}', want a key"},
		{name: "key without quotes", text: `{a:1}`, want: "line 1, column 2: got 'a', want a key"},
		{name: "wrong escape", text: `"\x41"`, want: "line 1, column 3: got 'x', want an escape"},
		{name: "control character", text: "\"a\nb\"", want: "line 1, column 3: got control character 0x0a, want it escaped"},
		{name: "not UTF-8", text: "\"\xff\"", want: "line 1, column 2: got byte 0xff, want UTF-8"},
		{name: "byte order mark", text: "\ufeff1", want: "line 1, column 1: got 'ï', want a value"},
		{name: "leading zero", text: `[01]`, want: "line 1, column 2: got a number that begins with 0, want none"},
		{name: "plus", text: `+1`, want: "line 1, column 1: got '+', want a value"},
		{name: "no digit after the point", text: `1.`, want: "line 1, column 3: got the end of the file, want a digit"},
		{name: "no digit in the exponent", text: `1e+`, want: "line 1, column 4: got the end of the file, want a digit"},
		{name: "key twice", text: `{"a":1,"b":2,"\u0061":3}`, want: `line 1, column 15: got the key "\u0061" again, want each key once`},
		{name: "NaN", text: `{"a": NaN}`, want: "line 1, column 7: got NaN, want a finite number", notFinite: true},
		{name: "Infinity", text: `Infinity`, want: "line 1, column 1: got Infinity, want a finite number", notFinite: true},
		{name: "-Infinity", text: `[-Infinity]`, want: "line 1, column 2: got -Infinity, want a finite number", notFinite: true},
		{name: "beyond a double", text: `1e999`, want: "line 1, column 1: got a number beyond a double, want a finite number", notFinite: true},
		{
			name: "hundreds of digits", text: strings.Repeat("9", 400),
			want: "line 1, column 1: got a number beyond a double, want a finite number", notFinite: true,
		},
		{
			name: "too deep", text: strings.Repeat("[", MaxDepth+1),
			want: "line 1, column 65: got one level more, want at most 64 levels",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse([]byte(test.text))
			require.EqualError(t, err, test.want)
			var wrong *Error
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, test.notFinite, wrong.NotFinite)
		})
	}
}

// An object with many keys is searched for a repeated one in another way.
func TestKeyTwiceAmongMany(t *testing.T) {
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "%c\"%d\":%d", "{,"[min(i, 1)], i, i)
	}
	_, err := Parse([]byte(text.String() + "}"))
	require.NoError(t, err)
	_, err = Parse([]byte(text.String() + `,"7":0}`))
	assert.ErrorContains(t, err, `got the key "7" again`)
}

func TestDeepestNesting(t *testing.T) {
	value := parse(t, strings.Repeat("[", MaxDepth)+strings.Repeat("]", MaxDepth))
	depth := 0
	for ; value.Exists(); value = value.Index(0) {
		depth++
	}
	assert.Equal(t, MaxDepth, depth)
}

// What a text may cost is a small multiple of its length, whatever is in it.
func TestNodesAreBounded(t *testing.T) {
	const length = 1 << 20
	text := []byte("[" + strings.Repeat("0,", length/2) + "0]")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Parse(text)
	runtime.ReadMemStats(&after)
	require.ErrorContains(t, err, "got one value more, want at most 262144 values in a file of 1048579 bytes")
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(24*length), "all that was ever asked for, while the nodes grew")
}

func TestValues(t *testing.T) {
	root := parse(t, `{"null": null, "yes": true, "no": false, "int": -12, "float": 1.5e1, "big": 9223372036854775808,
		"text": "a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\ud800x", "k\u0065y": 1, "list": [10, [20, 21], {"a": 1}], "object": {"z": 1, "a": 2}}`)

	assert.Equal(t, Object, root.Kind())
	assert.Equal(t, 10, root.Len())
	assert.True(t, root.Get("null").Exists())
	assert.False(t, root.Get("null").Given())
	assert.True(t, root.Get("no").Given())
	assert.False(t, root.Get("nothing").Exists())
	assert.Equal(t, Missing, root.Path("int", "further", "down").Kind())

	yes, ok := root.Get("yes").Bool()
	assert.True(t, yes && ok)
	no, ok := root.Get("no").Bool()
	assert.True(t, !no && ok)

	number, ok := root.Get("int").Int()
	assert.True(t, ok)
	assert.EqualValues(t, -12, number)
	_, ok = root.Get("float").Int()
	assert.False(t, ok, "15.0 is no integer")
	_, ok = root.Get("big").Int()
	assert.False(t, ok, "2⁶³ does not fit")
	float, ok := root.Get("float").Float()
	assert.True(t, ok)
	assert.InDelta(t, 15, float, 0)

	text, ok := root.Get("text").Text()
	assert.True(t, ok)
	assert.Equal(t, "a\"\\/\b\f\n\r\té😀\ufffdx", text)
	assert.True(t, root.Get("key").Exists(), "a key with an escape")

	list := root.Get("list")
	assert.Equal(t, 3, list.Len())
	assert.Equal(t, "[20,21]", list.Index(1).Short())
	assert.False(t, list.Index(3).Exists())
	var keys []string
	for key := range root.Get("object").Members() {
		keys = append(keys, key)
	}
	assert.Equal(t, []string{"z", "a"}, keys, "the order of the text")

	// Nothing answers for a value of another kind.
	for key, value := range root.Members() {
		_, isText := value.Text()
		_, isBool := value.Bool()
		_, isInt := value.Int()
		_, isFloat := value.Float()
		assert.Equal(t, value.Kind() == String, isText, key)
		assert.Equal(t, value.Kind() == Bool, isBool, key)
		assert.Equal(t, key == "int" || key == "key", isInt, key)
		assert.Equal(t, value.Kind() == Number, isFloat, key)
	}
}

func TestEqual(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{`null`, `null`, true},
		{`null`, `false`, false},
		{`true`, `true`, true},
		{`true`, `1`, false},
		{`1`, `1.0`, true},
		{`10`, `1e1`, true},
		{`0.1`, `0.10`, true},
		{`-0`, `0`, true},
		{`1`, `2`, false},
		{`9007199254740993`, `9007199254740992`, false},
		{`18446744073709551616`, `18446744073709551617`, false},
		{`"a"`, `"\u0061"`, true},
		{`"a"`, `"b"`, false},
		{`[]`, `{}`, false},
		{`[1, 2]`, `[1,2.0]`, true},
		{`[1, 2]`, `[2, 1]`, false},
		{`[1]`, `[1, 2]`, false},
		{`{"a": 1, "b": 2}`, `{"b": 2, "a": 1}`, true},
		{`{"x": 0, "a": 1, "b": 2}`, `{"x": 0, "b": 2, "a": 3}`, false},
		{`{"a": null}`, `{}`, false},
		{`{"a": null}`, `{"b": null}`, false},
		{`{"a": 1, "b": 1}`, `{"b": 1, "c": 1}`, false},
		{`{"a": 1, "b": 1}`, `{"b": 1}`, false},
		{`{"a": 1}`, `{"\u0061": 1}`, true},
	} {
		a, b := parse(t, test.a), parse(t, test.b)
		assert.Equal(t, test.want, Equal(a, b), "%s and %s", test.a, test.b)
		assert.Equal(t, test.want, Equal(b, a), "%s and %s", test.b, test.a)
	}
	assert.True(t, Equal(Value{}, Value{}))
	assert.False(t, Equal(Value{}, parse(t, "null")))
}

// A large object in another order is compared in one walk.
func TestEqualOfLargeObjectsInOtherOrder(t *testing.T) {
	const size = 50_000
	var forth, back strings.Builder
	for i := range size {
		fmt.Fprintf(&forth, "%c\"%d\":%d", "{,"[min(i, 1)], i, i)
		fmt.Fprintf(&back, "%c\"%d\":%d", "{,"[min(i, 1)], size-1-i, size-1-i)
	}
	assert.True(t, Equal(parse(t, forth.String()+"}"), parse(t, back.String()+"}")))
}

func TestDetach(t *testing.T) {
	root := parse(t, `{"before": 1, "it": {"a": [1, "x\n", {}], "b": null}, "text": "y", "after": 2}`)
	for _, key := range []string{"before", "it", "text", "after"} {
		value := root.Get(key)
		own := value.Detach()
		assert.True(t, Equal(value, own), key)
		assert.Equal(t, string(value.JSON()), string(own.document.text), key)
	}
	assert.False(t, root.Get("nothing").Detach().Exists())
	// A detached value can be detached and walked as any other.
	inner := root.Get("it").Detach().Get("a").Detach()
	assert.Equal(t, 3, inner.Len())
	assert.Equal(t, `"x\n"`, inner.Index(1).Detach().Short())
}

func TestShort(t *testing.T) {
	assert.Equal(t, "absent", Value{}.Short())
	for text, want := range map[string]string{
		"{ \"a b\" : [ 1 ,\n\"\\\" x\" ] }": `{"a b":[1,"\" x"]}`,
		" true ":                            `true`,
	} {
		assert.Equal(t, want, parse(t, text).Short())
	}
	long := parse(t, `"`+strings.Repeat("é", 200)+`"`).Short()
	assert.Equal(t, `"`+strings.Repeat("é", 59)+"…", long)
	deep := parse(t, "["+strings.Repeat(" ", 10_000)+"1]").Short()
	assert.Equal(t, "[…", deep)
}

// FuzzParse holds Parse against encoding/json: what it takes means the same
// there, and what it refuses beyond JSON's grammar has one of the reasons that
// this package adds.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", `{"a": [1, -2.5e-3, "x\u00e9\ud800", true, null, {}]}`, `{"a":1,"a":2}`, "[NaN]", "[1e999]", "\"\xff\"",
		strings.Repeat("[", 65) + strings.Repeat("]", 65), `{"a":{"b":{"c":[[[]]]}}}`, "01", "-", "\ufeff{}", `"\u12"`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		document, err := Parse(bytes.Clone(text))
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		var want any
		wantErr := decoder.Decode(&want)
		valid := wantErr == nil && json.Valid(text)
		if err != nil {
			var wrong *Error
			require.True(t, errors.As(err, &wrong))
			ours := wrong.NotFinite || wrong.Want == "UTF-8" || wrong.Want == "each key once" ||
				strings.HasPrefix(wrong.Want, "at most ")
			require.True(t, !valid || ours, "refused with %v", err)
			return
		}
		require.True(t, valid, "taken, but encoding/json says %v", wantErr)
		root := document.Root()
		require.Equal(t, want, plain(root))
		require.True(t, Equal(root, root.Detach()))
		var compact bytes.Buffer
		require.NoError(t, json.Compact(&compact, text))
		require.Equal(t, compact.String(), string(root.AppendCompact(nil)))
		require.LessOrEqual(t, len(root.Short()), shortBytes+len("…")+4)
	})
}

// plain is what encoding/json makes of a value.
func plain(v Value) any {
	switch v.Kind() {
	case Bool:
		value, _ := v.Bool()
		return value
	case Number:
		return json.Number(v.JSON())
	case String:
		value, _ := v.Text()
		return value
	case Array:
		items := make([]any, 0, v.Len())
		for _, item := range v.Items() {
			items = append(items, plain(item))
		}
		return items
	case Object:
		members := make(map[string]any, v.Len())
		for key, member := range v.Members() {
			members[key] = plain(member)
		}
		return members
	default:
		return nil
	}
}
