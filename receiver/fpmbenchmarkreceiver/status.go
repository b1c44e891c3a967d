// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
)

// status tells the hosts of all signals how the component is: a recoverable
// error as long as something is in trouble. Only changes are reported.
type status struct {
	mu       sync.Mutex
	hosts    []component.Host
	troubles map[string]error // by what is in trouble
	last     *componentstatus.Event
}

// addHost adds the host of one more signal, which may come late.
func (s *status) addHost(host component.Host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts = append(s.hosts, host)
	if s.last != nil {
		componentstatus.ReportStatus(host, s.last)
	}
}

// set notes that what is in trouble, or with a nil error that it is not.
func (s *status) set(what string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.troubles[what]; before == nil && err == nil || before != nil && err != nil && before.Error() == err.Error() {
		return
	}
	if s.troubles == nil {
		s.troubles = make(map[string]error)
	}
	s.troubles[what] = err
	if err == nil {
		delete(s.troubles, what)
	}
	s.last = componentstatus.NewEvent(componentstatus.StatusOK)
	if len(s.troubles) > 0 {
		var all []error
		for _, key := range slices.Sorted(maps.Keys(s.troubles)) {
			all = append(all, s.troubles[key])
		}
		s.last = componentstatus.NewRecoverableErrorEvent(errors.Join(all...))
	}
	for _, host := range s.hosts {
		componentstatus.ReportStatus(host, s.last)
	}
}
