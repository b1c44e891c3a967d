// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// status reports what keeps files from being read, as one status, to the hosts
// of all signals. Only changes are reported.
type status struct {
	mu       sync.Mutex
	hosts    []component.Host
	troubles map[string]error
	last     *componentstatus.Event
	ended    bool
}

// addHost makes a host listen. It hears at once what has been reported so far.
func (s *status) addHost(host component.Host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts = append(s.hosts, host)
	if s.last != nil && !s.ended {
		componentstatus.ReportStatus(host, s.last)
	}
}

// set notes what is wrong with something, nil when nothing is.
func (s *status) set(what string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.troubles)
	if err == nil {
		delete(s.troubles, what)
	} else {
		if s.troubles == nil {
			s.troubles = map[string]error{}
		}
		s.troubles[what] = err
	}
	switch {
	case before == 0 && len(s.troubles) > 0:
		s.tell(componentstatus.NewRecoverableErrorEvent(err))
	case before > 0 && len(s.troubles) == 0:
		s.tell(componentstatus.NewEvent(componentstatus.StatusOK))
	}
}

// done reports that all files were read. What went wrong on the way remains the
// status, with the same attributes.
func (s *status) done(attributes pcommon.Map) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, err := range s.troubles {
		s.tell(componentstatus.NewEvent(componentstatus.StatusRecoverableError,
			componentstatus.WithError(err), componentstatus.WithAttributes(attributes)))
		return
	}
	s.tell(componentstatus.NewEvent(componentstatus.StatusOK, componentstatus.WithAttributes(attributes)))
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
