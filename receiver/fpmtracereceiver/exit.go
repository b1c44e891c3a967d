// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"os"
	ossignal "os/signal"
	"sync"
	"syscall"
	"time"
)

// exitGate ends the process when the last receiver with exit_when_done is done.
//
// It sends the process the signal that asks for a graceful end, SIGTERM: the
// Collector then drains its pipelines and exits with code 0, as when an operator
// ends it. Reporting a fatal error would end it too, but as a failure, in its
// log and to its health check.
type exitGate struct {
	mu     sync.Mutex
	inside map[*traceReceiver]struct{}
	send   func() error
}

// processExit is that of this process.
var processExit = &exitGate{send: func() error {
	own, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	return own.Signal(syscall.SIGTERM)
}}

// exitRetry is how long to wait for the Collector to react.
const exitRetry = time.Second

// enter tells of a receiver that must be done before the process may end. The
// Collector makes all receivers before it starts the first, so that none is
// missed.
func (g *exitGate) enter(r *traceReceiver) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside == nil {
		g.inside = make(map[*traceReceiver]struct{})
	}
	g.inside[r] = struct{}{}
}

// leave tells that it is done, or stopped.
func (g *exitGate) leave(r *traceReceiver) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.inside, r)
}

// end asks the process to end, until stop is closed. The Collector listens to
// the signal only when all its components have started, and until then it would
// kill the process; so it is caught here too, and sent again.
func (g *exitGate) end(stop <-chan struct{}) {
	caught := make(chan os.Signal, 1)
	ossignal.Notify(caught, syscall.SIGTERM)
	defer ossignal.Stop(caught)
	for {
		g.mu.Lock()
		last := len(g.inside) == 0
		g.mu.Unlock()
		if last {
			_ = g.send() // cannot fail for the own process; if it does, it is tried again
		}
		select {
		case <-stop:
			return
		case <-time.After(exitRetry):
		}
	}
}
