// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmarktest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Options of a run. The zero value is a run of the newest kind on two ranks.
type Options struct {
	// Ranks is the data-parallel size, 0 means 2.
	Ranks int
	// RunID and WorkerID of the files; an empty RunID is replaced.
	RunID, WorkerID string
	// Factor on all durations, 0 means 1.
	Factor float64
	// Legacy leaves out what older artifacts do not have: protocol, evidence and
	// engine.
	Legacy bool
	// NoEngine leaves out the engine block, NoEvidence the execution evidence.
	NoEngine, NoEvidence bool
	// Partial ends the run by timeout before its last point.
	Partial bool
	// Points of the grid, nil for the standard ones.
	Points []Point
}

// Point of a grid.
type Point struct {
	Type               string
	Batch, Prefill, KV int
	Mode               string
	Capture, Padding   int
	Reasons            []string
	Seconds            float64
	// Samples is how many raw FPMs there are: 1 for a single step, 2 for an
	// admission step and the one measured, more for a median.
	Samples int
}

// StandardPoints are a small grid with every kind of point.
func StandardPoints() []Point {
	return []Point{
		{Type: "prefill", Batch: 1, Prefill: 128, Mode: "PIECEWISE", Capture: 128, Seconds: 0.0125, Samples: 1},
		{Type: "prefill", Batch: 4, Prefill: 1000, KV: 512, Mode: "NONE", Reasons: []string{"prefill_real_seed"}, Seconds: 0.0375, Samples: 1},
		{Type: "decode", Batch: 1, KV: 256, Mode: "FULL", Capture: 1, Seconds: 0.00625, Samples: 2},
		{Type: "decode", Batch: 6, KV: 6144, Mode: "FULL", Capture: 8, Padding: 2, Seconds: 0.0075, Samples: 2},
		{Type: "decode", Batch: 8, KV: 524280, Mode: "FULL", Capture: 8, Reasons: []string{"giant_fake_off_by_batch"}, Seconds: 0.025, Samples: 4},
	}
}

// Run is the files of one run. Its parts may be edited, and set to nil.
type Run struct {
	Options Options
	// Ranks are the rank files, by rank.
	Ranks []*Object
	// Merged is the merged file, Sidecar the one of the worker probe.
	Merged, Sidecar *Object
}

// GridDigest of every run made with the standard points.
const GridDigest = "4c1f5e0d8a7b6c3d2e9f00112233445566778899aabbccddeeff001122334455"

// New makes a run.
func New(o Options) *Run {
	o = withDefaults(o)
	r := &Run{Options: o}
	groups := makeGroups(o)
	measured := 0.0
	for _, group := range groups {
		measured += group.(*Object).At("wall_time").(float64)
	}
	for rank := range o.Ranks {
		r.Ranks = append(r.Ranks, makeRank(o, rank, groups, measured))
	}
	r.Merge()
	if !o.Legacy && !o.NoEngine {
		r.Sidecar = makeSidecar(o)
	}
	return r
}

func withDefaults(o Options) Options {
	if o.Ranks == 0 {
		o.Ranks = 2
	}
	if o.RunID == "" {
		o.RunID = "3f6a0c1e9b2d4e7f8a5b6c7d8e9f0a1b"
	}
	if o.Factor == 0 {
		o.Factor = 1
	}
	if o.Points == nil {
		o.Points = StandardPoints()
	}
	if o.Legacy {
		o.NoEngine, o.NoEvidence = true, true
	}
	return o
}

// Folder is where the files say they are: the engine's, which is not mounted
// where a test runs.
const Folder = "/benchmark/of/the/engine/"

// Name of a rank's file.
func Name(rank int) string {
	if rank == 0 {
		return "benchmark_results.json"
	}
	return fmt.Sprintf("benchmark_results_dp%d.json", rank)
}

// Names of the other files.
const (
	MergedName  = "benchmark_results_merged.json"
	SidecarName = "benchmark_results_merged_worker_probe.json"
)

// Files are the texts by file name.
func (r *Run) Files() map[string][]byte {
	files := make(map[string][]byte)
	for rank, file := range r.Ranks {
		if file != nil {
			files[Name(rank)] = file.JSON()
		}
	}
	if r.Merged != nil {
		files[MergedName] = r.Merged.JSON()
	}
	if r.Sidecar != nil {
		files[SidecarName] = r.Sidecar.JSON()
	}
	return files
}

// Write puts the files into a folder, each by renaming, and gives their paths:
// rank files, merged file, sidecar.
func (r *Run) Write(t testing.TB, folder string) []string {
	t.Helper()
	files := r.Files()
	var paths []string
	names := slices.Sorted(maps.Keys(files))
	slices.SortStableFunc(names, func(a, b string) int { return order(a) - order(b) })
	for _, name := range names {
		path := filepath.Join(folder, name)
		WriteFile(t, path, files[name])
		paths = append(paths, path)
	}
	return paths
}

// WriteFile writes a file as Dynamo does: beside its place, then renamed.
func WriteFile(t testing.TB, path string, text []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".tmp", text, 0o600))
	require.NoError(t, os.Rename(path+".tmp", path))
}

func order(name string) int {
	switch name {
	case MergedName:
		return 1
	case SidecarName:
		return 2
	default:
		return 0
	}
}

// Each edits every rank file and the merged one.
func (r *Run) Each(edit func(*Object)) {
	for _, file := range r.Ranks {
		edit(file)
	}
	if r.Merged != nil {
		edit(r.Merged)
	}
}

// EachGroup edits the group of a benchmark id in every file.
func (r *Run) EachGroup(id int, edit func(group *Object)) {
	r.Each(func(file *Object) {
		for _, item := range file.List("iteration_groups") {
			if group := item.(*Object); group.At("benchmark_id") == id {
				edit(group)
			}
		}
	})
}

// EachResult edits a rank's result of a benchmark id, everywhere: in the groups
// of all files, in the rank's own results and in the merged ones. holder has
// the key fpms.
func (r *Run) EachResult(rank, id int, edit func(holder *Object)) {
	r.EachGroup(id, func(group *Object) { edit(group.Object("rank_results." + strconv.Itoa(rank))) })
	r.eachOwn(rank, id, edit)
}

// eachOwn edits a rank's result in its own file and in the merged one.
func (r *Run) eachOwn(rank, id int, edit func(holder *Object)) {
	for _, item := range r.Ranks[rank].List("results") {
		if result := item.(*Object); result.At("point.benchmark_id") == id {
			edit(result)
		}
	}
	if r.Merged == nil {
		return
	}
	for _, item := range r.Merged.List("results") {
		if result := item.(*Object); result.At("point.benchmark_id") == id && result.At("point.dp_rank") == rank {
			edit(result)
		}
	}
}

// EachFPM edits the FPM of a rank at a benchmark id, everywhere.
func (r *Run) EachFPM(rank, id int, edit func(fpm *Object)) {
	r.EachResult(rank, id, func(holder *Object) { edit(holder.Object("fpms.0")) })
}

// Hash is the SHA-256 of a text, in hexadecimal.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
