// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var operations = []operation{operationSet, operationInc, operationObserve}

// catalogued has an event of every metric of the catalogue, with the operations
// that are wanted for it.
func catalogued(wanted func(entry *catalogEntry, o operation) bool) (events []any) {
	for i := range tokenSpeed {
		for _, o := range operations {
			if wanted(&tokenSpeed[i], o) {
				events = append(events, wireEvent(pairs{
					{"timestamp_ns", time.Now().UnixNano()}, {"metric", tokenSpeed[i].metric}, {"operation", o.String()},
				}))
			}
		}
	}
	return events
}

// A producer that uses the names of the catalogue with other operations hides
// nothing of the others from a Prometheus page, whether they speak before it or
// after it.
func TestKindsOfTheCatalogueHold(t *testing.T) {
	p := startPage(t)
	g := started(t, p)
	right := func(entry *catalogEntry, o operation) bool { return o == entry.operation }
	wrong := func(entry *catalogEntry, o operation) bool { return o != entry.operation }
	metrics := int64(len(tokenSpeed))

	early, late, hostile := g.push(), g.push(), g.push()
	early.says(1, 0, catalogued(right)...)
	g.eventually("delivered", "", "", metrics)
	own := wireEvent(pairs{{"metric", "myengine:work"}, {"operation", "inc"}})
	hostile.says(2, 0, append(catalogued(wrong), own)...)
	g.eventually("rejected", "reason", "kind", 2*metrics)
	g.eventually("delivered", "", "", metrics+1)
	late.says(3, 0, catalogued(right)...)
	early.says(1, metrics, catalogued(right)...)
	g.eventually("delivered", "", "", 3*metrics+1)

	families := p.families()
	types := map[operation]dto.MetricType{
		operationSet: dto.MetricType_GAUGE, operationInc: dto.MetricType_COUNTER, operationObserve: dto.MetricType_HISTOGRAM,
	}
	for _, entry := range tokenSpeed {
		require.Contains(t, families, entry.metric)
		family := families[entry.metric]
		assert.Equal(t, types[entry.operation], family.GetType(), entry.metric)
		assert.Len(t, family.GetMetric(), 2, "%s of the two good producers", entry.metric)
	}
	assert.Contains(t, families, "myengine:work_total", "what else the hostile one sends counts")
	c := g.ended(5*metrics + 1)
	assert.Equal(t, map[string]int64{"kind": 2 * metrics}, c.rejectedBy)
	lines := g.said("Events rejected")
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0].ContextMap()["error"], "as the catalogue has this metric")
}
