// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// FuzzMessage reads any second frame, and makes metrics of what is accepted.
func FuzzMessage(f *testing.F) {
	for _, message := range []any{
		wireMessage(1, 0, 0),
		wireMessage(1, 0, 3, wireEvent(nil), wireEvent(pairs{{"operation", "inc"}, {"metric", "c"}, {"value", 0}})),
		wireMessage(2, 7, 0, wireEvent(pairs{{"metric", itl}, {"operation", "observe"}, {"value", 0.01}, {"weight", 3}})),
		wireMessage(3, 0, 0, wireEvent(pairs{{"operation", "observe"}, {"value", -1e300}, {"weight", 2.0}}), wireEvent(pairs{{"labels", pairs{{"b", nil}, {"a", "1"}, {"c", ""}}}})),
		wireMessage(4, 0, 0, wireEvent(pairs{{"timestamp_ns", int64(math.MaxInt64)}}), wireEvent(pairs{{"timestamp_ns", 1}}), nil, []any{1, 2}),
		wireMessage(5, 0, 0).set(keyResource, pairs{{"a", "b"}, {"c", 1}, {"d", 0.5}, {"e", true}}).set("later", []any{raw{0xd4, 1, 2}, pairs{{"x", nil}}}),
	} {
		f.Add(encode(message))
	}
	// It remembers: what it answers must not depend on what it read before.
	var used decoder
	f.Fuzz(func(t *testing.T, payload []byte) {
		before := bytes.Clone(payload)
		frames := [][]byte{[]byte(magic), payload}
		var fresh decoder
		m, rejected := fresh.open(frames)
		again, rejectedAgain := used.open(frames)
		require.Equal(t, rejected, rejectedAgain)
		if rejected != nil {
			assertRejection(t, rejected)
			return
		}
		require.Equal(t, m, again)
		require.LessOrEqual(t, m.events, len(payload))
		ps := producersOf(func(c *Config) { c.MaxSeries = 100 })
		p := ps.get(&m, testClock)
		b := batch{}
		accepts := 0
		for range m.events {
			e, rejected := fresh.next()
			eAgain, rejectedAgain := used.next()
			require.Equal(t, rejected == nil, rejectedAgain == nil)
			if rejected != nil {
				assertRejection(t, rejected)
				continue
			}
			require.Equal(t, e, eAgain)
			assertEvent(t, &e)
			s, rejected := p.admit(&e, testClock)
			if rejected != nil {
				assertRejection(t, rejected)
				continue
			}
			accepts++
			b.add(&accepted{s, e.timestamp, e.value, e.weight})
		}
		metrics := b.metrics(testNow)
		require.Equal(t, accepts > 0, metrics.DataPointCount() > 0)
		read := newReading(t)
		read.label = func(attributes pcommon.Map) string { return fmt.Sprintf("%q", attributes.AsRaw()) }
		read.take(metrics)
		_, err := new(pmetric.ProtoMarshaler).MarshalMetrics(metrics)
		require.NoError(t, err)
		require.Equal(t, before, payload)
	})
}

func assertRejection(t *testing.T, rejected *rejection) {
	assert.NotEmpty(t, rejected.field)
	assert.NotEmpty(t, show(rejected.got))
	assert.NotEmpty(t, rejected.want)
	assert.NotEmpty(t, rejected.reason.String())
	assert.Less(t, len(rejected.Error()), 600)
	assert.NotContains(t, rejected.Error(), "\n")
}

// assertEvent holds what is promised of an accepted event.
func assertEvent(t *testing.T, e *event) {
	assert.Positive(t, e.timestamp)
	assert.True(t, len(e.metric) > 0 && len(e.metric) <= maxMetricBytes)
	assert.True(t, finite(e.value.float64()*float64(e.weight)))
	assert.True(t, e.weight == 1 || e.operation == operationObserve && e.weight <= maxWeight && e.weight > 0)
	assert.True(t, e.operation != operationInc || e.value.float64() >= 0)
	assert.LessOrEqual(t, len(e.labels), maxLabels)
	assert.True(t, slices.IsSortedFunc(e.labels, func(a, b label) int { return bytes.Compare(a.name, b.name) }))
	for i, l := range e.labels {
		assert.NotEmpty(t, l.name)
		assert.NotEmpty(t, l.value)
		assert.True(t, i == 0 || !bytes.Equal(l.name, e.labels[i-1].name))
	}
}
