// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Values that contradict each other: the error names the key and what is allowed.
func TestContradictionsAreRefused(t *testing.T) {
	const engine = "mode: deployment\nengines: {endpoints: [{endpoint: 'e:20380'}]}\n"
	const gateway = "mode: deployment\notlp: {receiver: {enabled: true}}\n"
	const stateful = "mode: statefulset\notlp: {receiver: {enabled: true}}\ntraces: {enabled: true}\n"
	for name, test := range map[string]struct{ values, want string }{
		"engines on every node": {
			"engines: {endpoints: [{endpoint: 'e:20380'}]}",
			"engines.endpoints: not allowed in mode daemonset",
		},
		"pods without a port": {
			"discovery: {rule: 'type == \"pod\" && labels[\"a\"] == \"b\"'}",
			"discovery.config.endpoint: missing; a rule that finds pods says nothing of their port",
		},
		"nothing comes in": {"mode: deployment", "engines.endpoints: nothing comes in"},
		"two replicas count twice": {
			engine + "replicaCount: 2",
			"replicaCount: 2 is not allowed with engines.endpoints, must be 1",
		},
		"no passes to write": {
			"mode: deployment\nmetricEvent: {enabled: true}\ntraces: {enabled: true}",
			"traces.enabled: nothing to write",
		},
		"nothing goes out":     {"prometheus: {enabled: false}", "prometheus.enabled: nothing goes out"},
		"no gateway":           {"otlp: {exporter: {enabled: true}}", "otlp.exporter.config.endpoint: missing"},
		"two configurations":   {gateway + "config: {a: 1}\nalternateConfig: {service: {extensions: [health_check]}}", "config: not allowed beside alternateConfig"},
		"no health page":       {gateway + "alternateConfig: {service: {}}", "alternateConfig.service.extensions: health_check is missing"},
		"no account":           {"serviceAccount: {create: false}", "serviceAccount.name: missing"},
		"two pods on a node":   {"updateStrategy: {rollingUpdate: {maxSurge: 1}}", "updateStrategy.rollingUpdate.maxSurge: 1 is not allowed"},
		"budget of a node":     {"podDisruptionBudget: {enabled: true}", "podDisruptionBudget.enabled: not allowed in mode daemonset"},
		"both budgets":         {gateway + "podDisruptionBudget: {enabled: true, minAvailable: 1}", "exactly one of minAvailable and maxUnavailable"},
		"neither budget":       {gateway + "podDisruptionBudget: {enabled: true, maxUnavailable: null}", "exactly one of minAvailable and maxUnavailable"},
		"no node drains":       {gateway + "podDisruptionBudget: {enabled: true, maxUnavailable: null, minAvailable: 1}", "minAvailable: 1 is not allowed with replicaCount 1, must be less"},
		"too little memory":    {"resources: {limits: {memory: 255Mi}}", "resources.limits.memory: 255Mi is not allowed, must be at least 256Mi"},
		"host path that moves": {gateway + "traces: {enabled: true}\ndataVolume: {type: hostPath}", "dataVolume.type: hostPath is not allowed in mode deployment"},
		"no claim":             {gateway + "traces: {enabled: true}\ndataVolume: {type: persistentVolumeClaim}", "existingClaim: missing"},
		"a claim too many":     {stateful + "dataVolume: {persistentVolumeClaim: {existingClaim: c}}", "existingClaim: not allowed in mode statefulset"},
		"emptyDir too small": {
			"traces: {enabled: true, config: {max_total_bytes: 2000000000}}",
			"dataVolume: 2Gi is too small for 2000000000 bytes",
		},
		"claim too small": {
			stateful + "dataVolume: {persistentVolumeClaim: {size: 1Gi}}",
			"dataVolume: 1Gi is too small for 1073741824 bytes",
		},
		"queue and traces": {
			"traces: {enabled: true}\notlp: {exporter: {enabled: true, config: {endpoint: 'g:4317'}, diskQueue: {enabled: true, bytes: 1073741824}}}",
			"dataVolume: 2Gi is too small for 3221225472 bytes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Contains(t, refused(t, test.values), test.want)
		})
	}
}

// All of them at once, not one a try.
func TestAllContradictionsAreReportedAtOnce(t *testing.T) {
	message := refused(t, "mode: deployment\nprometheus: {enabled: false}\nresources: {limits: {memory: 1Mi}}\n")
	assert.Contains(t, message, "engines.endpoints: nothing comes in")
	assert.Contains(t, message, "prometheus.enabled: nothing goes out")
	assert.Contains(t, message, "resources.limits.memory: 1Mi is not allowed")
}

// A check must not refuse what is right: the limits themselves pass.
func TestLimitsThemselvesAreTaken(t *testing.T) {
	for _, values := range []string{
		"resources: {limits: {memory: 256Mi}}",
		"traces: {enabled: true, config: {max_total_bytes: 1932735283}}", // 90 % of 2Gi
		"mode: deployment\nreplicaCount: 2\notlp: {receiver: {enabled: true}}\npodDisruptionBudget: {enabled: true, maxUnavailable: null, minAvailable: 1}",
		"podDisruptionBudget: {enabled: false, minAvailable: 5}",
		"dataVolume: {type: persistentVolumeClaim}", // not mounted
		"mode: deployment\nconfig: {receivers: {nop: {}}}",
		"global: {team: serving}",
	} {
		_, err := template(t, "--values", file(t, values))
		require.NoError(t, err, values)
	}
}
