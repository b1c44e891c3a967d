// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package observability

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
)

const dashboardFile = "distribution/dashboards/fpm.json"

// dashboard is what we look at in a dashboard of Grafana.
type dashboard struct {
	ID            *int    `json:"id"`
	UID           string  `json:"uid"`
	Title         string  `json:"title"`
	SchemaVersion int     `json:"schemaVersion"`
	Panels        []panel `json:"panels"`
	Templating    struct {
		List []struct {
			Name       string      `json:"name"`
			Type       string      `json:"type"`
			Definition string      `json:"definition"`
			DataSource *dataSource `json:"datasource"`
		} `json:"list"`
	} `json:"templating"`
	Inputs json.RawMessage `json:"__inputs"`
}

type panel struct {
	ID          int         `json:"id"`
	Type        string      `json:"type"`
	Title       string      `json:"title"`
	Description string      `json:"description"`
	DataSource  *dataSource `json:"datasource"`
	GridPos     struct{ H, W, X, Y int }
	Targets     []struct {
		Expr       string      `json:"expr"`
		RefID      string      `json:"refId"`
		DataSource *dataSource `json:"datasource"`
	} `json:"targets"`
}

type dataSource struct{ Type, UID string }

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(harness.Root(), dashboardFile))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &d))
	require.NotEmpty(t, d.Panels)
	return d
}

// The dashboard can be imported and provisioned as it is: it names no data
// source of ours, asks no question at import, and uses panels that each Grafana
// has.
func TestDashboardIsImportableAsItIs(t *testing.T) {
	d := readDashboard(t)
	assert.Nil(t, d.ID, "an id belongs to one Grafana")
	assert.Empty(t, d.Inputs, "provisioning does not fill __inputs in")
	assert.NotEmpty(t, d.UID)
	assert.NotEmpty(t, d.Title)
	assert.Equal(t, 39, d.SchemaVersion)
	own := &dataSource{Type: "prometheus", UID: "${datasource}"}
	ids := map[int]string{}
	for _, p := range d.Panels {
		assert.Empty(t, ids[p.ID], "%s has the id of another panel", p.Title)
		ids[p.ID] = p.Title
		assert.NotEmpty(t, p.Title)
		if p.Type == "row" {
			continue
		}
		assert.Contains(t, []string{"stat", "timeseries", "heatmap", "state-timeline"}, p.Type, p.Title)
		assert.NotEmpty(t, p.Description, "%s does not say what it shows", p.Title)
		assert.Equal(t, own, p.DataSource, p.Title)
		assert.NotEmpty(t, p.Targets, p.Title)
		refs := map[string]bool{}
		for _, target := range p.Targets {
			assert.Equal(t, own, target.DataSource, p.Title)
			assert.False(t, refs[target.RefID], "%s has two queries %s", p.Title, target.RefID)
			refs[target.RefID] = true
		}
	}
	for i, p := range d.Panels {
		assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for _, q := range d.Panels[:i] {
			overlap := p.GridPos.X < q.GridPos.X+q.GridPos.W && q.GridPos.X < p.GridPos.X+p.GridPos.W &&
				p.GridPos.Y < q.GridPos.Y+q.GridPos.H && q.GridPos.Y < p.GridPos.Y+p.GridPos.H
			assert.False(t, overlap, "%s lies over %s", p.Title, q.Title)
		}
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			assert.Equal(t, own, v.DataSource, v.Name)
		}
	}
}

// An exporter that loses both points and log records has the same series of each,
// but for the name: a query of several names at once breaks just then.
func TestNoQueryMixesNames(t *testing.T) {
	for _, q := range slices.Concat(dashboardQueries(t), alertQueries(t), documentedQueries(t)) {
		assert.NotContains(t, q.text, "__name__", q.where)
	}
}

// Who opens it at three in the morning sees first whether engines are heard and
// whether anything is lost.
func TestDashboardBeginsWithLivenessAndLosses(t *testing.T) {
	var rows []string
	for _, p := range readDashboard(t).Panels {
		if p.Type == "row" {
			rows = append(rows, p.Title)
		}
	}
	assert.Equal(t, []string{
		"Liveness and losses", "Load by rank", "Throughput by rank",
		"Step duration and token latency", "Balance of ranks", "Prompts and cache", "The Collector itself",
	}, rows)
}

// settings are what Grafana puts in for its own variables and for ours.
var settings = map[string]string{
	"$__rate_interval": "30s", "$__range": "2m",
	"$job": ".*", "$instance": ".*", "$rank": ".*", "$collector": ".*",
}

var variable = regexp.MustCompile(`\$\w+`)

func dashboardQueries(t *testing.T) (queries []query) {
	t.Helper()
	d := readDashboard(t)
	defined := map[string]bool{"$__rate_interval": true, "$__range": true}
	for _, v := range d.Templating.List {
		defined["$"+v.Name] = true
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			queries = append(queries, query{"panel " + p.Title, withoutFallback(filled(t, target.Expr, defined))})
		}
	}
	return queries
}

func filled(t *testing.T, text string, defined map[string]bool) string {
	t.Helper()
	return variable.ReplaceAllStringFunc(text, func(name string) string {
		require.True(t, defined[name], "%s is no variable of the dashboard", name)
		require.Contains(t, settings, name)
		return settings[name]
	})
}

// stateQuery is the query of the panel with the states of endpoints.
func stateQuery(t *testing.T) string {
	t.Helper()
	for _, p := range readDashboard(t).Panels {
		if p.Type == "state-timeline" {
			return filled(t, p.Targets[0].Expr, map[string]bool{"$collector": true})
		}
	}
	t.Fatal("no panel with states")
	return ""
}

type labelQuery struct{ label, selector string }

var labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

// variableQueries are the queries that fill the variables of the dashboard.
func variableQueries(t *testing.T) (queries []labelQuery) {
	t.Helper()
	for _, v := range readDashboard(t).Templating.List {
		if v.Type != "query" {
			continue
		}
		match := labelValues.FindStringSubmatch(v.Definition)
		require.NotNil(t, match, v.Definition)
		selector := match[1]
		for name, value := range settings {
			selector = strings.ReplaceAll(selector, name, value)
		}
		queries = append(queries, labelQuery{match[2], selector})
	}
	require.NotEmpty(t, queries)
	return queries
}
