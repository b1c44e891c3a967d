// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// bench is a set in a directory of its own.
type bench struct {
	t          *testing.T
	dir        string
	set        *Set
	compressor *Compressor
}

func newBench(t *testing.T, change func(*Options)) *bench {
	t.Helper()
	return benchIn(t, t.TempDir(), change)
}

func benchIn(t *testing.T, dir string, change func(*Options)) *bench {
	t.Helper()
	options := Options{Path: filepath.Join(dir, "fpm"), RollBytes: 1 << 20, MaxSegments: 100, DirectoryMode: 0o755, Sync: SyncRoll}
	if change != nil {
		change(&options)
	}
	compressor, err := NewCompressor(6)
	require.NoError(t, err)
	return &bench{t: t, dir: dir, set: NewSet(options), compressor: compressor}
}

func (b *bench) open(id string) *Writer {
	w, alike := b.set.Open(id)
	require.Empty(b.t, alike)
	return w
}

// write writes lines and finishes what was closed.
func (b *bench) write(w *Writer, lines string) Report {
	b.t.Helper()
	report, err := b.tryWrite(w, lines)
	require.NoError(b.t, err)
	return report
}

func (b *bench) tryWrite(w *Writer, lines string) (Report, error) {
	b.t.Helper()
	report, err := w.Write(b.compressor, []byte(lines), start)
	for _, closed := range report.Closed {
		require.NoError(b.t, closed.Finish())
	}
	return report, err
}

func (b *bench) close(w *Writer) {
	b.t.Helper()
	for _, closed := range w.Close().Closed {
		require.NoError(b.t, closed.Finish())
	}
}

// files lists the directory.
func (b *bench) files() (names []string) {
	b.t.Helper()
	entries, err := os.ReadDir(b.dir)
	require.NoError(b.t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// read reads a segment as any gzip reader does, to its very end.
func (b *bench) read(name string) string {
	b.t.Helper()
	text, err := readSegment(filepath.Join(b.dir, name))
	require.NoError(b.t, err, name)
	return text
}

func readSegment(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	reader, err := gzip.NewReader(file)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(reader)
	return string(text), err
}

func (b *bench) readAll() (text string) {
	b.t.Helper()
	for _, name := range b.files() {
		text += b.read(name)
	}
	return text
}

func TestFit(t *testing.T) {
	for _, test := range []struct {
		lines       string
		text, limit int64
		want        int
	}{
		{"abc\n", 0, 100, 4},
		{"abc\n", 96, 100, 4}, // equal stays
		{"abc\n", 97, 100, 0}, // one byte more rolls
		{"abc\ndef\n", 93, 100, 4},
		{"abc\ndef\n", 92, 100, 8},
		{"abc\ndef\n", 100, 100, 0},
		{"abc\ndef\n", 250, 100, 0},         // behind an oversize line
		{"oversize line\n", 0, 5, 14},       // alone in an empty segment
		{"oversize line\nabc\n", 0, 5, 14},  // and alone it stays
		{"abc\noversize line\n", 0, 5, 4},   // what fits goes first
		{"oversize line\n", 1, 5, 0},        // not behind another line
		{"abc\ndef\nghi\n", 0, 7, 4},        // the limit within a line
		{"abc\ndef\nghi\n", 0, 8, 8},        // the limit behind a line
		{"a\n", 0, 1, 2},                    // limit smaller than any line
		{"abc\ndef\nghi\n", 4, 1 << 62, 12}, // no limit to speak of
		{"\n", 0, 1, 1},                     // an empty line is a line
		{strings.Repeat("x", 50) + "\n", 1, 51, 0},
	} {
		assert.Equal(t, test.want, fit([]byte(test.lines), test.text, test.limit), "%+v", test)
	}
}

func TestWriterIsLazy(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Path = filepath.Join(filepath.Dir(o.Path), "made", "on", "demand", "fpm") })
	w := b.open("4192")
	assert.Empty(t, b.files(), "opening touches nothing")
	b.close(w)
	assert.Empty(t, b.files(), "a writer that wrote nothing leaves nothing")

	w = b.open("4192")
	b.write(w, "row\n")
	b.close(w)
	text, err := readSegment(filepath.Join(b.dir, "made", "on", "demand", "fpm.4192.000000.jsonl.gz"))
	require.NoError(t, err)
	assert.Equal(t, "row\n", text)
}

func TestSegmentHoldsAtMostRollBytes(t *testing.T) {
	b := newBench(t, func(o *Options) { o.RollBytes = 40 })
	w := b.open("p")
	report := b.write(w, "0123456789012345678\n0123456789012345678\n") // 40: fits
	assert.Equal(t, Report{Lines: 2, Text: 40, File: report.File}, report)
	assert.Positive(t, report.File)

	report = b.write(w, "next\n"+strings.Repeat("x", 99)+"\nlast\n")
	assert.Equal(t, 3, report.Lines)
	assert.Equal(t, 3, report.Rolls)
	assert.Len(t, report.Closed, 3)
	b.close(w)
	assert.Equal(t, []string{"fpm.p.000000.jsonl.gz", "fpm.p.000001.jsonl.gz", "fpm.p.000002.jsonl.gz", "fpm.p.000003.jsonl.gz"}, b.files())
	assert.Equal(t, "next\n", b.read("fpm.p.000001.jsonl.gz"))
	assert.Equal(t, strings.Repeat("x", 99)+"\n", b.read("fpm.p.000002.jsonl.gz"))
	assert.Equal(t, "last\n", b.read("fpm.p.000003.jsonl.gz"))
}

// TestLineNeverLiesInTwoSegments writes random lines in random batches with
// random limits: each segment reads on its own, holds whole lines and keeps the
// limit, and together they are the input in order.
func TestLineNeverLiesInTwoSegments(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 10 {
		limit := 1 + random.Int64N(2000)
		b := newBench(t, func(o *Options) { o.RollBytes, o.MaxSegments, o.Sync = limit, 1<<20, SyncNever })
		w := b.open("p")
		var input strings.Builder
		for range 20 {
			batch := ""
			for range 1 + random.IntN(30) {
				batch += strings.Repeat("x", random.IntN(300)) + strconv.Itoa(random.IntN(1000)) + "\n"
			}
			input.WriteString(batch)
			report := b.write(w, batch)
			require.Equal(t, strings.Count(batch, "\n"), report.Lines)
		}
		b.close(w)
		var output strings.Builder
		for _, name := range b.files() {
			text := b.read(name)
			require.True(t, strings.HasSuffix(text, "\n"))
			if strings.Count(text, "\n") > 1 {
				require.LessOrEqual(t, int64(len(text)), limit)
			}
			output.WriteString(text)
		}
		require.Equal(t, input.String(), output.String())
	}
}

func TestOneMemberAFlush(t *testing.T) {
	b := newBench(t, nil)
	w := b.open("p")
	for i := range 3 {
		b.write(w, fmt.Sprintf("row %d\n", i))
		assert.Equal(t, i+1, strings.Count(b.readAll(), "\n"), "every flush can be read at once")
	}
	data, err := os.ReadFile(filepath.Join(b.dir, "fpm.p.000000.jsonl.gz"))
	require.NoError(t, err)
	// Magic, deflate, no flags, no time, no extra flags, unknown system: what
	// Dynamo writes.
	header := []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}
	assert.Equal(t, 3, bytes.Count(data, header))
	assert.True(t, bytes.HasPrefix(data, header))
	b.close(w)
}

func TestNextIndex(t *testing.T) {
	b := newBench(t, nil)
	for _, name := range []string{
		"fpm.p.000001.jsonl.gz", "fpm.p.000004.jsonl.gz", "fpm.p.0000009.jsonl.gz", "fpm.q.000099.jsonl.gz", "fpm.p.000077.jsonl.gz.bak",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(b.dir, name), nil, 0o600))
	}
	w := b.open("p")
	b.write(w, "row\n")
	b.close(w)
	assert.Equal(t, "row\n", b.read("fpm.p.000005.jsonl.gz"), "gaps are not filled")
}

// TestTakenNames: folders and symbolic links take an index like files do, also
// when they come after the listing; links are never followed, and none of them
// is ever removed.
func TestTakenNames(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.WriteFile(outside, []byte("precious"), 0o600))
	b := newBench(t, func(o *Options) { o.MaxSegments = 1; o.RollBytes = 1 })
	at := func(index int) string { return filepath.Join(b.dir, fmt.Sprintf("fpm.p.%06d.jsonl.gz", index)) }
	require.NoError(t, os.Mkdir(at(0), 0o755))
	require.NoError(t, os.Symlink(outside, at(2)))
	require.NoError(t, os.WriteFile(at(3), nil, 0o600))

	w := b.open("p")
	b.write(w, "first\n") // 4
	require.NoError(t, os.Symlink(filepath.Join(b.dir, "dangling"), at(5)))
	require.NoError(t, os.Mkdir(at(6), 0o755))
	require.NoError(t, os.WriteFile(at(7), []byte("somebody's"), 0o600))
	b.write(w, "second\n") // 8
	b.close(w)

	assert.Equal(t, []string{
		"fpm.p.000000.jsonl.gz", "fpm.p.000002.jsonl.gz", "fpm.p.000005.jsonl.gz", "fpm.p.000006.jsonl.gz",
		"fpm.p.000007.jsonl.gz", "fpm.p.000008.jsonl.gz",
	}, b.files(), "3 and 4 are pruned; 7 came from someone else after the listing")
	assert.Equal(t, "second\n", b.read("fpm.p.000008.jsonl.gz"))
	content, err := os.ReadFile(outside)
	require.NoError(t, err)
	assert.Equal(t, "precious", string(content))
	assert.NoFileExists(t, filepath.Join(b.dir, "dangling"))
}

func TestIndexExhausted(t *testing.T) {
	b := newBench(t, nil)
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, "fpm.p.18446744073709551615.jsonl.gz"), nil, 0o600))
	w := b.open("p")
	_, err := b.tryWrite(w, "row\n")
	require.ErrorContains(t, err, "no segment index left")
	b.close(w)
}

func TestPruneKeepsTheNewest(t *testing.T) {
	b := newBench(t, func(o *Options) { o.MaxSegments = 3; o.RollBytes = 1 })
	for _, name := range []string{"fpm.p.000000.jsonl.gz", "fpm.q.000000.jsonl.gz", "fpm.p.000000.jsonl.gz.bak", "other"} {
		require.NoError(t, os.WriteFile(filepath.Join(b.dir, name), nil, 0o600))
	}
	w := b.open("p")
	pruned := 0
	for i := 1; i <= 6; i++ {
		report := b.write(w, strconv.Itoa(i)+"\n")
		pruned += report.Pruned
	}
	assert.Equal(t, 4, pruned)
	assert.Equal(t, []string{
		"fpm.p.000000.jsonl.gz.bak", "fpm.p.000004.jsonl.gz", "fpm.p.000005.jsonl.gz", "fpm.p.000006.jsonl.gz",
		"fpm.q.000000.jsonl.gz", "other",
	}, b.files())

	// What someone else removed does not count.
	require.NoError(t, os.Remove(filepath.Join(b.dir, "fpm.p.000005.jsonl.gz")))
	b.write(w, "7\n")
	assert.Equal(t, []string{"fpm.p.000004.jsonl.gz", "fpm.p.000006.jsonl.gz", "fpm.p.000007.jsonl.gz"}, b.files()[1:4])
	b.close(w)

	// A new process goes on in the same way.
	next := benchIn(t, b.dir, func(o *Options) { o.MaxSegments = 3; o.RollBytes = 1 })
	w = next.open("p")
	assert.Equal(t, 1, next.write(w, "8\n").Pruned)
	assert.Equal(t, []string{"fpm.p.000006.jsonl.gz", "fpm.p.000007.jsonl.gz", "fpm.p.000008.jsonl.gz"}, b.files()[1:4])
	next.close(w)
}

func TestWritersNeverShareAName(t *testing.T) {
	b := newBench(t, nil)
	ids := []string{"a/b", "a.b", "a_b", "é", "世", "", "unknown"}
	writers := map[string]*Writer{}
	names := map[string]bool{}
	for i, id := range ids {
		w, alike := b.set.Open(id)
		switch i {
		case 1, 2:
			assert.Equal(t, "a/b", alike)
		case 4:
			assert.Equal(t, "é", alike)
		case 6:
			assert.Empty(t, alike, "the empty id is the other one, and it is named so")
		default:
			assert.Empty(t, alike)
		}
		assert.False(t, names[w.Name()], w.Name())
		names[w.Name()] = true
		writers[id] = w
		b.write(w, id+" row\n")
	}
	// An id that looks like another one's hashed name.
	w, alike := b.set.Open(writers["a.b"].Name())
	assert.Equal(t, "a.b", alike)
	assert.False(t, names[w.Name()])
	b.close(w)
	for _, w := range writers {
		b.close(w)
	}
	assert.Len(t, b.files(), len(ids))

	// The name is free again when its writer has closed.
	w, alike = b.set.Open("a_b")
	assert.Empty(t, alike)
	assert.Equal(t, "a_b", w.Name())
	b.write(w, "row\n")
	b.close(w)
	assert.Equal(t, "row\n", b.read("fpm.a_b.000001.jsonl.gz"))
}

// TestNoIDLeavesTheDirectory tries to get out.
func TestNoIDLeavesTheDirectory(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "traces")
	b := benchIn(t, dir, nil)
	for _, id := range []string{
		"..", "../evil", "../../evil", "/etc/evil", "/", ".", "a/../../evil", "..\\evil", "\x00", "~root", "$HOME",
		strings.Repeat("../", 100), strings.Repeat("x", 300), strings.Repeat("世", 300), "-rf", "\n", "con", "jsonl", "",
	} {
		w, _ := b.set.Open(id)
		b.write(w, "row\n")
	}
	entries, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	files := b.files()
	assert.Len(t, files, 19)
	for _, name := range files {
		assert.Equal(t, "row\n", b.read(name))
	}
}

func TestForgetsNamesWithoutFiles(t *testing.T) {
	b := newBench(t, nil)
	for i := range 1000 {
		b.close(b.open(strconv.Itoa(i)))
	}
	assert.Empty(t, b.set.names)
}

// TestRollIgnoresForeignFiles: the directory is listed once, and a roll costs
// as much among 10,000 foreign files as among none.
func TestRollIgnoresForeignFiles(t *testing.T) {
	cost := func(foreign int) (lists, calls int) {
		faults := newFaultFS()
		b := newBench(t, func(o *Options) { o.FS = faults; o.RollBytes, o.MaxSegments, o.Sync = 1, 4, SyncNever })
		for i := range foreign {
			name := fmt.Sprintf("fpm.other%d.000000.jsonl.gz", i)
			if i%2 == 0 {
				name = fmt.Sprintf("core.%d", i)
			}
			require.NoError(t, os.WriteFile(filepath.Join(b.dir, name), nil, 0o600))
		}
		w := b.open("p")
		for i := range 20 {
			b.write(w, strconv.Itoa(i)+"\n")
		}
		before := faults.lstats + faults.removes
		b.write(w, "the roll that is measured\n")
		b.close(w)
		other := b.open("late")
		b.write(other, "a new producer lists nothing\n")
		b.close(other)
		return faults.lists, faults.lstats + faults.removes - before
	}
	lists, alone := cost(0)
	assert.Equal(t, 1, lists)
	lists, crowded := cost(10_000)
	assert.Equal(t, 1, lists)
	assert.Equal(t, alone, crowded)
	assert.Less(t, crowded, 12)
}

func TestRetain(t *testing.T) {
	type file struct {
		name string
		age  time.Duration
		size int
	}
	existing := []file{
		{"fpm.dead.000000.jsonl.gz", 50 * time.Hour, 100},
		{"fpm.dead.000001.jsonl.gz", 20 * time.Hour, 100},
		{"fpm.gone.000007.jsonl.gz", 30 * time.Hour, 100},
		{"fpm.p.000000.jsonl.gz", 10 * time.Hour, 100},
		{"fpm.future.000000.jsonl.gz", -10 * time.Hour, 100}, // the clock was set back
		{"fpm.old.000000.jsonl.gz.bak", 500 * time.Hour, 100},
		{"unrelated", 500 * time.Hour, 100},
	}
	for _, test := range []struct {
		name   string
		limits Retention
		gone   []string
	}{
		{"no limit", Retention{}, nil},
		{"age", Retention{MaxAge: 25 * time.Hour}, []string{"fpm.dead.000000.jsonl.gz", "fpm.gone.000007.jsonl.gz"}},
		{"age of exactly one", Retention{MaxAge: 20 * time.Hour}, []string{"fpm.dead.000000.jsonl.gz", "fpm.gone.000007.jsonl.gz"}},
		{"bytes", Retention{MaxTotalBytes: 350}, []string{"fpm.dead.000000.jsonl.gz", "fpm.gone.000007.jsonl.gz"}},
		{"bytes exactly", Retention{MaxTotalBytes: 500}, nil},
		{"both", Retention{MaxAge: 40 * time.Hour, MaxTotalBytes: 301}, []string{"fpm.dead.000000.jsonl.gz", "fpm.gone.000007.jsonl.gz"}},
		{"everything closed", Retention{MaxTotalBytes: 1}, []string{
			"fpm.dead.000000.jsonl.gz", "fpm.dead.000001.jsonl.gz", "fpm.future.000000.jsonl.gz", "fpm.gone.000007.jsonl.gz", "fpm.p.000000.jsonl.gz",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, nil)
			for _, file := range existing {
				path := filepath.Join(b.dir, file.name)
				require.NoError(t, os.WriteFile(path, make([]byte, file.size), 0o600))
				require.NoError(t, os.Chtimes(path, start.Add(-file.age), start.Add(-file.age)))
			}
			before := b.files()
			removed, err := b.set.Retain(test.limits, start)
			require.NoError(t, err)
			var gone []string
			for _, name := range before {
				if !slices.Contains(b.files(), name) {
					gone = append(gone, name)
				}
			}
			assert.Equal(t, test.gone, gone)
			assert.Equal(t, len(test.gone), removed)
		})
	}
}

// TestRetainSparesTheActiveSegment: it counts, and becomes removable when it
// is sealed.
func TestRetainSparesTheActiveSegment(t *testing.T) {
	b := newBench(t, func(o *Options) { o.RollBytes = 1 })
	w := b.open("p")
	b.write(w, "closed\n")
	b.write(w, "active\n")
	removed, err := b.set.Retain(Retention{MaxTotalBytes: 1}, start)
	require.NoError(t, err)
	assert.Equal(t, 1, removed)
	assert.Equal(t, "active\n", b.readAll())

	removed, err = b.set.Retain(Retention{MaxAge: time.Hour}, start.Add(2*time.Hour))
	require.NoError(t, err)
	assert.Zero(t, removed)
	since, open := w.Idle()
	assert.True(t, open)
	assert.Equal(t, start, since)

	var report Report
	w.Seal(&report)
	require.NoError(t, report.Closed[0].Finish())
	removed, err = b.set.Retain(Retention{MaxAge: time.Hour}, start.Add(2*time.Hour))
	require.NoError(t, err)
	assert.Equal(t, 1, removed)
	b.write(w, "goes on\n")
	assert.Equal(t, "goes on\n", b.readAll())
	b.close(w)
}
