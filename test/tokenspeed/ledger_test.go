// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package tokenspeed

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
)

const received = "otelcol_receiver_metric_event_"

// ofProducers is a metric of the receiver that it has for each producer.
func ofProducers(t *testing.T, p harness.Page, name string) map[int]int {
	t.Helper()
	values := map[int]int{}
	for _, s := range p[received+name] {
		values[pidOf(t, s.Labels["producer"])] += int(s.Value)
	}
	return values
}

// assertLedger holds a Collector at rest, and one that heard the producers from
// beginning to end, to what they say: sent = accepted + rejected for each, none
// lost, and the drops are known on both sides.
func assertLedger(t *testing.T, p harness.Page, accounts []account) {
	t.Helper()
	accepted, dropped, lost := ofProducers(t, p, "producer_accepted"), ofProducers(t, p, "producer_dropped"), ofProducers(t, p, "producer_lost")
	refused := map[string]int{}
	for _, a := range accounts {
		assert.Equal(t, a.Sent, accepted[a.PID]+total(a.Refused), "producer %d: sent, and accepted + rejected", a.PID)
		assert.Equal(t, a.dropped(), dropped[a.PID], "producer %d: what it dropped", a.PID)
		assert.Zero(t, lost[a.PID], "producer %d: lost on the way", a.PID)
		for reason, n := range a.Refused {
			refused[reason] += n
		}
	}
	for reason, n := range refused {
		assert.Equal(t, n, p.Count(received+"rejected", "reason", reason), reason)
	}
	assertDelivered(t, p)
}

// assertDelivered holds the receiver to its own ledger.
func assertDelivered(t *testing.T, p harness.Page) {
	t.Helper()
	assert.Equal(t, p.Count(received+"events", "outcome", "accepted"), p.Count(received+"delivered")+p.Count(received+"dropped"),
		"accepted, and delivered + dropped")
	// These two close a connection before there is a message.
	apart := p.Count(received+"rejected", "reason", "oversize") + p.Count(received+"rejected", "reason", "protocol")
	assert.Equal(t, p.Count(received+"events", "outcome", "rejected"), p.Count(received+"rejected")-apart, "rejected, and its reasons")
}

// settled waits until the Collector has taken and passed on all that the
// producers sent, and they have gone.
func settled(t *testing.T, c *harness.Collector, accounts []account) harness.Page {
	t.Helper()
	return c.Until(t, "the events do not get through", func(p harness.Page) bool {
		accepted := ofProducers(t, p, "producer_accepted")
		for _, a := range accounts {
			if accepted[a.PID]+total(a.Refused) < a.Sent {
				return false
			}
		}
		return p.Count(received+"queue_length") == 0 &&
			p.Count(received+"delivered")+p.Count(received+"dropped") == p.Count(received+"events", "outcome", "accepted")
	})
}

func tcp(port int) string { return "tcp://127.0.0.1:" + strconv.Itoa(port) }
