// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package msgpack_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	library "github.com/vmihailenco/msgpack/v5"

	"github.com/otelcol-fpm/otelcol-fpm/internal/msgpack"
)

// read reads one value as a caller would: what it is, and what it says.
func read(r *msgpack.Reader) (kind msgpack.Kind, value any, err error) {
	kind = r.Peek()
	switch kind {
	case msgpack.Nil:
		r.Nil()
	case msgpack.Bool:
		value = r.Bool()
	case msgpack.Int:
		value, err = r.Int()
	case msgpack.Float:
		value, err = r.Float()
	case msgpack.String:
		var text []byte
		text, err = r.Text()
		value = string(text)
	case msgpack.Bin:
		value, err = r.Bin()
	case msgpack.Ext:
		value, err = r.Ext()
	case msgpack.Array:
		value, err = r.ArrayLen()
	case msgpack.Map:
		value, err = r.MapLen()
	}
	return kind, value, err
}

// encoded has a value of each form: the bytes before its content, which follow
// from the specification, and what is read.
var encoded = []struct {
	name  string
	bytes string
	kind  msgpack.Kind
	value any
}{
	{"nil", "\xc0", msgpack.Nil, nil},
	{"false", "\xc2", msgpack.Bool, false},
	{"true", "\xc3", msgpack.Bool, true},
	{"positive fixint", "\x7f", msgpack.Int, int64(127)},
	{"negative fixint", "\xe0", msgpack.Int, int64(-32)},
	{"uint 8", "\xcc\xff", msgpack.Int, int64(255)},
	{"uint 16", "\xcd\xff\xfe", msgpack.Int, int64(65534)},
	{"uint 32", "\xce\xff\xff\xff\xfe", msgpack.Int, int64(4294967294)},
	{"uint 64", "\xcf\x7f\xff\xff\xff\xff\xff\xff\xff", msgpack.Int, int64(math.MaxInt64)},
	{"int 8", "\xd0\x80", msgpack.Int, int64(-128)},
	{"int 16", "\xd1\x80\x00", msgpack.Int, int64(-32768)},
	{"int 32", "\xd2\x80\x00\x00\x00", msgpack.Int, int64(math.MinInt32)},
	{"int 64", "\xd3\x80\x00\x00\x00\x00\x00\x00\x00", msgpack.Int, int64(math.MinInt64)},
	{"int 64, positive", "\xd3\x00\x00\x00\x00\x00\x00\x00\x05", msgpack.Int, int64(5)},
	{"float 32", "\xca\x3f\xc0\x00\x00", msgpack.Float, 1.5},
	{"float 64", "\xcb\xbf\xf8\x00\x00\x00\x00\x00\x00", msgpack.Float, -1.5},
	{"empty fixstr", "\xa0", msgpack.String, ""},
	{"fixstr", "\xbf" + strings.Repeat("x", 31), msgpack.String, strings.Repeat("x", 31)},
	{"str 8", "\xd9\x03abc", msgpack.String, "abc"},
	{"str 16", "\xda\x00\x03abc", msgpack.String, "abc"},
	{"str 32", "\xdb\x00\x00\x00\x03a\xffc", msgpack.String, "a\xffc"},
	{"bin 8", "\xc4\x02ab", msgpack.Bin, []byte("ab")},
	{"bin 16", "\xc5\x00\x02ab", msgpack.Bin, []byte("ab")},
	{"bin 32", "\xc6\x00\x00\x00\x02ab", msgpack.Bin, []byte("ab")},
	{"fixext 1", "\xd4\x01a", msgpack.Ext, []byte("\x01a")},
	{"fixext 2", "\xd5\x01ab", msgpack.Ext, []byte("\x01ab")},
	{"fixext 4", "\xd6\x01abcd", msgpack.Ext, []byte("\x01abcd")},
	{"fixext 8", "\xd7\x01abcdefgh", msgpack.Ext, []byte("\x01abcdefgh")},
	{"fixext 16", "\xd8\x01abcdefghijklmnop", msgpack.Ext, []byte("\x01abcdefghijklmnop")},
	{"ext 8", "\xc7\x03\x01abc", msgpack.Ext, []byte("\x01abc")},
	{"ext 16", "\xc8\x00\x03\x01abc", msgpack.Ext, []byte("\x01abc")},
	{"ext 32", "\xc9\x00\x00\x00\x03\x01abc", msgpack.Ext, []byte("\x01abc")},
	{"fixarray", "\x9f", msgpack.Array, 15},
	{"array 16", "\xdc\xff\xff", msgpack.Array, 65535},
	{"array 32", "\xdd\xff\xff\xff\xff", msgpack.Array, math.MaxUint32},
	{"fixmap", "\x8f", msgpack.Map, 15},
	{"map 16", "\xde\xff\xff", msgpack.Map, 65535},
	{"map 32", "\xdf\xff\xff\xff\xff", msgpack.Map, math.MaxUint32},
}

func TestEachForm(t *testing.T) {
	for _, test := range encoded {
		t.Run(test.name, func(t *testing.T) {
			var r msgpack.Reader
			r.Reset([]byte(test.bytes + "\xc1"))
			kind, value, err := read(&r)
			require.NoError(t, err)
			assert.Equal(t, test.kind, kind)
			assert.EqualValues(t, test.value, value)
			assert.Equal(t, len(test.bytes), r.At())
			assert.Equal(t, 1, r.Left())
			assert.Equal(t, msgpack.Invalid, r.Peek())
			r.Seek(0)
			assert.Equal(t, test.kind, r.Peek())
		})
	}
}

func TestEveryPrefixIsCutShort(t *testing.T) {
	for _, test := range encoded {
		for n := 1; n < len(test.bytes); n++ {
			var r msgpack.Reader
			r.Reset([]byte(test.bytes[:n]))
			_, _, err := read(&r)
			assert.ErrorIs(t, err, msgpack.ErrCutShort, "%d of %s", n, test.name)
			assert.GreaterOrEqual(t, r.Left(), 0)
		}
	}
	var r msgpack.Reader
	assert.Equal(t, msgpack.End, r.Peek())
}

func TestIntegerAboveInt64(t *testing.T) {
	var r msgpack.Reader
	r.Reset([]byte("\xcf\x80\x00\x00\x00\x00\x00\x00\x00\xc0"))
	_, err := r.Int()
	assert.Equal(t, msgpack.RangeError(1<<63), err)
	assert.EqualError(t, err, "integer 9223372036854775808 above 9223372036854775807")
	assert.Equal(t, msgpack.Nil, r.Peek(), "it was read over")
}

// The library encodes values of all widths; they are read as they were.
func TestAgainstTheLibrary(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		var want any
		switch random.IntN(6) {
		case 0:
			want = random.Int64() >> random.IntN(64)
		case 1:
			want = -random.Int64() >> random.IntN(64)
		case 2:
			want = random.NormFloat64()
		case 3:
			want = strings.Repeat("x", random.IntN(1<<random.IntN(18)))
		case 4:
			want = bytes.Repeat([]byte{0xc1}, random.IntN(1<<random.IntN(18)))
		case 5:
			want = random.IntN(2) == 0
		}
		var buffer bytes.Buffer
		encoder := library.NewEncoder(&buffer)
		encoder.UseCompactInts(random.IntN(2) == 0)
		require.NoError(t, encoder.Encode(want))
		var r msgpack.Reader
		r.Reset(buffer.Bytes())
		_, got, err := read(&r)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Zero(t, r.Left())
	}
}

func TestKindsInWords(t *testing.T) {
	var r msgpack.Reader
	for want, code := range map[string]byte{"nil": 0xc0, "an integer": 0, "a map": 0x80, "an invalid code": 0xc1} {
		r.Reset([]byte{code})
		assert.Equal(t, want, fmt.Sprint(r.Peek()))
	}
}

// Whatever comes, reading ends at the payload's end or at an error, and goes on
// with each value.
func FuzzReader(f *testing.F) {
	for _, test := range encoded {
		f.Add([]byte(test.bytes))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		var r msgpack.Reader
		r.Reset(payload)
		for before := 0; ; before = r.At() {
			kind, _, err := read(&r)
			if kind == msgpack.End || kind == msgpack.Invalid || errors.Is(err, msgpack.ErrCutShort) {
				return
			}
			if r.At() <= before || r.Left() < 0 {
				t.Fatalf("%v at %d, then at %d of %d", kind, before, r.At(), len(payload))
			}
		}
	})
}
