// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// fault is something that engines and their publishers do at bad times.
type fault string

const (
	// restart: the publisher dies with what it had queued, is away, and starts
	// over at counter 0.
	restart fault = "restart"
	// gap: sequence numbers are used up for messages that are never sent, as
	// when a send would block.
	gap fault = "gap"
	// silence: nothing is sent, not even heartbeats, as while an engine
	// benchmarks itself. The counter goes on.
	silence fault = "silence"
	// heartbeatMidPass: a pass takes longer than a second, so that heartbeats
	// with all zeros come before its record.
	heartbeatMidPass fault = "heartbeat-mid-pass"
)

func faultNames() []string {
	return []string{string(restart), string(gap), string(silence), string(heartbeatMidPass)}
}

const (
	// faultInterval is the time from the start to the first fault, and from each
	// fault to the next.
	faultInterval = 10 * time.Second

	restartTime = 2 * time.Second
	gapMessages = 5
	silenceTime = 8 * time.Second // over the stale_after of 5 s that receivers have
	longPass    = 2500 * time.Millisecond
)

// schedule says which fault is due. The zero value has none.
type schedule struct {
	faults []fault
	next   time.Time
	turn   int
}

func newSchedule(faults []fault, start time.Time) schedule {
	return schedule{faults: faults, next: start.Add(faultInterval)}
}

// before cuts a time at the next fault.
func (s *schedule) before(t time.Time) time.Time {
	if len(s.faults) > 0 && s.next.Before(t) {
		return s.next
	}
	return t
}

// due takes the fault that is due at now, "" when there is none.
func (s *schedule) due(now time.Time) fault {
	if len(s.faults) == 0 || now.Before(s.next) {
		return ""
	}
	f := s.faults[s.turn%len(s.faults)]
	s.turn++
	s.next = s.next.Add(faultInterval)
	return f
}
