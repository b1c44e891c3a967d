// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-fpm/otelcol-fpm/receiver/fpmreceiver/internal/metadatatest"
)

// value is a point of internal telemetry with attributes in pairs.
func value(n int64, pairs ...string) metricdata.DataPoint[int64] {
	var attributes []attribute.KeyValue
	for i := 0; i < len(pairs); i += 2 {
		attributes = append(attributes, attribute.String(pairs[i], pairs[i+1]))
	}
	return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attributes...)}
}

func TestInternalTelemetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics, logs := &metricsSink{}, &logsSink{}
		g := newRig(t, testConfig(func(c *Config) { c.QueueSize, c.MaxRanks, c.DPSize = 10, 3, 2 }), metrics, logs)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		send(e, busy("w", 0, 0), busy("w", 0, 0), busy("w", 0, 3), busy("w", 0, 1)) // a duplicate, 2 lost, a restart
		e.Message(envelope(99, busy("w", 1, 0).payload()), time.Now())              // a mismatch
		e.Message(nil, time.Now())
		e.Message(envelope(0, nil), time.Now())
		send(e, busy("a", 0, 0), busy("b", 0, 0), busy("c", 0, 0)) // two ranks too many
		huge := busy("w", 1, 1)
		huge.WallTime, huge.Scheduled.NumDecodeRequests = math.MaxFloat64, 2
		send(e, huge)
		time.Sleep(time.Second)
		logs.tell(refuse(errNow))
		metrics.tell(refuse(errEver))
		for n := range int64(12) {
			send(e, busy("w", 1, 2+n))
			time.Sleep(300 * time.Millisecond)
		}

		is := metricdatatest.IgnoreTimestamp()
		metadatatest.AssertEqualReceiverFpmMessages(t, g.telemetry, []metricdata.DataPoint[int64]{
			value(18, "outcome", "accepted"), value(1, "outcome", "duplicate"), value(4, "outcome", "rejected"),
		}, is)
		metadatatest.AssertEqualReceiverFpmRejected(t, g.telemetry, []metricdata.DataPoint[int64]{
			value(1, "reason", "envelope"), value(1, "reason", "malformed"), value(2, "reason", "rank_limit"),
		}, is)
		metadatatest.AssertEqualReceiverFpmSequenceMismatch(t, g.telemetry, []metricdata.DataPoint[int64]{value(1)}, is)
		metadatatest.AssertEqualReceiverFpmLost(t, g.telemetry, []metricdata.DataPoint[int64]{value(2)}, is)
		metadatatest.AssertEqualReceiverFpmRestarts(t, g.telemetry, []metricdata.DataPoint[int64]{value(1)}, is)
		metadatatest.AssertEqualReceiverFpmOverflow(t, g.telemetry, []metricdata.DataPoint[int64]{value(1)}, is)
		metadatatest.AssertEqualReceiverFpmDelivered(t, g.telemetry, []metricdata.DataPoint[int64]{
			value(6, "signal", "metrics"), value(6, "signal", "logs"),
		}, is)
		metadatatest.AssertEqualReceiverFpmDropped(t, g.telemetry, []metricdata.DataPoint[int64]{
			value(12, "signal", "metrics", "reason", "refused"), value(2, "signal", "logs", "reason", "queue_full"),
		}, is)
		metadatatest.AssertEqualReceiverFpmQueueLength(t, g.telemetry, []metricdata.DataPoint[int64]{
			value(0, "signal", "metrics"), value(10, "signal", "logs"),
		}, is)
		metadatatest.AssertEqualReceiverFpmConnects(t, g.telemetry, []metricdata.DataPoint[int64]{
			value(1, "endpoint", "tcp://127.0.0.1:1"), value(0, "endpoint", "tcp://127.0.0.1:2"),
		}, is)
		metadatatest.AssertEqualReceiverFpmEndpointState(t, g.telemetry, []metricdata.DataPoint[int64]{
			value(1, "endpoint", "tcp://127.0.0.1:1", "state", "live"), value(1, "endpoint", "tcp://127.0.0.1:2", "state", "connecting"),
		}, is)

		g.shutdown()
		c := g.settled(23)
		assert.EqualValues(t, 10, c.dropped["logs"]["shutdown"], "to be read after Shutdown, too")
	})
}

// What every receiver has is visible before anything is counted, so that a rate
// of it begins at 0.
func TestInternalTelemetryBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, testConfig(), nil, &logsSink{})
		g.startWithoutIntake()
		is := metricdatatest.IgnoreTimestamp()
		metadatatest.AssertEqualReceiverFpmMessages(t, g.telemetry, []metricdata.DataPoint[int64]{
			value(0, "outcome", "accepted"), value(0, "outcome", "duplicate"), value(0, "outcome", "rejected"),
		}, is)
		metadatatest.AssertEqualReceiverFpmDelivered(t, g.telemetry, []metricdata.DataPoint[int64]{value(0, "signal", "logs")}, is)
		metadatatest.AssertEqualReceiverFpmQueueLength(t, g.telemetry, []metricdata.DataPoint[int64]{value(0, "signal", "logs")}, is)
		metadatatest.AssertEqualReceiverFpmLost(t, g.telemetry, []metricdata.DataPoint[int64]{value(0)}, is)
		g.shutdown()
		g.settled(0)
	})
}

// Several receivers of one process add up in one series, which their Shutdown
// leaves.
func TestInternalTelemetryOfSeveralReceivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, testConfig(), nil, &logsSink{})
		other := newRig(t, testConfig(func(c *Config) { c.Endpoint = "127.0.0.1:2" }), nil, &logsSink{})
		other.receiver.settings.TelemetrySettings = g.receiver.settings.TelemetrySettings
		g.startWithoutIntake()
		other.startWithoutIntake()
		for _, rig := range []*rig{g, other} {
			rig.endpoint(0).Connected()
			send(rig.endpoint(0), busy("w", 0, 0))
		}
		is := metricdatatest.IgnoreTimestamp()
		metadatatest.AssertEqualReceiverFpmMessages(t, g.telemetry, []metricdata.DataPoint[int64]{
			value(2, "outcome", "accepted"), value(0, "outcome", "duplicate"), value(0, "outcome", "rejected"),
		}, is)
		metadatatest.AssertEqualReceiverFpmQueueLength(t, g.telemetry, []metricdata.DataPoint[int64]{value(2, "signal", "logs")}, is)
		metadatatest.AssertEqualReceiverFpmEndpointState(t, g.telemetry, []metricdata.DataPoint[int64]{
			value(1, "endpoint", "tcp://127.0.0.1:1", "state", "live"), value(1, "endpoint", "tcp://127.0.0.1:2", "state", "live"),
		}, is)
		other.shutdown()
		metadatatest.AssertEqualReceiverFpmEndpointState(t, g.telemetry, []metricdata.DataPoint[int64]{
			value(1, "endpoint", "tcp://127.0.0.1:1", "state", "live"),
		}, is)
		g.shutdown()
		metadatatest.AssertEqualReceiverFpmDelivered(t, g.telemetry, []metricdata.DataPoint[int64]{value(2, "signal", "logs")}, is)
	})
}

// 1,024 endpoints stay below the number of series at which the SDK lumps
// together what comes after.
func TestInternalTelemetryOfManyEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, testConfig(func(c *Config) { c.DPSize = 1024 }), nil, &logsSink{})
		g.startWithoutIntake()
		for _, name := range []string{"otelcol_receiver_fpm_endpoint_state", "otelcol_receiver_fpm_connects"} {
			require.Len(t, g.counter(name, "endpoint"), 1024)
		}
		g.shutdown()
		g.settled(0)
	})
}

// TestAcceptedIsCountedFirst: a look at the telemetry sees all accepted messages, whether a consumer has them, holds them up,
// or lost them.
func TestAcceptedIsCountedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := &logsSink{}
		g := newRig(t, testConfig(func(c *Config) { c.QueueSize = 10 }), nil, logs)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		logs.tell(func(ctx context.Context, _ int) error {
			<-ctx.Done()
			return ctx.Err()
		})
		sendRange(e, 0, 4)
		time.Sleep(time.Second) // with the consumer
		assert.EqualValues(t, 5, g.counts().accepted)
		sendRange(e, 5, 34)
		c := g.counts()
		assert.EqualValues(t, 35, c.accepted)
		assert.EqualValues(t, 20, c.dropped["logs"][droppedQueueFull])
		sendRange(e, 35, 35)
		g.shutdown()
		g.settled(36)
	})
}

// Also where another goroutine is about to count: a message counts as delivered when that is done.
func TestAcceptedIsCountedFirstByAll(t *testing.T) {
	g := newRig(t, testConfig(), &metricsSink{}, nil)
	require.NoError(t, g.receiver.startTelemetry())
	ledger := &g.receiver.ledger
	ledger.counting.Lock()
	delivered := make(chan struct{})
	go func() {
		ledger.delivered(signalMetrics, 1)
		close(delivered)
	}()
	select {
	case <-delivered:
		t.Error("counted as delivered")
	case <-time.After(20 * time.Millisecond):
	}
	ledger.counting.Unlock()
	<-delivered
	ledger.counters.Shutdown()
}
