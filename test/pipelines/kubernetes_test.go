// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

// Pods of the node come and go: each port named fpm, fpm-1, … is subscribed to
// while its pod is there, and its metrics carry the names of the pod.
func TestKubernetesNodeAgent(t *testing.T) {
	t.Parallel()
	const count = 300
	api := startKubernetesAPI(t, "node-1")
	page := harness.Address(t)

	port := ports.Block(t, 4)
	two := harness.Publish(t, fmt.Sprintf("tcp://127.0.0.2:%d", port), 2, count, 300)
	api.add("vllm-0", "127.0.0.2", map[string]int{"fpm": port, "fpm-1": port + 1, "http": port + 3})
	collector := harness.StartCollector(t, harness.CollectorConfig{
		File: "kubernetes-node-agent.yaml",
		Override: fmt.Sprintf(`
extensions: {k8s_observer: {auth_type: kubeConfig}}
exporters: {prometheus: {endpoint: %q}}
`, page),
		Env: []string{"K8S_NODE_NAME=node-1", "KUBECONFIG=" + api.kubeconfig(t)},
	})
	two.WaitForLine(t, "sent")
	collector.Delivered(t, "metrics", 2*count)
	assertPage(t, page, two.Sent(t), "k8s_pod_name", "vllm-0", "k8s_namespace_name", "inference")

	one := harness.Publish(t, fmt.Sprintf("tcp://127.0.0.3:%d", port+2), 1, count, 300)
	api.add("vllm-1", "127.0.0.3", map[string]int{"fpm": port + 2})
	one.WaitForLine(t, "sent")
	collector.Delivered(t, "metrics", 3*count)
	assertPage(t, page, one.Sent(t), "k8s_pod_name", "vllm-1")

	subscribed := func() (endpoints []string) {
		for _, s := range harness.Scrape(t, collector.Telemetry)["otelcol_receiver_fpm_endpoint_state"] {
			endpoints = append(endpoints, s.Labels["endpoint"])
		}
		return endpoints
	}
	require.Len(t, subscribed(), 3)
	api.remove("vllm-0")
	harness.Wait(t, "a pod that is gone is still subscribed to", func() bool { return len(subscribed()) == 1 })
	harness.Wait(t, "gauges of a pod that is gone stay on the page", func() bool {
		page := harness.Scrape(t, page)
		for _, name := range []string{"fpm_scheduled_decode_requests", "fpm_endpoint_up"} {
			for _, s := range page[name] {
				if s.Labels["k8s_pod_name"] == "vllm-0" {
					return false
				}
			}
		}
		return len(page["fpm_endpoint_up"]) == 1
	})
	assert.Empty(t, api.refused, "requests beyond what the service account may do")
	collector.Stop(t)
}
