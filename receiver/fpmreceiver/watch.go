// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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
			r.reportStatus(states)
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

func (r *fpmReceiver) reportStatus(states []state) {
	event := componentstatus.NewEvent(componentstatus.StatusOK)
	if text := statusText(r.endpoints, states); text != "" {
		event = componentstatus.NewRecoverableErrorEvent(errors.New(text))
	}
	r.reportEvent(event)
}

// statusText lists the endpoints that are not live, by state; it is empty when
// all are live.
func statusText(endpoints []*endpoint, states []state) string {
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
		switch {
		case s == stateLive:
			live = count
		case count > maxNamed:
			named = append(named, fmt.Sprintf("and %d more", count-maxNamed))
			fallthrough
		case count > 0:
			parts = append(parts, fmt.Sprintf("%s: %s", s, strings.Join(named, ", ")))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d endpoints live; %s", live, len(endpoints), strings.Join(parts, "; "))
}
