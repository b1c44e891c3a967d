// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark"
)

const (
	testSettle     = 45 * time.Second
	testIncomplete = 20 * time.Minute
	never          = -time.Second
)

func rankHeader(rank, size int) *header {
	return &header{path: fmt.Sprintf("rank%d", rank), kind: benchmark.Rank, run: "run", rank: rank, size: size, probe: benchmark.ProbePending}
}

func mergedHeader(probe benchmark.ProbeState) *header {
	return &header{path: "merged", kind: benchmark.Merged, run: "run", size: 2, probe: probe}
}

func sidecarHeader() *header {
	return &header{path: "sidecar", kind: benchmark.Sidecar, run: "run", rank: benchmark.NoRank}
}

// When a run is due, by what has come and when.
func TestDue(t *testing.T) {
	type arrival struct {
		after time.Duration
		file  *header
	}
	for _, test := range []struct {
		name string
		come []arrival
		due  time.Duration
	}{
		{"all ranks wait for the merged file", []arrival{{0, rankHeader(0, 2)}, {time.Minute, rankHeader(1, 2)}}, time.Minute + testSettle},
		{"one rank of one", []arrival{{0, rankHeader(0, 1)}}, testSettle},
		{"a merged file waits for the sidecar", []arrival{{0, mergedHeader(benchmark.ProbePending)}}, testSettle},
		{"the wait is the merged file's", []arrival{{0, rankHeader(0, 2)}, {0, rankHeader(1, 2)}, {30 * time.Second, mergedHeader(benchmark.ProbePending)}}, 30*time.Second + testSettle},
		{"the sidecar ends the wait", []arrival{{0, mergedHeader(benchmark.ProbePending)}, {20 * time.Second, sidecarHeader()}}, 0},
		{"a sidecar that came first", []arrival{{0, sidecarHeader()}, {20 * time.Second, mergedHeader(benchmark.ProbePending)}}, 20 * time.Second},
		{"a merged file without engine waits for nothing", []arrival{{0, mergedHeader(benchmark.NoEngine)}}, 0},
		{"one that was answered inside neither", []arrival{{0, mergedHeader(benchmark.ProbeInside)}}, 0},
		{"a rank is missing", []arrival{{0, rankHeader(0, 2)}}, testIncomplete},
		{"from its first file on", []arrival{{0, rankHeader(0, 3)}, {10 * time.Minute, rankHeader(1, 3)}}, testIncomplete},
		{"a merged file needs no rank", []arrival{{0, rankHeader(0, 4)}, {0, mergedHeader(benchmark.NoEngine)}}, 0},
		{"a sidecar alone is no run", []arrival{{0, sidecarHeader()}}, never},
		{"a file that does not say the size", []arrival{{0, rankHeader(0, 0)}}, testIncomplete},
		{"a file that does not say its rank", []arrival{{0, rankHeader(benchmark.NoRank, 1)}}, testIncomplete},
	} {
		t.Run(test.name, func(t *testing.T) {
			begin := time.Unix(1_700_000_000, 0)
			tracker := newTracker(testSettle, testIncomplete)
			for _, a := range test.come {
				result, lost := tracker.take(a.file, nil, begin.Add(a.after))
				assert.Equal(t, fileTaken, result)
				assert.Empty(t, lost)
			}
			if test.due == never {
				assert.Empty(t, tracker.due(begin.Add(100*time.Hour)))
				return
			}
			assert.Empty(t, tracker.due(begin.Add(test.due-time.Nanosecond)))
			due := tracker.due(begin.Add(test.due))
			require.Len(t, due, 1)
			tracker.done(due[0])
			assert.Empty(t, tracker.due(begin.Add(100*time.Hour)), "once")
		})
	}
}

func TestCopiesAreDuplicates(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	tracker := newTracker(testSettle, testIncomplete)
	copied := rankHeader(0, 2)
	copied.path = "copy of rank0"
	later := rankHeader(0, 2)
	later.path = "z"
	for _, test := range []struct {
		file *header
		want outcome
	}{{rankHeader(0, 2), fileTaken}, {later, fileDuplicate}, {rankHeader(1, 2), fileTaken}} {
		got, _ := tracker.take(test.file, nil, now)
		assert.Equal(t, test.want, got)
	}
	members := func() []string {
		var paths []string
		for _, h := range tracker.runs["run"].members() {
			paths = append(paths, h.path)
		}
		return paths
	}
	assert.Equal(t, []string{"rank0", "rank1"}, members())
	// The copy stands in when the first is gone.
	assert.Empty(t, tracker.keep(map[string]bool{"rank1": true, "z": true}))
	assert.Equal(t, []string{"z", "rank1"}, members())
}

// A run whose last artifact goes before it is due is lost; its sidecar is no
// artifact.
func TestLostRuns(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	tracker := newTracker(testSettle, testIncomplete)
	tracker.take(rankHeader(0, 2), nil, now)
	tracker.take(rankHeader(1, 2), nil, now)
	tracker.take(sidecarHeader(), nil, now)
	assert.Empty(t, tracker.keep(map[string]bool{"rank1": true, "sidecar": true}))

	other := rankHeader(1, 2)
	other.run = "another"
	result, lost := tracker.take(other, nil, now)
	assert.Equal(t, fileTaken, result)
	assert.Equal(t, []string{"run"}, lost)
	assert.Empty(t, tracker.keep(map[string]bool{"rank1": true}), "lost once")
	assert.Len(t, tracker.runs, 1)
	assert.Len(t, tracker.files, 1)
	assert.Equal(t, []string{"another"}, tracker.keep(nil))
	assert.Empty(t, tracker.runs)
	assert.Empty(t, tracker.files)
}

// A new version of a run's only file is no loss, and the wait begins anew.
func TestNewVersionStaysInItsRun(t *testing.T) {
	begin := time.Unix(1_700_000_000, 0)
	tracker := newTracker(testSettle, testIncomplete)
	tracker.take(mergedHeader(benchmark.ProbePending), nil, begin)
	result, lost := tracker.take(mergedHeader(benchmark.ProbePending), nil, begin.Add(30*time.Second))
	assert.Equal(t, fileTaken, result)
	assert.Empty(t, lost)
	assert.Len(t, tracker.runs["run"].files, 1)
	assert.Empty(t, tracker.due(begin.Add(testSettle)))
	assert.Len(t, tracker.due(begin.Add(30*time.Second+testSettle)), 1)
}
