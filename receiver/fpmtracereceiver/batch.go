// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

const (
	// maxBatchRows bounds the lines of a batch, rejected ones included, and
	// maxBatchBytes the payloads, which take many times their size as telemetry
	// data. A single row may be larger.
	maxBatchRows  = 1024
	maxBatchBytes = 2 << 20
	// keepPayload is how large a buffer of payloads may be to be used again.
	keepPayload = 2 * maxBatchBytes
)

// batch is what was read and not delivered yet.
//
// Invariant (TestKillRepeatsAtMostOneMember): it has rows of at most one member
// of a file, so that this much is repeated when the process is killed before
// their position is stored.
type batch struct {
	rows    []entry
	payload []byte
	// files are those of which something was read.
	files []*file
	tally tally
}

// tally counts the lines of a batch.
type tally struct {
	accepted, noEnvelope int
	rejected             map[string]int
}

func (t *tally) rows() int { return t.accepted + t.noEnvelope }

func (t *tally) lines() int {
	lines := t.rows()
	for _, rejected := range t.rejected {
		lines += rejected
	}
	return lines
}

func (t *tally) reject(reason string) {
	if t.rejected == nil {
		t.rejected = map[string]int{}
	}
	t.rejected[reason]++
}

// add takes a row.
func (b *batch) add(e entry) {
	b.rows = append(b.rows, e)
	if e.Flat {
		b.tally.noEnvelope++
	} else {
		b.tally.accepted++
	}
}

// holds reports that something of the file is in the batch.
func (b *batch) holds(f *file) bool {
	for _, held := range b.files {
		if held == f {
			return true
		}
	}
	return false
}

// touch notes that the file's cursor has moved.
func (b *batch) touch(f *file) {
	if n := len(b.files); n > 0 && b.files[n-1] == f {
		return
	}
	if !b.holds(f) {
		b.files = append(b.files, f)
	}
}

func (b *batch) full() bool {
	return b.tally.lines() >= maxBatchRows || len(b.payload) >= maxBatchBytes
}

func (b *batch) empty() bool { return len(b.files) == 0 && b.tally.lines() == 0 }

// clear makes room for the next batch.
func (b *batch) clear() {
	clear(b.rows)
	clear(b.files)
	b.rows, b.files, b.tally = b.rows[:0], b.files[:0], tally{}
	if cap(b.payload) > keepPayload {
		b.payload = nil
	}
	b.payload = b.payload[:0]
}
