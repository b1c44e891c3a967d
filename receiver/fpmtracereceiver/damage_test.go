// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTornTail is waited for, and skipped once a later segment exists.
func TestTornTail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		torn := pack(t, rows(5, 8))
		torn = torn[:len(torn)-5]
		r.append(r.path("p", 0), rows(0, 5))
		r.appendBytes(r.path("p", 0), torn)
		r.start()
		time.Sleep(time.Minute)
		r.expect("p", span(0, 5))
		assert.Zero(t, r.sum("skipped_bytes"), "it may still become whole")
		assert.Equal(t, int64(len(torn)), r.sum("unread_bytes"))

		r.append(r.path("p", 1), rows(8, 10))
		r.settle()
		r.expect("p", append(span(0, 5), 8, 9))
		assert.Equal(t, int64(len(torn)), r.sum("skipped_bytes", "torn"))
		assert.Equal(t, int64(1), r.sum("members", "torn"))
		assert.Zero(t, r.sum("unread_bytes"))
		require.Len(t, r.messages("incomplete gzip member"), 1)
		r.stop()
		// The lost rows are lost messages.
		assert.Equal(t, int64(3), last(pointsOf(r, "p").ints["fpm.messages.lost"]))
	})
}

func last(values []int64) int64 { return values[len(values)-1] }

// TestTornTailBecomesWhole, byte by byte.
func TestTornTailBecomesWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		member := pack(t, rows(5, 8))
		r.append(r.path("p", 0), rows(0, 5))
		r.start()
		for i := range member {
			r.appendBytes(r.path("p", 0), member[i:i+1])
			time.Sleep(r.cfg.PollInterval)
		}
		r.settle()
		r.expect("p", span(0, 8))
		assert.Zero(t, r.sum("skipped_bytes"))
		r.stop()
	})
}

// TestSegmentIsNotTornWhileItGrows: a later segment exists, but the earlier one
// is still written, as when two producers have one name.
func TestSegmentIsNotTornWhileItGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		member := pack(t, rows(0, 3))
		half := len(member) / 2
		r.appendBytes(r.path("p", 0), member[:half])
		r.append(r.path("p", 1), rows(3, 5))
		r.start()
		synctest.Wait()
		assert.Zero(t, r.logs.total(), "order is kept")
		r.appendBytes(r.path("p", 0), member[half:])
		r.settle()
		r.expect("p", span(0, 5))
		assert.Zero(t, r.sum("skipped_bytes"))
		r.stop()
	})
}

// TestDamage: what verifies is read, whatever is around it.
func TestDamage(t *testing.T) {
	good := func(from, to int64) []byte { return pack(t, rows(from, to)) }
	broken := func(from, to int64) []byte {
		member := good(from, to)
		member[len(member)-6] ^= 1 // its checksum
		return member
	}
	for _, test := range []struct {
		name    string
		parts   [][]byte
		want    []int64
		skipped int // parts of it, in bytes
		places  int64
	}{
		{"torn, then good", [][]byte{good(0, 2), good(2, 4)[:30], good(4, 6)}, []int64{0, 1, 4, 5}, 30, 1},
		{"a wrong checksum", [][]byte{good(0, 2), broken(2, 4), good(4, 6)}, []int64{0, 1, 4, 5}, len(broken(2, 4)), 1},
		{"text between", [][]byte{good(0, 2), []byte(rows(2, 4)), good(4, 6)}, []int64{0, 1, 4, 5}, len(rows(2, 4)), 1},
		{"several in a row", [][]byte{good(0, 2), broken(2, 4), broken(2, 4), good(2, 4)[:9], good(4, 6)}, []int64{0, 1, 4, 5}, 2*len(broken(2, 4)) + 9, 1},
		{"in two places", [][]byte{broken(0, 2), good(2, 4), broken(4, 6), good(6, 8)}, []int64{2, 3, 6, 7}, len(broken(0, 2)) + len(broken(4, 6)), 2},
		{"at the end", [][]byte{good(0, 2), broken(2, 4)}, []int64{0, 1}, len(broken(2, 4)), 1},
		{"zero padding", [][]byte{good(0, 2), make([]byte, 1000)}, []int64{0, 1}, 1000, 1},
		{"no gzip file", [][]byte{[]byte(rows(0, 2))}, nil, len(rows(0, 2)), 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil)
				r.appendBytes(r.path("p", 0), bytes.Join(test.parts, nil))
				r.append(r.path("q", 0), rowsOf("q", 0, 3))
				r.start()
				r.settle()
				r.expect("p", test.want)
				r.expect("q", span(0, 3))
				assert.Equal(t, int64(test.skipped), r.sum("skipped_bytes", "corrupt"))
				assert.Equal(t, test.places, r.sum("members", "corrupt"))
				require.NotEmpty(t, r.messages("Bytes skipped"))
				fields := r.messages("Bytes skipped")[0].ContextMap()
				assert.Equal(t, r.path("p", 0), fields["file"])
				assert.NotEmpty(t, fields["error"])

				// And it goes on.
				r.append(r.path("p", 0), rows(90, 92))
				r.settle()
				r.expect("p", append(append([]int64(nil), test.want...), 90, 91))
				r.stop()
			})
		})
	}
}

// TestLinesAcrossMembers: a file that was cut into members without regard to
// lines, as block compressors do.
func TestLinesAcrossMembers(t *testing.T) {
	text := rows(0, 40)
	for _, size := range []int{50, 333, 700, 5000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil)
				for rest := text; rest != ""; {
					n := min(size, len(rest))
					r.append(r.path("p", 0), rest[:n])
					rest = rest[n:]
				}
				r.start()
				r.settle()
				r.expect("p", span(0, 40))
				r.stop()
			})
		})
	}
}

// TestLastLineWithoutNewline is a row once the file does not grow any more.
func TestLastLineWithoutNewline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, withStorage)
		text := rows(0, 3)
		r.append(r.path("p", 0), text[:len(text)-1])
		r.start()
		synctest.Wait()
		r.expect("p", span(0, 2))
		r.settle()
		r.expect("p", span(0, 3))
		r.append(r.path("p", 0), rows(3, 5))
		r.settle()
		r.expect("p", span(0, 5))
		assert.Zero(t, r.sum("rows", "rejected"))
		r.stop()

		again := rigIn(t, r.dir, withStorage).start()
		again.settle()
		assert.Zero(t, again.logs.total())
		again.stop()
	})
}

// TestLineThatDamageCuts is rejected, and the ones behind it are read.
func TestLineThatDamageCuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		text := rows(0, 3)
		r.append(r.path("p", 0), text[:len(text)-100])
		r.appendBytes(r.path("p", 0), []byte("garbage"))
		r.append(r.path("p", 0), rows(3, 5))
		r.start()
		r.settle()
		r.expect("p", []int64{0, 1, 3, 4})
		assert.Equal(t, int64(1), r.sum("rejected", "malformed"))
		assert.Equal(t, int64(7), r.sum("skipped_bytes", "corrupt"))
		r.stop()
	})
}

// TestLongCopyIsLetAlone: a large file that is being copied is not decompressed
// again with every poll; it is read when it does not grow any more.
func TestLongCopyIsLetAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.metrics = nil
		// Text that hardly compresses, in one member of some MiB.
		var text strings.Builder
		seed := uint64(1)
		for counter := int64(0); counter < 600; counter++ {
			var pad strings.Builder
			for range 20000 {
				seed = seed*6364136223846793005 + 1442695040888963407
				pad.WriteByte('!' + byte(seed>>33)%90)
			}
			noise := strings.NewReplacer(`"`, "a", `\`, "b").Replace(pad.String())
			text.WriteString(strings.Replace(rowOf{counter: counter}.String(), `"version":1`, `"version":1,"pad":"`+noise+`"`, 1))
		}
		member := pack(t, text.String())
		require.Greater(t, len(member), 2*settleSize)
		path := r.path("p", 0)
		r.appendBytes(path, member[:settleSize+100])
		r.start()
		synctest.Wait()
		f := r.core.reader.files[path]
		tried := f.endAt
		for at := settleSize + 100; at < len(member); at += 1 << 20 {
			r.appendBytes(path, member[at:min(at+1<<20, len(member))])
			time.Sleep(r.cfg.PollInterval)
			synctest.Wait()
			require.Equal(t, tried, f.endAt, "not tried again while it grows")
		}
		r.settle()
		r.expect("p", span(0, 600))
		r.stop()
	})
}
