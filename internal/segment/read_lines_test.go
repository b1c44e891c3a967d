// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 100)
	for _, test := range []struct {
		name  string
		texts []string // of one file, member by member
		want  []string // lines; of those over the limit of 20 bytes the size
		ended []int64
		rest  string
	}{
		{"nothing", []string{""}, nil, []int64{0}, ""},
		{"one line", []string{"a\n"}, []string{"a"}, []int64{1}, ""},
		{"empty lines", []string{"\n\na\n\n"}, []string{"", "", "a", ""}, []int64{4}, ""},
		{"no newline at the end", []string{"a\nb"}, []string{"a"}, []int64{1}, "b"},
		{"a line in two members", []string{"a\nbe", "gun\nc\n"}, []string{"a", "begun", "c"}, []int64{1, 2}, ""},
		{"a line in three members", []string{"be", "gu", "n\n"}, []string{"begun"}, []int64{0, 0, 1}, ""},
		{"members within one line", []string{"be", "", "gun"}, nil, []int64{0, 0, 0}, "begun"},
		{"at the limit", []string{long[:20] + "\n"}, []string{long[:20]}, []int64{1}, ""},
		{"over the limit", []string{"a\n" + long[:21] + "\nb\n"}, []string{"a", "21 bytes", "b"}, []int64{3}, ""},
		{"over the limit in two members", []string{long[:15], long[:15] + "\nb\n"}, []string{"30 bytes", "b"}, []int64{0, 2}, ""},
		{"over the limit without an end", []string{"a\n" + long}, []string{"a"}, []int64{1}, "100 bytes"},
		{"carriage return", []string{"a\r\n"}, []string{"a\r"}, []int64{1}, ""},
	} {
		for way, reader := range map[string]func(io.Reader) io.Reader{
			"at once":        func(r io.Reader) io.Reader { return r },
			"byte by byte":   iotest.OneByteReader,
			"end with bytes": iotest.DataErrReader,
		} {
			t.Run(test.name+" "+way, func(t *testing.T) {
				lines := NewLines(20)
				var (
					got   []string
					ended []int64
				)
				for _, text := range test.texts {
					lines.Continue(reader(strings.NewReader(text)))
					for {
						line, size, err := lines.Next()
						if err == io.EOF {
							break
						}
						require.NoError(t, err)
						got = append(got, shown(t, line, size))
					}
					ended = append(ended, lines.Ended())
				}
				assert.Equal(t, test.want, got)
				assert.Equal(t, test.ended, ended)
				assert.Equal(t, test.rest != "", lines.Begun())
				line, size := lines.Rest()
				assert.Equal(t, test.rest, shown(t, line, size))
				assert.False(t, lines.Begun())
			})
		}
	}
}

func shown(t *testing.T, line []byte, size int64) string {
	if size > 20 {
		require.Nil(t, line)
		return fmt.Sprintf("%d bytes", size)
	}
	require.Len(t, line, int(size))
	return string(line)
}

// TestLinesOfAnyLength splits a text whose lines are around every buffer size.
func TestLinesOfAnyLength(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	const limit = 1 << 20
	lines := NewLines(limit)
	for range 20 {
		var text strings.Builder
		var want []int
		for range 10 {
			n := random.IntN(2 << random.IntN(21))
			want = append(want, n)
			text.WriteString(strings.Repeat("x", n) + "\n")
		}
		lines.Continue(strings.NewReader(text.String()))
		for _, n := range want {
			line, size, err := lines.Next()
			require.NoError(t, err)
			require.Equal(t, int64(n), size)
			if n <= limit {
				require.Equal(t, strings.Repeat("x", n), string(line))
			}
			require.LessOrEqual(t, len(lines.buffer), limit+64<<10)
		}
		_, _, err := lines.Next()
		require.ErrorIs(t, err, io.EOF)
	}
	lines.Continue(strings.NewReader("a\n"))
	_, _, err := lines.Next()
	require.NoError(t, err)
	_, _, err = lines.Next()
	require.ErrorIs(t, err, io.EOF)
	assert.LessOrEqual(t, len(lines.buffer), 1<<20, "a long line does not keep its memory")
}

func TestLinesPassOnErrors(t *testing.T) {
	broken := errors.New("the file has changed")
	lines := NewLines(20)
	lines.Continue(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)))
	line, _, err := lines.Next()
	require.NoError(t, err)
	assert.Equal(t, "a", string(line))
	_, _, err = lines.Next()
	require.ErrorIs(t, err, broken)
	lines.Reset()
	assert.False(t, lines.Begun())
}
