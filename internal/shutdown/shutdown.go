// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package shutdown bounds the time in which a component hands on what it has
// taken before it ends.
//
//	told to finish ──▶ delivers on ──▶ its context is cancelled ──▶ deadline
//	                                   └───── settle time ───────────┘
package shutdown

import (
	"context"
	"sync"
	"time"
)

const (
	// Timeout bounds a Shutdown whose context has no deadline, which is what the
	// Collector gives.
	Timeout = 5 * time.Second
	// settleTime is left of it, at most, to consumers that were told that the
	// time is over.
	settleTime = 500 * time.Millisecond
	// lateTime is left to them when there is no time at all: late as it is, what
	// can be counted in order shall be.
	lateTime = 50 * time.Millisecond
)

// Wait waits for the goroutines of a component, which were told to finish what
// they have. Shortly before the deadline of ctx or Timeout, whichever is first,
// or when ctx is cancelled, it calls cancel, which ends the context that they
// hand to consumers. It is false when a consumer does not return even then: its
// goroutine is left behind. cancel is called in any case.
func Wait(ctx context.Context, running *sync.WaitGroup, cancel context.CancelFunc) bool {
	defer cancel()
	left := Timeout
	if deadline, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(deadline))
	}
	settle := min(settleTime, left/10)
	if left <= 0 {
		settle = lateTime
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		running.Wait()
	}()
	select {
	case <-done:
		return true
	case <-time.After(left - settle):
	case <-ctx.Done():
	}
	cancel()
	select {
	case <-done:
		return true
	case <-time.After(settle):
		return false
	}
}
