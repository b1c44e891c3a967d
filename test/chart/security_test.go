// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// What the Pod Security Standard "restricted" asks of a pod, and a root file
// system that nobody writes.
func TestContainersAreRestricted(t *testing.T) {
	each(t, func(t *testing.T, o objects) {
		for _, spec := range []corev1.PodSpec{o.pod.Spec, o.testPod.Spec} {
			pod := spec.SecurityContext
			require.NotNil(t, pod)
			assert.True(t, *pod.RunAsNonRoot)
			assert.Equal(t, int64(10001), *pod.RunAsUser)
			assert.Equal(t, int64(10001), *pod.RunAsGroup)
			assert.Equal(t, int64(10001), *pod.FSGroup)
			assert.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.SeccompProfile.Type)
			assert.False(t, spec.HostNetwork || spec.HostPID || spec.HostIPC)
			for _, container := range spec.Containers {
				c := container.SecurityContext
				require.NotNil(t, c)
				assert.False(t, *c.AllowPrivilegeEscalation)
				assert.True(t, *c.ReadOnlyRootFilesystem)
				assert.Equal(t, []corev1.Capability{"ALL"}, c.Capabilities.Drop)
				assert.Empty(t, c.Capabilities.Add)
				assert.Nil(t, c.RunAsUser, "the pod's user holds")
				assert.Nil(t, c.Privileged)
			}
		}
		// The one exception: giving a hostPath to the Collector's user.
		for _, container := range o.pod.Spec.InitContainers {
			assert.Equal(t, "chown", container.Name)
			assert.Equal(t, []string{"chown", "10001:10001", "/var/lib/otelcol-fpm"}, container.Command)
			assert.Equal(t, []corev1.Capability{"ALL"}, container.SecurityContext.Capabilities.Drop)
			assert.Equal(t, []corev1.Capability{"CHOWN"}, container.SecurityContext.Capabilities.Add)
		}
	})
	text, err := template(t, "--values", cases(t)["daemonset-traces"], "--set", "dataVolume.hostPath.chown.enabled=false")
	require.NoError(t, err)
	assert.Empty(t, decode(t, text).pod.Spec.InitContainers)
}

// Only pods that discover have a token, and it lets them read pods.
func TestOnlyDiscoveryHasAToken(t *testing.T) {
	each(t, func(t *testing.T, o objects) {
		assert.False(t, *o.account.AutomountServiceAccountToken)
		assert.Equal(t, o.kind == "DaemonSet", *o.pod.Spec.AutomountServiceAccountToken)
		assert.False(t, *o.testPod.Spec.AutomountServiceAccountToken)
		assert.Equal(t, o.kind == "DaemonSet", len(o.roles) > 0)
		for _, role := range o.roles {
			assert.Equal(t, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"}}}, role.rules)
			assert.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Name: o.account.Name, Namespace: namespace}}, role.subjects)
		}
	})
}

// With discovery.namespaces the roles reach no further than these.
func TestRolesReachAsFarAsDiscovery(t *testing.T) {
	var namespaces []string
	for _, role := range render(t, "daemonset-traces").roles {
		namespaces = append(namespaces, role.namespace)
	}
	assert.ElementsMatch(t, []string{"llm-a", "llm-b"}, namespaces)
	everywhere := render(t, "daemonset").roles
	require.Len(t, everywhere, 1)
	assert.Empty(t, everywhere[0].namespace)
	assert.Empty(t, render(t, "daemonset", "--set", "rbac.create=false").roles)
}

// One number, the memory limit, gives GOMEMLIMIT and memory_limiter's.
func TestMemoryLimitsAgree(t *testing.T) {
	for limit, test := range map[string]struct{ goMemLimit, limitMiB, spikeMiB string }{
		"256Mi":      {"204MiB", "192", "38"},
		"512Mi":      {"409MiB", "384", "76"},
		"2Gi":        {"1638MiB", "1536", "307"},
		"1G":         {"762MiB", "714", "142"},
		"1073741824": {"819MiB", "768", "153"},
	} {
		o := render(t, "daemonset", "--set-string", "resources.limits.memory="+limit)
		container := o.pod.Spec.Containers[0]
		assert.Equal(t, test.goMemLimit, environment(o.pod.Spec)["GOMEMLIMIT"], limit)
		config := configuration(t, o)
		limiter := config["processors"].(map[string]any)["memory_limiter"].(map[string]any)
		assert.Equal(t, test.limitMiB, toText(limiter["limit_mib"]), limit)
		assert.Equal(t, test.spikeMiB, toText(limiter["spike_limit_mib"]), limit)
		want := resource.MustParse(limit)
		assert.Equal(t, want.Value(), container.Resources.Limits.Memory().Value())
	}
}
