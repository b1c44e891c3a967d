// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package tokenspeed

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

// Beside a neighbour that sends garbage from beginning to end nothing of the
// engine's is lost or changed.
func TestHostileNeighbour(t *testing.T) {
	endpoint := tcp(ports.One(t))
	c, address := shipped(t, endpoint)
	neighbour := harness.Start(t, "the neighbour", interpreter(t), "-B", script("hostile.py"), endpoint)
	neighbour.WaitForLine(t, "pushing")
	e := startEngine(t, t.TempDir(), map[string]any{"endpoint": endpoint}, 1000)
	accounts := e.accounts(t)
	harness.Wait(t, "the neighbour has not come to all it tries", func() bool {
		telemetry := harness.Scrape(t, c.Telemetry)
		for _, reason := range []string{"malformed", "oversize", "protocol"} {
			if telemetry.Count(received+"rejected", "reason", reason) == 0 {
				return false
			}
		}
		return telemetry.Count(received+"refused", "reason", "signature") > 0 &&
			telemetry.Count(received+"refused", "reason", "socket_type") > 0
	})
	assert.False(t, neighbour.Ended(), "the neighbour gave up")
	neighbour.Kill()

	telemetry := settled(t, c, accounts)
	assertLedger(t, telemetry, accounts)
	assertObserved(t, scrape(t, address), accounts)
	for _, a := range accounts {
		assert.Zero(t, a.dropped(), "producer %d: dropped %v", a.PID, a.Dropped)
	}
	t.Logf("rejected: %v", telemetry[received+"rejected"])
	c.Stop(t)
}
