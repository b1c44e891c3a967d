// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

// position is a place in a file between two lines: behind Lines newlines of the
// text that begins with the gzip member at Offset. The line that follows may go
// on in later members.
type position struct {
	Offset int64 `json:"offset"`
	Lines  int64 `json:"lines,omitempty"`
}

func (p position) before(q position) bool {
	return p.Offset < q.Offset || p.Offset == q.Offset && p.Lines < q.Lines
}

// signal is a kind of pipeline.
type signal int

const (
	signalMetrics signal = iota
	signalLogs
	signalCount
)

var signalNames = [...]string{"metrics", "logs"}

func (s signal) String() string { return signalNames[s] }

// positions are one for each signal: when a shutdown comes while one consumer
// has taken a batch and the other refuses it, neither must get a row twice.
type positions [signalCount]position

// first is the position from which on somebody lacks rows.
func (p positions) first() position {
	least := p[0]
	for _, q := range p[1:] {
		if q.before(least) {
			least = q
		}
	}
	return least
}
