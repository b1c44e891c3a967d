// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
)

// status tells the host how the component is: OK while a producer is connected,
// else a recoverable error. It is told of changes only.
type status struct {
	host     component.Host
	endpoint string

	mu        sync.Mutex
	producers int
}

// begin reports that nobody is there yet.
func (s *status) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report()
}

func (s *status) connected() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.producers++; s.producers == 1 {
		s.report()
	}
}

func (s *status) disconnected() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.producers--; s.producers == 0 {
		s.report()
	}
}

func (s *status) report() {
	event := componentstatus.NewEvent(componentstatus.StatusOK)
	if s.producers == 0 {
		event = componentstatus.NewRecoverableErrorEvent(fmt.Errorf("no producer is connected to %s", s.endpoint))
	}
	componentstatus.ReportStatus(s.host, event)
}
