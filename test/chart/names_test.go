// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
)

// each runs a test for every file in ci/.
func each(t *testing.T, test func(t *testing.T, o objects)) {
	t.Helper()
	for name := range cases(t) {
		t.Run(name, func(t *testing.T) { test(t, render(t, name)) })
	}
}

func matches(t *testing.T, selector *metav1.LabelSelector, of map[string]string) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	require.NoError(t, err)
	require.False(t, s.Empty(), "an empty selector takes every pod")
	return s.Matches(labels.Set(of))
}

// The decoder that the other tests trust refuses what an API server would drop.
func TestDecodingIsStrict(t *testing.T) {
	for _, text := range []string{
		"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\nautomountToken: false\n",
		"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\nmetadata: {name: b}\n",
	} {
		_, _, err := strict.Decode([]byte(text), nil, nil)
		assert.True(t, runtime.IsStrictDecodingError(err), "%s gives %v", text, err)
	}
}

func TestSelectorsFindThePodsAndNoOthers(t *testing.T) {
	each(t, func(t *testing.T, o objects) {
		pod := o.pod.Labels
		assert.True(t, matches(t, o.selector, pod))
		assert.True(t, labels.SelectorFromSet(o.service.Spec.Selector).Matches(labels.Set(pod)))
		assert.False(t, labels.SelectorFromSet(o.service.Spec.Selector).Matches(labels.Set(o.testPod.Labels)), "the test pod is in the Service")
		if o.budget != nil {
			assert.True(t, matches(t, o.budget.Spec.Selector, pod))
		}
		if o.policy != nil {
			assert.True(t, matches(t, &o.policy.Spec.PodSelector, pod))
		}
		if o.monitor != nil {
			assert.True(t, matches(t, &o.monitor.Spec.Selector, o.service.Labels))
			assert.Equal(t, []string{o.service.Namespace}, o.monitor.Spec.NamespaceSelector.MatchNames)
		}
		if o.stateful != nil {
			assert.Equal(t, o.service.Name, o.stateful.Spec.ServiceName)
			assert.Equal(t, corev1.ClusterIPNone, o.service.Spec.ClusterIP)
		}
	})
}

func TestPortsThatReferToEachOtherExist(t *testing.T) {
	each(t, func(t *testing.T, o objects) {
		container := o.pod.Spec.Containers[0]
		numbers := map[string]int32{}
		for _, port := range container.Ports {
			assert.Empty(t, validation.IsValidPortName(port.Name))
			numbers[port.Name] = port.ContainerPort
		}
		assert.Len(t, numbers, len(container.Ports), "a name stands twice")
		served := map[string]bool{}
		for _, port := range o.service.Spec.Ports {
			assert.Equal(t, numbers[port.TargetPort.StrVal], port.Port, port.Name)
			served[port.Name] = true
		}
		for _, probe := range []*corev1.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
			require.NotNil(t, probe)
			assert.Contains(t, numbers, probe.HTTPGet.Port.StrVal)
			assert.Equal(t, "/status", probe.HTTPGet.Path)
		}
		if o.monitor != nil {
			for _, endpoint := range o.monitor.Spec.Endpoints {
				assert.True(t, served[endpoint.Port], endpoint.Port)
				assert.Equal(t, endpoint.Port == "metrics", endpoint.HonorLabels, "job and instance of the page are the engine's")
			}
		}
		if o.policy != nil {
			allowed := map[string]bool{}
			for _, rule := range o.policy.Spec.Ingress {
				for _, port := range rule.Ports {
					assert.Contains(t, numbers, port.Port.StrVal)
					allowed[port.Port.StrVal] = true
				}
			}
			assert.Len(t, allowed, len(numbers), "every port of the pod has a rule")
		}
	})
}

var variable = regexp.MustCompile(`\$\{env:([A-Za-z0-9_]+)(:-[^}]*)?\}`)

// A variable that is not there becomes empty text, and the Collector starts with
// it.
func TestEveryVariableOfTheConfigIsInTheEnvironment(t *testing.T) {
	each(t, func(t *testing.T, o objects) {
		names := map[string]bool{}
		for _, env := range o.pod.Spec.Containers[0].Env {
			assert.False(t, names[env.Name], "%s stands twice", env.Name)
			names[env.Name] = true
		}
		found := variable.FindAllStringSubmatch(o.config.Data["config.yaml"], -1)
		require.NotEmpty(t, found)
		for _, match := range found {
			if len(o.pod.Spec.Containers[0].EnvFrom) == 0 || strings.HasPrefix(match[1], "MY_POD") {
				assert.True(t, names[match[1]], match[1])
			}
		}
	})
}

func TestMountsHaveTheirVolumes(t *testing.T) {
	each(t, func(t *testing.T, o objects) {
		volumes := map[string]bool{}
		for _, volume := range o.pod.Spec.Volumes {
			volumes[volume.Name] = true
			if volume.ConfigMap != nil {
				assert.Equal(t, o.config.Name, volume.ConfigMap.Name)
			}
		}
		if o.stateful != nil {
			for _, claim := range o.stateful.Spec.VolumeClaimTemplates {
				assert.False(t, volumes[claim.Name], "%s is a volume and a claim", claim.Name)
				volumes[claim.Name] = true
			}
		}
		used := map[string]bool{}
		for _, container := range append(o.pod.Spec.InitContainers, o.pod.Spec.Containers...) {
			for _, mount := range container.VolumeMounts {
				assert.True(t, volumes[mount.Name], mount.Name)
				used[mount.Name] = true
			}
		}
		assert.Equal(t, volumes, used)
	})
}

func TestNamesAreThoseOfTheRelease(t *testing.T) {
	each(t, func(t *testing.T, o objects) {
		for _, object := range o.all {
			assert.Contains(t, object.GetName(), o.service.Name)
			assert.Empty(t, validation.IsDNS1123Label(object.GetName()))
			assert.Equal(t, o.workload.Labels["app.kubernetes.io/instance"], object.GetLabels()["app.kubernetes.io/instance"])
		}
		assert.Equal(t, o.account.Name, o.pod.Spec.ServiceAccountName)
	})
	t.Run("long", func(t *testing.T) {
		text, err := template(t, "--values", cases(t)["statefulset"], "--set", "nameOverride="+strings.Repeat("a-", 40)+"b")
		require.NoError(t, err)
		o := decode(t, text)
		// controller-revision-hash is the name, a dash and ten characters, in 63.
		assert.LessOrEqual(t, len(o.workload.Name), 52)
		assert.NotRegexp(t, "-$", o.workload.Name)
		for _, value := range o.pod.Labels {
			assert.Empty(t, validation.IsValidLabelValue(value))
		}
	})
}

// A changed configuration makes new pods, and nothing else does.
func TestChecksumFollowsTheConfiguration(t *testing.T) {
	checksum := func(arguments ...string) string {
		return render(t, "engines", arguments...).pod.Annotations["checksum/config"]
	}
	before := checksum()
	assert.Len(t, before, 64)
	assert.NotEqual(t, before, checksum("--set", "engines.config.stale_after=11s"))
	assert.Equal(t, before, checksum("--set", "serviceMonitor.enabled=true"))
}
