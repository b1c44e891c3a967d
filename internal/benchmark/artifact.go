// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"
)

// Kind of an artifact.
type Kind int

// The kinds, in the order in which a Checker wants them.
const (
	// Rank is what one data-parallel rank wrote.
	Rank Kind = iota
	// Merged is what a worker made of the rank files it manages.
	Merged
	// Sidecar has the post-run replies of the model workers.
	Sidecar
)

var kindNames = [...]string{"rank", "merged", "sidecar"}

func (k Kind) String() string { return kindNames[k] }

const (
	sidecarSchema = "dynamo.fpm.benchmark_worker_probe"
	// maxRunID is the longest run_id, in bytes. Dynamo's have 32.
	maxRunID = 256
	// NoRank is the rank of a file that does not say it.
	NoRank = -1
)

// Artifact is one file.
type Artifact struct {
	// File names it in violations and errors.
	File string
	Kind Kind
	Root document.Value
	// SchemaVersion is 1 or 2, for a sidecar 1.
	SchemaVersion int64
	// RunID is empty when the file has none.
	RunID string
	// Rank is the data-parallel rank of a Rank file, the first source rank of a
	// Merged one; NoRank when it is missing or no rank.
	Rank int
	// Size is the number of data-parallel ranks of the run, on all nodes; 0 when
	// it is missing or no size.
	Size int
}

// Read reads the text of a file, and keeps it: the caller must not change it.
// The error is a *ReadError.
func Read(file string, text []byte) (*Artifact, error) {
	parsed, err := document.Parse(text)
	if err != nil {
		return nil, notDocument(err)
	}
	root := parsed.Root()
	if root.Kind() != document.Object {
		return nil, notArtifact("file", root, "an object")
	}
	a := &Artifact{File: file, Root: root, Rank: NoRank}
	if root.Get("schema").Exists() {
		err = a.readSidecar()
	} else {
		err = a.readResults()
	}
	if err != nil {
		return nil, err
	}
	id, _ := root.Get("run_id").Text()
	if len(id) > maxRunID {
		return nil, notArtifact("run_id", root.Get("run_id"), fmt.Sprintf("at most %d bytes", maxRunID))
	}
	a.RunID = id
	return a, nil
}

func (a *Artifact) readSidecar() error {
	a.Kind = Sidecar
	if schema, _ := a.Root.Get("schema").Text(); schema != sidecarSchema {
		return notArtifact("schema", a.Root.Get("schema"), fmt.Sprintf("%q or no schema", sidecarSchema))
	}
	if a.SchemaVersion, _ = a.Root.Get("schema_version").Int(); a.SchemaVersion != 1 {
		return notArtifact("schema_version", a.Root.Get("schema_version"), "1")
	}
	if id, _ := a.Root.Get("run_id").Text(); id == "" {
		return notArtifact("run_id", a.Root.Get("run_id"), "the run that was probed")
	}
	return nil
}

func (a *Artifact) readResults() error {
	root := a.Root
	if a.SchemaVersion, _ = root.Get("schema_version").Int(); a.SchemaVersion != 1 && a.SchemaVersion != 2 {
		return notArtifact("schema_version", root.Get("schema_version"), "1 or 2")
	}
	dp := root.Get("dp")
	switch kind := root.Get("artifact_type"); {
	case kind.Exists():
		name, _ := kind.Text()
		switch name {
		case Rank.String():
		case Merged.String():
			a.Kind = Merged
		default:
			return notArtifact("artifact_type", kind, `"rank" or "merged"`)
		}
	case dp.Get("ranks").Exists():
		a.Kind = Merged
	case root.Get("results").Kind() != document.Array && root.Get("status").Kind() != document.String:
		return notArtifact("results", root.Get("results"), "a list")
	}
	switch {
	case a.Kind == Merged:
		a.Rank, a.Size = rankOf(dp.Get("source_ranks").Index(0)), sizeOf(dp.Get("global_size"))
	case a.SchemaVersion == 1 && !dp.Exists():
		a.Rank, a.Size = 0, 1 // the version knew no other
	default:
		a.Rank, a.Size = rankOf(dp.Get("rank")), sizeOf(dp.Get("size"))
	}
	return nil
}

func rankOf(value document.Value) int {
	if rank, ok := value.Int(); ok && rank >= 0 && rank <= math.MaxInt32 {
		return int(rank)
	}
	return NoRank
}

func sizeOf(value document.Value) int {
	if size, ok := value.Int(); ok && size > 0 && size <= math.MaxInt32 {
		return int(size)
	}
	return 0
}

// groups are the iteration groups, one a point, in the order of the file.
func (a *Artifact) groups() document.Value { return a.Root.Get("iteration_groups") }

// hasGroups reports whether there are iteration groups at all.
func (a *Artifact) hasGroups() bool { return a.groups().Index(0).Exists() }

// status is what the file says of its run. Files before that key said it with
// valid alone.
func (a *Artifact) status() string {
	if value := a.Root.Get("status"); value.Exists() {
		status, _ := value.Text()
		return status
	}
	if valid, _ := a.Root.Get("valid").Bool(); valid {
		return StatusComplete
	}
	return StatusFailed
}

// What a run can say of itself.
const (
	StatusComplete = "complete"
	StatusPartial  = "partial"
	StatusFailed   = "failed"
)

// ProbeState says what is known of the workers' answers after the run.
type ProbeState int

// The states.
const (
	// NoEngine: no engine block, hence no probe.
	NoEngine ProbeState = iota
	// ProbePending: there may be a sidecar, now or soon.
	ProbePending
	// ProbeInside: the answers were written into the artifact itself.
	ProbeInside
)

// ProbeState of a Rank or Merged file.
func (a *Artifact) ProbeState() ProbeState {
	engine := a.Root.Get("engine")
	switch {
	case engine.Kind() != document.Object:
		return NoEngine
	case engine.Get("worker_probe").Given():
		return ProbeInside
	default:
		return ProbePending
	}
}

// SidecarPath is where a Merged file says its sidecar is, empty when it does
// not say.
func (a *Artifact) SidecarPath() string {
	path, _ := a.Root.Get("worker_probe_path").Text()
	return path
}

// Sort puts artifacts into the order that a Checker wants: rank files by rank,
// then merged files by their first rank, then sidecars.
func Sort(artifacts []*Artifact) {
	slices.SortStableFunc(artifacts, func(a, b *Artifact) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Rank, b.Rank))
	})
}
