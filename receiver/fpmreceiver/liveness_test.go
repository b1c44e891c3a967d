// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestLiveness(t *testing.T) {
	const (
		connect    = "connect"
		disconnect = "disconnect"
		message    = "message"
		look       = ""
	)
	type event struct {
		after time.Duration
		what  string
		want  state
	}
	for name, events := range map[string][]event{
		"nothing yet": {{0, look, stateConnecting}, {time.Hour, look, stateConnecting}},
		"connected and silent for ever": {
			{0, connect, stateSilent}, {15 * time.Minute, look, stateSilent},
		},
		"live, stale to the nanosecond, live again": {
			{0, connect, stateSilent},
			{time.Second, message, stateLive},
			{5*time.Second - 1, look, stateLive},
			{1, look, stateStale},
			{time.Second, message, stateLive},
		},
		"live, connection lost": {
			{0, connect, stateSilent},
			{0, message, stateLive},
			{time.Second, disconnect, stateConnecting},
			{0, connect, stateSilent},
			{0, message, stateLive},
		},
		"a stale endpoint redialled in time stays stale until a message comes": {
			{0, connect, stateSilent},
			{0, message, stateLive},
			{6 * time.Second, disconnect, stateStale},
			{time.Second, connect, stateStale},
			{time.Hour, look, stateStale},
			{0, message, stateLive},
		},
		"a stale endpoint redialled late begins anew": {
			{0, connect, stateSilent},
			{0, message, stateLive},
			{6 * time.Second, disconnect, stateStale},
			{time.Second + 1, look, stateConnecting},
			{0, connect, stateSilent},
		},
		"a silent endpoint redialled in time never says connecting": {
			{0, connect, stateSilent},
			{10 * time.Second, disconnect, stateSilent},
			{500 * time.Millisecond, look, stateSilent},
			{0, connect, stateSilent},
		},
		"failed redials do not prolong the grace": {
			{0, connect, stateSilent},
			{0, disconnect, stateSilent},
			{700 * time.Millisecond, disconnect, stateSilent},
			{700 * time.Millisecond, disconnect, stateConnecting},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := liveness{staleAfter: 5 * time.Second}
			now := time.Now()
			for i, e := range events {
				now = now.Add(e.after)
				switch e.what {
				case connect:
					l.connect(now)
				case disconnect:
					l.disconnect(now)
				case message:
					l.message(now)
				}
				assert.Equal(t, e.want, l.at(now), "event %d", i)
			}
		})
	}
}
