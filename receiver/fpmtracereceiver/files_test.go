// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

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
