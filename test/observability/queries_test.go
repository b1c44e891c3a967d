// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observability

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
)

// query is a query and where it stands.
type query struct{ where, text string }

// Every query of the dashboard, of the alerts and of the documentation gives
// data while engines work, restart, fall silent and lose messages.
func TestEveryQueryGivesData(t *testing.T) {
	prometheus := newScene(t)
	open := slices.Concat(dashboardQueries(t), alertQueries(t), documentedQueries(t))
	require.Greater(t, len(open), 60)
	states := map[float64]bool{}
	for end := time.Now().Add(75 * time.Second); ; time.Sleep(500 * time.Millisecond) {
		for _, r := range prometheus.Query(t, stateQuery(t)) {
			states[r.Samples[0].Value] = true
		}
		open = unanswered(t, prometheus.Prometheus, open)
		if len(open) == 0 && len(states) == 4 || time.Now().After(end) {
			break
		}
	}
	for _, q := range open {
		t.Errorf("no data for a query of %s:\n%s", q.where, q.text)
	}
	assert.Len(t, states, 4, "states of endpoints in the dashboard")
	for _, name := range variableQueries(t) {
		assert.NotEmpty(t, prometheus.LabelValues(t, name.label, name.selector), "a variable of the dashboard has no values: %v", name)
	}
	known := prometheus.LabelValues(t, "__name__", `{job=~".+"}`)
	for name, page := range documentedNames(t) {
		assert.True(t, slices.ContainsFunc(known, func(k string) bool {
			return k == name || strings.HasPrefix(k, name+"_")
		}), "%s names %s, which nobody shows", page, name)
	}
	assert.NotEmpty(t, prometheus.Query(t, `ALERTS{alertname="FPMMessagesLost",alertstate="firing"}`), "the server has loaded the alerts")
}

// unanswered are the queries that give no data now.
func unanswered(t *testing.T, prometheus *harness.Prometheus, queries []query) (open []query) {
	t.Helper()
	for _, q := range queries {
		if !hasData(prometheus.Query(t, q.text)) {
			open = append(open, q)
		}
	}
	return open
}

func hasData(results []harness.Result) bool {
	for _, r := range results {
		for _, s := range r.Samples {
			if !math.IsNaN(s.Value) && !math.IsInf(s.Value, 0) {
				return true
			}
		}
	}
	return false
}

// withoutFallback is a query without the zero that a panel shows before a first
// loss: the test wants data.
func withoutFallback(text string) string { return strings.TrimSuffix(text, " or vector(0)") }
