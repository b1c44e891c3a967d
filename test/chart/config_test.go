// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// configuration is the Collector's, as the ConfigMap has it.
func configuration(t *testing.T, o objects) map[string]any {
	t.Helper()
	var config map[string]any
	require.NoError(t, yaml.UnmarshalStrict([]byte(o.config.Data["config.yaml"]), &config))
	return config
}

// at follows keys into a configuration.
func at(t *testing.T, config map[string]any, keys ...string) any {
	t.Helper()
	var value any = config
	for _, key := range keys {
		m, ok := value.(map[string]any)
		require.True(t, ok, "%v: %s is in no map", keys, key)
		value = m[key]
	}
	return value
}

func toText(v any) string { return fmt.Sprint(v) }

// The values that the downward API and the Secrets of a test give.
const (
	podName  = "demo-otelcol-fpm-0"
	nodeName = "node-1"
)

// environment is what the containers of a pod see, but for its address.
func environment(pod corev1.PodSpec) map[string]string {
	env := map[string]string{}
	for _, e := range pod.Containers[0].Env {
		switch {
		case e.ValueFrom == nil:
			env[e.Name] = e.Value
		case e.ValueFrom.FieldRef != nil:
			env[e.Name] = map[string]string{"metadata.name": podName, "spec.nodeName": nodeName}[e.ValueFrom.FieldRef.FieldPath]
		default:
			env[e.Name] = "secret"
		}
	}
	return env
}

// The page of an engine that idles for an hour still shows its counters.
func TestMetricExpirationOutlivesAnIdleHour(t *testing.T) {
	each(t, func(t *testing.T, o objects) {
		exporters := at(t, configuration(t, o), "exporters").(map[string]any)
		page, ok := exporters["prometheus"].(map[string]any)
		if !ok {
			t.Skip("no page")
		}
		expiration, err := time.ParseDuration(toText(page["metric_expiration"]))
		require.NoError(t, err)
		assert.Greater(t, expiration, time.Hour)
	})
}

// A kubelet asks the pod's address; a page on localhost would never answer it.
func TestHealthPageListensOnThePodsAddress(t *testing.T) {
	each(t, func(t *testing.T, o objects) {
		endpoint := toText(at(t, configuration(t, o), "extensions", "health_check", "http", "endpoint"))
		assert.Contains(t, []string{"[${env:MY_POD_IP}]:13133", "${env:MY_POD_IP}:13133"}, endpoint)
		assert.Contains(t, o.pod.Spec.Containers[0].Args, "--feature-gates=+extension.healthcheck.useComponentStatus")
	})
}

// No two pods write the same files, whatever volume they share.
func TestTraceFilesArePerPod(t *testing.T) {
	for name, want := range map[string]string{
		"daemonset-traces":    "/var/lib/otelcol-fpm/traces/${env:K8S_NODE_NAME}/dynamo-fpm",
		"engines":             "/var/lib/otelcol-fpm/traces/${env:MY_POD_NAME}/dynamo-fpm",
		"statefulset-gateway": "/var/lib/otelcol-fpm/traces/${env:MY_POD_NAME}/dynamo-fpm",
		"shared-claim":        "/var/lib/otelcol-fpm/traces/${env:MY_POD_NAME}/dynamo-fpm",
	} {
		assert.Equal(t, want, at(t, configuration(t, render(t, name)), "exporters", "fpm_trace", "path"), name)
	}
	assert.Equal(t, "/var/lib/otelcol-fpm/queue/${env:MY_POD_NAME}",
		at(t, configuration(t, render(t, "statefulset-gateway")), "extensions", "file_storage", "directory"))
	// Two releases of one node have a folder each.
	o := render(t, "daemonset-traces")
	for _, volume := range o.pod.Spec.Volumes {
		if volume.HostPath != nil {
			assert.Equal(t, "/var/lib/otelcol-fpm/llm/demo-otelcol-fpm", volume.HostPath.Path)
		}
	}
}

// gauge_dedup begins every metrics pipeline and is in none that ends in fpm_trace.
func TestPipelinesHaveTheirProcessors(t *testing.T) {
	each(t, func(t *testing.T, o objects) {
		config := configuration(t, o)
		if _, custom := at(t, config, "processors").(map[string]any)["memory_limiter"]; !custom {
			t.Skip("a configuration of its own")
		}
		pipelines := at(t, config, "service", "pipelines").(map[string]any)
		if metrics, ok := pipelines["metrics"].(map[string]any); ok {
			assert.Equal(t, []any{"memory_limiter", "gauge_dedup"}, metrics["processors"].([]any)[:2])
			assert.NotContains(t, metrics["exporters"], "fpm_trace")
		}
		if logs, ok := pipelines["logs"].(map[string]any); ok {
			assert.NotContains(t, logs["processors"], "gauge_dedup")
		}
	})
}

// config is laid over what the chart makes: false and 0 win, lists are replaced,
// null takes away what is there.
func TestConfigIsLaidOver(t *testing.T) {
	values := `
mode: deployment
otlp: {receiver: {enabled: true}}
config:
  receivers:
    otlp: {protocols: {http: null}}
    nop:
  exporters:
    prometheus: {metric_expiration: 3h, send_timestamps: false, resource_constant_labels: {included: []}}
  processors:
    memory_limiter: {check_interval: 0s, limit_mib: 268435456}
  service: {pipelines: {metrics: {receivers: [nop]}}}
`
	text, err := template(t, "--values", file(t, values))
	require.NoError(t, err)
	config := configuration(t, decode(t, text))
	assert.Equal(t, map[string]any{"grpc": map[string]any{"endpoint": "[${env:MY_POD_IP}]:4317"}}, at(t, config, "receivers", "otlp", "protocols"))
	assert.Contains(t, at(t, config, "receivers"), "nop")
	assert.Nil(t, at(t, config, "receivers", "nop"))
	assert.Equal(t, "3h", at(t, config, "exporters", "prometheus", "metric_expiration"))
	assert.Equal(t, "[${env:MY_POD_IP}]:9464", at(t, config, "exporters", "prometheus", "endpoint"))
	assert.Equal(t, false, at(t, config, "exporters", "prometheus", "send_timestamps"))
	assert.Empty(t, at(t, config, "exporters", "prometheus", "resource_constant_labels", "included"))
	assert.Equal(t, "0s", at(t, config, "processors", "memory_limiter", "check_interval"))
	assert.Equal(t, []any{"nop"}, at(t, config, "service", "pipelines", "metrics", "receivers"))
	assert.Equal(t, []any{"prometheus"}, at(t, config, "service", "pipelines", "metrics", "exporters"))
	assert.Contains(t, text, "limit_mib: 268435456", "whole numbers stay whole")
}

// Pods of fixed engines are replaced one after the other, never two at once.
func TestTwoPodsNeverHearOneEngine(t *testing.T) {
	engines := render(t, "engines")
	assert.Equal(t, int32(1), *engines.replicas)
	assert.EqualValues(t, "Recreate", engines.deploy.Spec.Strategy.Type)
	assert.EqualValues(t, "RollingUpdate", render(t, "gateway").deploy.Spec.Strategy.Type)
	daemonSet := render(t, "daemonset").daemonSet
	assert.EqualValues(t, "RollingUpdate", daemonSet.Spec.UpdateStrategy.Type)
	assert.Nil(t, daemonSet.Spec.UpdateStrategy.RollingUpdate, "the default surges by none")
}
