// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
)

const (
	// watchInterval is how soon a change of an endpoint's state shows in the
	// component's status.
	watchInterval = 250 * time.Millisecond
	// evictEvery is how many watch intervals lie between two looks for idle ranks.
	evictEvery = 40
	// maxNamed is how many endpoints of one state a status text names.
	maxNamed = 10
)

// watch reports the component's status when it changes, and forgets idle ranks.
func (r *fpmReceiver) watch(stop <-chan struct{}) {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	var reported []state
	for n := 1; ; n++ {
		now := time.Now()
		states := make([]state, len(r.endpoints))
		for i, e := range r.endpoints {
			states[i] = e.state(now)
		}
		if !slices.Equal(states, reported) {
			r.status.report(statusEvent(r.endpoints, states))
			reported = states
		}
		if n%evictEvery == 0 {
			for _, e := range r.endpoints {
				e.evict(now, r.config.RankTTL)
			}
		}
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
	}
}

// status tells the hosts of all signals how the component is.
type status struct {
	mu    sync.Mutex
	hosts []component.Host // one a pipeline signal
	last  *componentstatus.Event
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

func (s *status) report(event *componentstatus.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = event
	for _, host := range s.hosts {
		componentstatus.ReportStatus(host, event)
	}
}

// statusEvent is OK when all endpoints are live, else a recoverable error that
// lists the others by state.
func statusEvent(endpoints []*endpoint, states []state) *componentstatus.Event {
	var parts []string
	live := 0
	for _, s := range []state{stateConnecting, stateSilent, stateStale, stateLive} {
		var named []string
		count := 0
		for i, e := range endpoints {
			if states[i] != s {
				continue
			}
			if count++; count <= maxNamed {
				named = append(named, e.address.String())
			}
		}
		if count > maxNamed {
			named = append(named, fmt.Sprintf("and %d more", count-maxNamed))
		}
		switch {
		case s == stateLive:
			live = count
		case count > 0:
			parts = append(parts, fmt.Sprintf("%s: %s", s, strings.Join(named, ", ")))
		}
	}
	if len(parts) == 0 {
		return componentstatus.NewEvent(componentstatus.StatusOK)
	}
	return componentstatus.NewRecoverableErrorEvent(
		errors.New(fmt.Sprintf("%d of %d endpoints live; ", live, len(endpoints)) + strings.Join(parts, "; ")))
}
