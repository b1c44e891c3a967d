// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
)

// status reports whether traces can be written, as one status for all
// producers and to the hosts of both signals. Only changes are reported.
type status struct {
	mu    sync.Mutex
	hosts []component.Host
	// failing are the writers that fail, by an identity of theirs.
	failing map[any]struct{}
	last    *componentstatus.Event
	ended   bool
}

// add makes a host listen. It hears at once when writing fails.
func (s *status) add(host component.Host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts = append(s.hosts, host)
	if len(s.failing) > 0 {
		componentstatus.ReportStatus(host, s.last)
	}
}

// fails notes that a writer failed.
func (s *status) fails(writer any, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing == nil {
		s.failing = map[any]struct{}{}
	}
	s.failing[writer] = struct{}{}
	if len(s.failing) == 1 && (s.last == nil || s.last.Status() != componentstatus.StatusRecoverableError) {
		s.tell(componentstatus.NewRecoverableErrorEvent(fmt.Errorf("traces cannot be written: %w", err)))
	}
}

// works notes that a writer does not fail, or is no more.
func (s *status) works(writer any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, failed := s.failing[writer]; !failed {
		return
	}
	delete(s.failing, writer)
	if len(s.failing) == 0 {
		s.tell(componentstatus.NewEvent(componentstatus.StatusOK))
	}
}

// end stops all reporting: while a component stops, its status is the
// Collector's to report.
func (s *status) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

func (s *status) tell(event *componentstatus.Event) {
	s.last = event
	if s.ended {
		return
	}
	for _, host := range s.hosts {
		componentstatus.ReportStatus(host, event)
	}
}
