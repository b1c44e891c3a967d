// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"maps"
	"sync"
	"sync/atomic"
)

// ledger accounts for every message. Once input has ended and all is quiet,
// for each signal that has a pipeline:
//
//	read = accepted + duplicate + rejected
//	accepted = delivered(signal) + dropped(signal, all reasons)
//
// Oversize stands apart: it closes a connection before a message is read.
type ledger struct {
	accepted         atomic.Int64
	duplicate        atomic.Int64
	sequenceMismatch atomic.Int64
	lost             atomic.Int64
	restarts         atomic.Int64
	overflow         atomic.Int64

	rejected counters
	signals  [signalCount]signalLedger
}

type signalLedger struct {
	delivered atomic.Int64
	dropped   counters
}

// Reasons beside those of the decoder.
const (
	// rejectedOversize: a peer announced a message over the limit.
	rejectedOversize = "oversize"
	// rejectedRankLimit: a rank beyond max_ranks.
	rejectedRankLimit = "rank_limit"

	// droppedQueueFull: the pipeline was too slow; the oldest messages go.
	droppedQueueFull = "queue_full"
	// droppedRefused: the next consumer refused for good.
	droppedRefused = "refused"
	// droppedShutdown: not delivered before the deadline of Shutdown.
	droppedShutdown = "shutdown"
)

// signal is a kind of pipeline.
type signal int

const (
	signalMetrics signal = iota
	signalLogs
	signalCount
)

var signalNames = [...]string{"metrics", "logs"}

func (s signal) String() string { return signalNames[s] }

// counters are counts by reason. The reasons are few and known.
type counters struct {
	mu sync.Mutex
	by map[string]int64
}

func (c *counters) add(reason string, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = make(map[string]int64)
	}
	c.by[reason] += n
}

func (c *counters) snapshot() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.by)
}

func (c *counters) total() int64 {
	var total int64
	for _, n := range c.snapshot() {
		total += n
	}
	return total
}
