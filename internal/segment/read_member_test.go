// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	stdgzip "compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pack makes one gzip member with the standard library.
func pack(t testing.TB, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	writer := stdgzip.NewWriter(&out)
	_, err := writer.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	return out.Bytes()
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// flipped is a copy with one bit changed.
func flipped(data []byte, at int) []byte {
	data = bytes.Clone(data)
	data[at] ^= 0x10
	return data
}

// found is what Next says, in short; text is that of the member.
type found struct {
	start, end, skipped int64
	text                string
	cut                 bool
}

// readAll walks through a file as a receiver does that knows it will not grow.
func readAll(t testing.TB, r *Reader, file []byte) (all []found) {
	t.Helper()
	size := int64(len(file))
	for offset := int64(0); offset < size; {
		next, err := r.Next(bytes.NewReader(file), offset, size)
		require.NoError(t, err)
		require.Equal(t, next.Start-offset, next.Skipped)
		require.Equal(t, next.Skipped > 0 || !next.Whole, next.Problem != nil)
		one := found{start: next.Start, end: next.End, skipped: next.Skipped, cut: next.Cut()}
		if next.Whole {
			text, err := r.Text()
			require.NoError(t, err)
			read, err := io.ReadAll(text)
			require.NoError(t, err)
			require.Len(t, read, int(next.Size))
			one.text = string(read)
		}
		all = append(all, one)
		require.Greater(t, next.End, offset)
		offset = next.End
	}
	return all
}

func TestNext(t *testing.T) {
	a, b, c := pack(t, "first\n"), pack(t, "second\n"), pack(t, strings.Repeat("third\n", 1000))
	empty := pack(t, "")
	n, m := int64(len(a)), int64(len(b))
	var named bytes.Buffer
	writer := stdgzip.NewWriter(&named)
	writer.Name, writer.Comment, writer.Extra = "trace.jsonl", "by hand", []byte("xx\x1f\x8b\x08\x00")
	_, err := writer.Write([]byte("first\n"))
	require.NoError(t, err)
	require.NoError(t, writer.Close())

	for _, test := range []struct {
		name string
		file []byte
		want []found
	}{
		{"no bytes", nil, nil},
		{"one member", a, []found{{0, n, 0, "first\n", false}}},
		{"two members", join(a, b), []found{{0, n, 0, "first\n", false}, {n, n + m, 0, "second\n", false}}},
		{"an empty member", join(empty, a), []found{{0, int64(len(empty)), 0, "", false}, {int64(len(empty)), int64(len(empty)) + n, 0, "first\n", false}}},
		{"name, comment and extra field", named.Bytes(), []found{{0, int64(named.Len()), 0, "first\n", false}}},
		{"torn tail", join(a, b[:10]), []found{{0, n, 0, "first\n", false}, {n, n + 10, 0, "", true}}},
		{"torn in its trailer", join(a, b[:m-1]), []found{{0, n, 0, "first\n", false}, {n, n + m - 1, 0, "", true}}},
		{"one byte of a header", join(a, b[:1]), []found{{0, n, 0, "first\n", false}, {n, n + 1, 0, "", true}}},
		{"torn, then good", join(a, c[:20], b), []found{{0, n, 0, "first\n", false}, {n + 20, n + 20 + m, 20, "second\n", false}}},
		{"torn twice, then good", join(c[:20], c[:30], b), []found{{50, 50 + m, 50, "second\n", false}}},
		{"torn twice", join(c[:20], c[:30]), []found{{20, 50, 20, "", true}}}, // the second cannot go on with the first
		{"wrong checksum, then good", join(flipped(a, len(a)-8), b), []found{{n, n + m, n, "second\n", false}}},
		{"wrong length, then good", join(flipped(a, len(a)-4), b), []found{{n, n + m, n, "second\n", false}}},
		{"wrong checksum at the end", join(b, flipped(a, len(a)-8)), []found{{0, m, 0, "second\n", false}, {n + m, n + m, n, "", false}}},
		{"damaged text, then good", join(flipped(c, len(c)/2), b), []found{{int64(len(c)), int64(len(c)) + m, int64(len(c)), "second\n", false}}},
		{"text in front", join([]byte("hello\n"), a), []found{{6, 6 + n, 6, "first\n", false}}},
		{"text between", join(a, []byte("hello\n"), b), []found{{0, n, 0, "first\n", false}, {n + 6, n + 6 + m, 6, "second\n", false}}},
		{"text only", []byte("no gzip at all\n"), []found{{15, 15, 15, "", false}}},
		{"text, then a header begins", []byte("no gzip \x1f\x8b"), []found{{8, 10, 8, "", true}}},
		{"text, then something else begins", []byte("no gzip \x1f\x8a"), []found{{10, 10, 10, "", false}}},
		{"zero padding", join(a, make([]byte, 512)), []found{{0, n, 0, "first\n", false}, {n + 512, n + 512, 512, "", false}}},
		{"another method", join([]byte{0x1f, 0x8b, 7}, a), []found{{3, 3 + n, 3, "first\n", false}}},
		{"reserved flags", join([]byte{0x1f, 0x8b, 8, 0xe0, 0, 0, 0, 0, 0, 0}, a), []found{{10, 10 + n, 10, "first\n", false}}},
		{"magic in front of magic", join([]byte{0x1f, 0x8b}, a), []found{{2, 2 + n, 2, "first\n", false}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, readAll(t, NewReader(), test.file))
		})
	}
}

// TestNextWhileAFileGrows: at every size, what is whole is found, and what is
// not is waited for; nothing is ever skipped.
func TestNextWhileAFileGrows(t *testing.T) {
	members := [][]byte{pack(t, "first\n"), pack(t, strings.Repeat("second\n", 50)), pack(t, ""), pack(t, "third\n")}
	file := join(members...)
	r := NewReader()
	offset := int64(0)
	var texts []string
	for size := range int64(len(file) + 1) {
		for {
			next, err := r.Next(bytes.NewReader(file), offset, size)
			require.NoError(t, err)
			require.Zero(t, next.Skipped)
			if !next.Whole {
				require.Equal(t, offset, next.Start)
				require.Equal(t, offset < size, next.Cut())
				break
			}
			require.Equal(t, size, next.End, "found as soon as it is whole")
			text, err := r.Text()
			require.NoError(t, err)
			read, err := io.ReadAll(text)
			require.NoError(t, err)
			texts = append(texts, string(read))
			offset = next.End
		}
	}
	assert.Equal(t, []string{"first\n", strings.Repeat("second\n", 50), "", "third\n"}, texts)
}

// TestNothingIsReadBeforeItVerifies changes every bit of a member in turn: it is
// found with its text, when the bit does not matter, or not at all.
func TestNothingIsReadBeforeItVerifies(t *testing.T) {
	text := strings.Repeat("a row of a trace\n", 20)
	member := pack(t, text)
	r := NewReader()
	for at := range member {
		for bit := range 8 {
			damaged := bytes.Clone(member)
			damaged[at] ^= 1 << bit
			for _, one := range readAll(t, r, damaged) {
				if !one.cut && one.end > one.start {
					require.Equal(t, text, one.text, "byte %d, bit %d", at, bit)
				}
			}
		}
	}
}

// small makes a reader for which a member of a few kilobytes is large.
func small() *Reader {
	r := NewReader()
	r.keep, r.limit = 1000, 100_000
	return r
}

// TestLargeMember: text over keepText is read from the file once more.
func TestLargeMember(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, size := range []int{999, 1000, 1001, 64 << 10, 100_000} {
		text := make([]byte, size)
		for i := range text {
			text[i] = byte('a' + random.IntN(4))
		}
		packed := pack(t, string(text))
		file := join(pack(t, "x\n"), packed, pack(t, "y\n"))
		all := readAll(t, small(), file)
		require.Len(t, all, 3)
		require.Equal(t, string(text), all[1].text)
		require.Equal(t, "y\n", all[2].text)
	}
}

func TestMemberOverTheLimit(t *testing.T) {
	bomb := pack(t, strings.Repeat("\x00", 100_001))
	good := pack(t, "row\n")
	r := small()
	next, err := r.Next(bytes.NewReader(join(bomb, good)), 0, int64(len(bomb)+len(good)))
	require.NoError(t, err)
	assert.True(t, next.Whole)
	assert.Equal(t, int64(len(bomb)), next.Skipped)
	assert.EqualError(t, next.Problem, "the gzip member holds too much text: more than 100000 bytes")
}

// TestSearchGivesUp: a file made of headers would be decompressed as often as
// it has bytes.
func TestSearchGivesUp(t *testing.T) {
	r := NewReader()
	r.search = 10 * inputBuffer
	header := pack(t, "x")[:10]
	file := join(bytes.Repeat(header, 100), pack(t, "row\n"))
	next, err := r.Next(bytes.NewReader(file), 0, int64(len(file)))
	require.NoError(t, err)
	assert.False(t, next.Whole)
	assert.Equal(t, int64(len(file)), next.Skipped)
	assert.ErrorIs(t, next.Problem, errGaveUp)
}

// TestNextKeepsMemory: what a reader holds does not depend on the file.
func TestNextKeepsMemory(t *testing.T) {
	r := NewReader()
	file := pack(t, strings.Repeat("0123456789abcde\n", 4<<20)) // 64 MiB of text
	next, err := r.Next(bytes.NewReader(file), 0, int64(len(file)))
	require.NoError(t, err)
	require.True(t, next.Whole)
	assert.Less(t, cap(r.text), 2*keepText)
	text, err := r.Text()
	require.NoError(t, err)
	n, err := io.Copy(io.Discard, text)
	require.NoError(t, err)
	assert.Equal(t, int64(64<<20), n)
}

// faultyAt fails to read at and behind an offset.
type faultyAt struct {
	*bytes.Reader
	from int64
	err  error
}

func (f faultyAt) ReadAt(p []byte, offset int64) (int, error) {
	if offset >= f.from {
		return 0, f.err
	}
	n, err := f.Reader.ReadAt(p[:min(int64(len(p)), f.from-offset)], offset)
	if err == nil && n < len(p) {
		err = f.err
	}
	return n, err
}

// TestReadErrorIsNoDamage: a disk that fails says nothing of the file.
func TestReadErrorIsNoDamage(t *testing.T) {
	broken := errors.New("input/output error")
	file := join(pack(t, "first\n"), pack(t, "second\n"))
	size := int64(len(file))
	r := NewReader()
	for from := range size {
		_, err := r.Next(faultyAt{bytes.NewReader(file), from, broken}, 0, size)
		if from < int64(len(pack(t, "first\n"))) {
			require.ErrorIs(t, err, broken, "from %d", from)
		} else {
			require.NoError(t, err, "the first member is whole")
		}
	}
	_, err := r.Next(faultyAt{bytes.NewReader(file), 3, broken}, 3, size)
	require.ErrorIs(t, err, broken)

	// A file that shrinks while it is read looks cut.
	next, err := r.Next(bytes.NewReader(file[:10]), 0, size)
	require.NoError(t, err)
	assert.True(t, next.Cut())
}

// TestLargeMemberChanges: the file may change between the two times.
func TestLargeMemberChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	text := make([]byte, 200_000)
	for i := range text {
		text[i] = byte('a' + random.IntN(20))
	}
	file := pack(t, string(text))
	r := small()
	r.limit = maxText
	next, err := r.Next(bytes.NewReader(file), 0, int64(len(file)))
	require.NoError(t, err)
	require.True(t, next.Whole)
	file[len(file)/2] ^= 0x40
	read, err := r.Text()
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, read)
	require.Error(t, err)

	clear(file)
	_, err = r.Text()
	require.Error(t, err)
}

// TestRecoversAllWholeMembers: of random files, every whole member is read, in
// order, and every other byte is counted.
func TestRecoversAllWholeMembers(t *testing.T) {
	r := NewReader()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		var (
			file    []byte
			want    []string
			garbage int64
		)
		for range random.IntN(12) {
			text := strings.Repeat("row "+string(rune('a'+random.IntN(26)))+"\n", 1+random.IntN(40))
			member := pack(t, text)
			switch random.IntN(5) {
			case 0: // torn
				member = member[:random.IntN(len(member))]
				garbage += int64(len(member))
			case 1: // a damaged checksum
				member = flipped(member, len(member)-1-random.IntN(8))
				garbage += int64(len(member))
			case 2: // something else
				member = []byte(text)
				garbage += int64(len(member))
			default:
				want = append(want, text)
			}
			file = append(file, member...)
		}
		var (
			got     []string
			skipped int64
		)
		for _, one := range readAll(t, r, file) {
			skipped += one.skipped
			switch {
			case one.cut:
				skipped += one.end - one.start
			case one.end > one.start:
				got = append(got, one.text)
			}
		}
		require.Equal(t, want, got, "seed %d", seed)
		require.Equal(t, garbage, skipped, "seed %d", seed)
	}
}

func FuzzNext(f *testing.F) {
	good := pack(f, "row\n")
	f.Add(good, int64(0))
	f.Add(join(good, good), int64(5))
	f.Add(join(good[:15], good), int64(0))
	f.Add(join(flipped(good, 12), []byte("text"), good), int64(0))
	r := small()
	f.Fuzz(func(t *testing.T, file []byte, offset int64) {
		size := int64(len(file))
		offset = max(0, min(offset, size))
		next, err := r.Next(bytes.NewReader(file), offset, size)
		require.NoError(t, err)
		require.Equal(t, next.Start-offset, next.Skipped)
		require.LessOrEqual(t, next.End, size)
		if !next.Whole {
			require.Equal(t, size, next.End)
			return
		}
		reader, err := stdgzip.NewReader(iotest.OneByteReader(bytes.NewReader(file[next.Start:next.End])))
		require.NoError(t, err)
		want, err := io.ReadAll(reader)
		require.NoError(t, err)
		text, err := r.Text()
		require.NoError(t, err)
		got, err := io.ReadAll(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Len(t, got, int(next.Size))
	})
}
