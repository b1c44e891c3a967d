// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var updateTable = flag.Bool("update-table", false, "rewrite testdata/metrics.md")

func TestMetricsTable(t *testing.T) {
	const golden = "testdata/metrics.md"
	got := MetricsTable()
	if *updateTable {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// The table is whole: the gauges come first, in wire order, each with the field
// that its Count or Value gives access to.
func TestMetricsTableFields(t *testing.T) {
	require.Len(t, Metrics, slotCount)
	record := validRecord()
	var fields []string
	for i := range Metrics {
		metric := &Metrics[i]
		require.Equal(t, i < Gauges, metric.IsGauge(), metric.Name)
		require.NotEmpty(t, metric.Description)
		require.NotEmpty(t, metric.Unit)
		count, value := metric.Count(&record), metric.Value(&record)
		switch metric.Instrument {
		case GaugeInt:
			require.NotNil(t, count)
			require.Nil(t, value)
			assert.Equal(t, countOf(&record, metric.Field), *count, metric.Name)
		case GaugeDouble:
			require.Nil(t, count)
			require.NotNil(t, value)
			assert.Equal(t, measureOf(&record, metric.Field), *value, metric.Name)
		default:
			require.Nil(t, count)
			require.Nil(t, value)
			require.Empty(t, metric.Field)
			continue
		}
		fields = append(fields, metric.Field)
	}
	var want []string
	for _, group := range groupFields {
		for _, pair := range validMap().get(group).(wireMap) {
			want = append(want, group+"."+pair.key.(string))
		}
	}
	assert.Equal(t, want, fields)

	assert.Equal(t, MetricMessages, Metrics[slotMessages].Name)
	assert.Equal(t, MetricMessagesLost, Metrics[slotMessagesLost].Name)
	assert.Equal(t, MetricStepDuration, Metrics[slotStepDuration].Name)
	assert.Equal(t, MetricDecodeTokenLatency, Metrics[slotDecodeTokenLatency].Name)
	assert.Equal(t, MetricPrefillTokens, Metrics[slotPrefillTokens].Name)
	assert.Equal(t, MetricDecodeTokens, Metrics[slotDecodeTokens].Name)

	// No cell may break the table.
	for line := range strings.Lines(MetricsTable()) {
		assert.Equal(t, 7, strings.Count(line, "|"), line)
	}
}
