// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFollowsAGrowingFile member by member, as they come.
func TestFollowsAGrowingFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil).start()
		r.settle()
		for counter := int64(0); counter < 10; counter++ {
			r.append(r.path("p", 0), rows(counter, counter+1))
			r.settle()
			r.expect("p", span(0, counter+1))
		}
		r.stop()
		assert.Equal(t, int64(10), r.sum("members", "whole"))
		assert.Zero(t, r.sum("skipped_bytes"))
	})
}

// TestReadsEveryMemberOfAPassBeforeItWaits: a backlog is not read at one member
// a poll.
func TestReadsEveryMemberOfAPassBeforeItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		for counter := int64(0); counter < 200; counter++ {
			r.append(r.path("p", int(counter/50)), rows(counter, counter+1))
		}
		r.start()
		synctest.Wait()
		r.expect("p", span(0, 200))
		r.stop()
	})
}

// TestOrderWithinAProducer: segments in the order of their numbers, also of
// seven digits, however the files are listed.
func TestOrderWithinAProducer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		for _, segment := range []int{1000001, 999998, 1000000, 999999} {
			from := int64(segment-999998) * 5
			r.append(r.path("p", segment), rows(from, from+2), rows(from+2, from+5))
			r.append(r.path("q", segment), rowsOf("q", from, from+5))
		}
		r.start()
		r.settle()
		r.expect("p", span(0, 20))
		r.expect("q", span(0, 20))
		r.stop()
	})
}

func TestRolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil).start()
		for segment := range 6 {
			from := int64(segment) * 10
			r.append(r.path("p", segment), rows(from, from+5))
			if segment >= 2 { // the writer prunes
				require.NoError(t, os.Remove(r.path("p", segment-2)))
			}
			r.settle()
			r.append(r.path("p", segment), rows(from+5, from+10))
			r.settle()
		}
		r.expect("p", span(0, 60))
		assert.Equal(t, int64(2), r.sum("files"))
		assert.Zero(t, r.sum("skipped_bytes"))
		assert.Zero(t, r.sum("unread_bytes"))
		r.stop()
	})
}

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

func TestStartAtEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		atEnd := func(c *Config) { c.StartAt = startEnd }
		r := newRig(t, func(c *Config) { atEnd(c); withStorage(c) })
		r.append(r.path("p", 0), rows(0, 5))
		r.start()
		r.settle()
		assert.Zero(t, r.logs.total())
		r.append(r.path("p", 0), rows(5, 7)) // new members of old files
		r.append(r.path("p", 1), rows(7, 9)) // and new files, whole
		r.append(r.path("q", 0), rowsOf("q", 0, 3))
		r.settle()
		r.expect("p", span(5, 9))
		r.expect("q", span(0, 3))
		r.stop()

		// What came while nobody looked is new, not old.
		again := rigIn(t, r.dir, func(c *Config) { atEnd(c); withStorage(c) })
		again.append(again.path("p", 1), rows(9, 10))
		again.append(again.path("n", 0), rowsOf("n", 0, 2))
		again.start()
		again.settle()
		again.expect("p", span(9, 10))
		again.expect("n", span(0, 2))
		assert.Len(t, again.messages("start_at does not apply"), 1)
		again.stop()
	})
}

// TestFilesThatVanish: what was not read of them is counted, once.
func TestFilesThatVanish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.metrics = nil
		r.logs.answer = func(int) error { return errNotNow }
		for segment := range 3 {
			from := int64(segment) * 10
			r.append(r.path("p", segment), rows(from, from+5), rows(from+5, from+10))
		}
		r.start()
		r.settle()
		size := fileSize(t, r.path("p", 1))
		require.NoError(t, os.Remove(r.path("p", 0))) // is open
		require.NoError(t, os.Remove(r.path("p", 1)))
		r.logs.will(nil)
		time.Sleep(time.Minute)
		r.expect("p", append(span(0, 10), span(20, 30)...))
		assert.Equal(t, size, r.sum("skipped_bytes", "removed"))
		assert.Equal(t, int64(1), r.sum("files"))
		require.Len(t, r.messages("is gone before"), 1)
		r.stop()
	})
}

func fileSize(t testing.TB, path string) int64 {
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Size()
}

// TestDirectoryThatComesBack: a volume that is away for a while, and mounted
// again, holds the same files; nothing is read twice.
func TestDirectoryThatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		volume := filepath.Join(r.dir, "volume")
		r.cfg.Include = []string{filepath.Join(volume, "*.jsonl.gz")}
		require.NoError(t, os.Mkdir(volume, 0o755))
		path := filepath.Join(volume, "fpm.p.000000.jsonl.gz")
		r.append(path, rows(0, 5))
		r.start()
		r.settle()
		require.NoError(t, os.Rename(volume, volume+".away"))
		time.Sleep(forgetAfter / 2)
		assert.Zero(t, r.sum("files"))
		require.NoError(t, os.Rename(volume+".away", volume))
		r.append(path, rows(5, 8))
		r.settle()
		r.expect("p", span(0, 8))
		r.stop()
	})
}

// TestForgottenFile: after an hour a path is free for another file, and so is
// the memory.
func TestForgottenFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, withStorage)
		path := r.path("p", 0)
		r.append(path, rows(0, 5))
		r.start()
		r.settle()
		require.NoError(t, os.Rename(path, path+".away"))
		time.Sleep(forgetAfter + time.Minute)
		assert.Empty(t, r.core.reader.files)
		assert.Equal(t, []string{"files"}, storedKeys(t, r))
		require.NoError(t, os.Rename(path+".away", path))
		r.settle()
		r.expect("p", append(span(0, 5), span(0, 5)...))
		r.stop()
	})
}

// TestReplacedFile: another file under the same name is read from its
// beginning, be it longer or shorter; one that was cut back is not.
func TestReplacedFile(t *testing.T) {
	for _, test := range []struct {
		name    string
		replace func(r *rig, path string)
		want    []int64
	}{
		{"by a longer one", func(r *rig, path string) {
			require.NoError(r.t, os.Remove(path))
			r.append(path, rows(100, 120))
		}, append(span(0, 5), span(100, 120)...)},
		{"by a shorter one", func(r *rig, path string) {
			require.NoError(r.t, os.Remove(path))
			r.append(path, rows(100, 101))
		}, append(span(0, 5), 100)},
		{"by one renamed onto it", func(r *rig, path string) {
			r.append(path+".new", rows(100, 103))
			require.NoError(r.t, os.Rename(path+".new", path))
		}, append(span(0, 5), span(100, 103)...)},
		{"truncated and written anew", func(r *rig, path string) {
			require.NoError(r.t, os.Truncate(path, 0))
			r.append(path, rows(100, 102))
		}, append(span(0, 5), 100, 101)},
		{"truncated, later written anew", func(r *rig, path string) {
			require.NoError(r.t, os.Truncate(path, 0))
			r.settle()
			r.append(path, rows(100, 102))
		}, append(span(0, 5), 100, 101)},
		{"copied over itself", func(r *rig, path string) {
			content, err := os.ReadFile(path)
			require.NoError(r.t, err)
			require.NoError(r.t, os.Remove(path))
			r.appendBytes(path, content)
		}, span(0, 5)},
		{"cut back by its writer, who writes the rows again", func(r *rig, path string) {
			require.NoError(r.t, os.Truncate(path, int64(len(pack(r.t, rows(0, 4))))))
			r.settle()
			r.append(path, rows(4, 6))
		}, append(span(0, 5), 4, 5)},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, withStorage)
				path := r.path("p", 0)
				r.append(path, rows(0, 4), rows(4, 5))
				r.start()
				r.settle()
				test.replace(r, path)
				r.settle()
				r.expect("p", test.want)
				r.stop()

				again := rigIn(t, r.dir, withStorage).start()
				again.settle()
				assert.Zero(t, again.logs.total())
				again.stop()
			})
		})
	}
}

// TestReplacedWhileStopped: the same while nobody looks.
func TestReplacedWhileStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newRig(t, withStorage)
		path := first.path("p", 0)
		first.append(path, rows(0, 5))
		first.start()
		first.settle()
		first.stop()
		require.NoError(t, os.Remove(path))
		first.append(path, rows(100, 110))

		second := rigIn(t, first.dir, withStorage).start()
		second.settle()
		second.expect("p", span(100, 110))
		second.stop()
	})
}

func TestManyProducers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const producers = 2000
		r := newRig(t, nil)
		name := func(i int) string { return fmt.Sprintf("p%04d", i) }
		for i := range producers {
			r.append(r.path(name(i), 0), rowsOf(name(i), 0, 2), rowsOf(name(i), 2, 3))
		}
		r.start()
		r.settle()
		for i := 0; i < producers; i += 2 {
			r.append(r.path(name(i), 1), rowsOf(name(i), 3, 4))
		}
		r.settle()
		for i := range producers {
			want := span(0, int64(3+(1-i%2)))
			require.Equal(t, want, r.logs.of(name(i)))
			require.Equal(t, want, r.metrics.of(name(i)))
		}
		assert.Equal(t, int64(producers*3/2), r.sum("files"))
		// Rows of many files go in one batch.
		assert.Less(t, len(r.logs.allLogs), 50)
		r.stop()
	})
}

// TestBacklogOfOneDoesNotHoldUpOthers: a pass reads one member of each.
func TestBacklogOfOneDoesNotHoldUpOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		for counter := int64(0); counter < 100; counter++ {
			r.append(r.path("a", 0), rowsOf("a", counter, counter+1))
		}
		r.append(r.path("z", 0), rowsOf("z", 0, 1))
		r.metrics = nil
		r.start()
		synctest.Wait()
		assert.Equal(t, 2, r.logs.allLogs[0].ResourceLogs().Len(), "both are in the first batch")
		r.expect("a", span(0, 100))
		r.stop()
	})
}

// TestStandAloneFiles: names that no writer gives.
func TestStandAloneFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Include = append(c.Include, filepath.Join(filepath.Dir(c.Include[0]), "sub", "*")) })
		require.NoError(t, os.Mkdir(filepath.Join(r.dir, "sub"), 0o755))
		r.append(filepath.Join(r.dir, "by hand.jsonl.gz"), rowsOf("hand", 0, 2))
		r.append(filepath.Join(r.dir, "sub", "incident"), rowsOf("incident", 0, 2))
		r.append(filepath.Join(r.dir, "sub", "fpm.p.1.jsonl.gz"), rowsOf("short", 0, 2))
		r.append(filepath.Join(r.dir, "other.txt"), rowsOf("other", 0, 2))
		r.start()
		r.settle()
		for _, producer := range []string{"hand", "incident", "short"} {
			r.expect(producer, span(0, 2))
		}
		assert.Empty(t, r.logs.of("other"))
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
