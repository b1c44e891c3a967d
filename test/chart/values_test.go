// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/exporter/fpmtraceexporter"
	"github.com/otelcol-fpm/otelcol-fpm/receiver/fpmreceiver"
	"github.com/otelcol-fpm/otelcol-fpm/receiver/metriceventreceiver"
)

// schema is the part of JSON Schema that values.schema.json uses.
type schema struct {
	Type                 any
	Properties           map[string]json.RawMessage
	AdditionalProperties any
	Description          string
	Required             []string
	Items                *schema
}

func (s schema) property(t *testing.T, name string) schema {
	t.Helper()
	raw, ok := s.Properties[name]
	require.True(t, ok, "values.schema.json has no %s", name)
	var child schema
	if string(raw) != "false" {
		require.NoError(t, json.Unmarshal(raw, &child))
	}
	return child
}

func valuesSchema(t *testing.T) schema {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "values.schema.json"))
	require.NoError(t, err)
	var s schema
	require.NoError(t, json.Unmarshal(text, &s))
	return s
}

// open are the objects that are not ours to describe: the Collector or the API
// server checks them, and those of names that users choose.
var open = []string{
	"global", "config", "alternateConfig", "otlp.exporter.config", "prometheus.config",
	"updateStrategy", "podSecurityContext", "securityContext", "affinity",
	"tolerations[]", "topologySpreadConstraints[]", "extraEnv[]", "extraEnvFrom[]", "extraVolumes[]", "extraVolumeMounts[]",
	"networkPolicy.metricsFrom[]", "networkPolicy.sendersFrom[]", "networkPolicy.egress[]",
	"metricEvent.config.resource_attributes", "discovery.config.resource_attributes", "engines.config.resource_attributes", "engines.endpoints[].resource_attributes",
	"discovery.resourceAttributes", "podAnnotations", "podLabels", "nodeSelector",
	"serviceAccount.annotations", "service.annotations", "serviceMonitor.labels",
}

func TestSchemaIsClosed(t *testing.T) {
	var found []string
	var walk func(path string, s schema)
	walk = func(path string, s schema) {
		isObject := s.Type == "object" || slices.Contains(anySlice(s.Type), "object")
		if isObject && s.AdditionalProperties != false {
			found = append(found, path)
		}
		for name := range s.Properties {
			walk(strings.TrimPrefix(path+"."+name, "."), s.property(t, name))
		}
		if s.Items != nil {
			walk(path+"[]", *s.Items)
		}
	}
	walk("", valuesSchema(t))
	assert.ElementsMatch(t, open, found)
}

func anySlice(v any) []any {
	s, _ := v.([]any)
	return s
}

// values.yaml, the schema and the README name the same keys.
func TestValuesSchemaAndREADMENameTheSameKeys(t *testing.T) {
	var values map[string]any
	read(t, filepath.Join(folder, "values.yaml"), &values)
	readme, err := os.ReadFile(filepath.Join(folder, "README.md"))
	require.NoError(t, err)
	var leaves []string
	var walk func(path string, value any, s schema)
	walk = func(path string, value any, s schema) {
		m, isMap := value.(map[string]any)
		if !isMap || len(m) == 0 || slices.Contains(open, path) {
			leaves = append(leaves, path)
			return
		}
		for name, child := range m {
			walk(strings.TrimPrefix(path+"."+name, "."), child, s.property(t, name))
		}
		if strings.HasSuffix(path, ".config") || strings.HasPrefix(path, "resources.") {
			return // the README of the component, or Kubernetes, has the others
		}
		for name := range s.Properties {
			if name != "global" {
				assert.Contains(t, m, name, "values.yaml does not have %s.%s", path, name)
			}
		}
	}
	walk("", values, valuesSchema(t))
	for _, leaf := range leaves {
		assert.Contains(t, string(readme), "`"+leaf+"`", "README.md does not name it")
	}
}

// Keys below a config are those of the component, of this version.
func TestSchemaHasTheKeysOfTheComponents(t *testing.T) {
	s := valuesSchema(t)
	receiver := reflect.TypeFor[fpmreceiver.Config]()
	endpoint := reflect.TypeFor[fpmreceiver.EndpointConfig]()
	exporter := reflect.TypeFor[fpmtraceexporter.Config]()
	for path, test := range map[string]struct {
		of      reflect.Type
		without []string
	}{
		"discovery.config":    {receiver, []string{"endpoints"}},
		"engines.config":      {receiver, []string{"endpoint", "endpoints", "dp_size", "dp_start_rank"}},
		"engines.endpoints[]": {endpoint, nil},
		"traces.config":       {exporter, []string{"enabled", "path"}},
		"metricEvent.config":  {reflect.TypeFor[metriceventreceiver.Config](), []string{"endpoint"}},
	} {
		t.Run(path, func(t *testing.T) {
			at := s
			for _, name := range strings.Split(path, ".") {
				at = at.property(t, strings.TrimSuffix(name, "[]"))
				if strings.HasSuffix(name, "[]") {
					at = *at.Items
				}
			}
			want := keys(test.of)
			for _, name := range test.without {
				require.Contains(t, want, name)
				delete(want, name)
			}
			sameKeys(t, path, want, at)
		})
	}
}

// tree is the keys of a configuration; nil below a key that holds no struct.
type tree map[string]tree

func keys(of reflect.Type) tree {
	if get, ok := of.MethodByName("Get"); ok && strings.HasPrefix(of.Name(), "Optional[") {
		return keys(get.Type.Out(0).Elem())
	}
	if get, ok := reflect.PointerTo(of).MethodByName("Get"); ok && strings.HasPrefix(of.Name(), "Optional[") {
		return keys(get.Type.Out(0).Elem())
	}
	if of.Kind() != reflect.Struct {
		return nil
	}
	found := tree{}
	for field := range of.Fields() {
		if name := field.Tag.Get("mapstructure"); name != "" {
			found[name] = keys(field.Type)
		}
	}
	return found
}

func sameKeys(t *testing.T, path string, want tree, s schema) {
	t.Helper()
	assert.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(s.Properties)), path)
	for name, child := range want {
		if child != nil {
			sameKeys(t, path+"."+name, child, s.property(t, name))
		}
	}
}

func TestUnknownAndImpossibleValuesAreRefused(t *testing.T) {
	for values, want := range map[string]string{
		"modus: daemonset":                         "modus",
		"mode: sidecar":                            "mode",
		"image: {tag: 'a b'}":                      "tag",
		"image: {digest: sha256:abc}":              "digest",
		"traces: {config: {path: /tmp}}":           "path",
		"traces: {config: {max_total_bytes: 0}}":   "max_total_bytes",
		"traces: {config: {mode: most}}":           "mode",
		"discovery: {config: {endpoint: a}}":       "endpoint",
		"discovery: {config: {endpoints: []}}":     "endpoints",
		"discovery: {rule: 'name == \"fpm\"'}":     "rule",
		"discovery: {config: {stale_after: 5}}":    "stale_after",
		"engines: {endpoints: [{dp_size: 2}]}":     "endpoint",
		"resources: {limits: {memory: 1.5Gi}}":     "memory",
		"resources: {limits: {memory: null}}":      "memory",
		"terminationGracePeriodSeconds: 1":         "terminationGracePeriodSeconds",
		"prometheus: {config: {endpoint: a:1}}":    "endpoint",
		"prometheus: {port: 9465}":                 "port",
		"otlp: {exporter: {signals: [traces]}}":    "signals",
		"dataVolume: {type: nfs}":                  "type",
		"extraPorts: [{name: health, port: 1}]":    "extraPorts",
		"podDisruptionBudget: {maxUnavailable: 0}": "maxUnavailable",
	} {
		t.Run(values, func(t *testing.T) {
			assert.Contains(t, refused(t, values), want)
		})
	}
}
