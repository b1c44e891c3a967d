// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// Bad input has a line at most each ten seconds, which says how many were not
// shown.
func TestRejectedLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, testConfig(), nil, &logsSink{})
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		for range 250 { // 25 s
			e.Message(nil, time.Now())
			time.Sleep(100 * time.Millisecond)
		}
		var hidden []any
		for _, line := range g.warnings("Message rejected") {
			hidden = append(hidden, line.ContextMap()["not_shown"])
		}
		assert.Equal(t, []any{nil, int64(99), int64(99)}, hidden)
		g.shutdown()
		g.settled(250)
	})
}
