// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/yaml"
)

var strict = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}()

// serviceMonitor is the part of monitoring.coreos.com/v1 ServiceMonitor that the
// chart uses, after the API reference of the Prometheus operator. Its types are no
// dependency of this module.
type serviceMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector          metav1.LabelSelector `json:"selector"`
		NamespaceSelector struct {
			MatchNames []string `json:"matchNames"`
		} `json:"namespaceSelector"`
		Endpoints []struct {
			Port          string `json:"port"`
			Interval      string `json:"interval"`
			ScrapeTimeout string `json:"scrapeTimeout"`
			HonorLabels   bool   `json:"honorLabels,omitempty"`
		} `json:"endpoints"`
	} `json:"spec"`
}

// objects are the objects of one rendering, by what they are.
type objects struct {
	kind      string // of the workload
	workload  metav1.ObjectMeta
	selector  *metav1.LabelSelector
	replicas  *int32
	pod       corev1.PodTemplateSpec
	daemonSet *appsv1.DaemonSet
	deploy    *appsv1.Deployment
	stateful  *appsv1.StatefulSet

	config    *corev1.ConfigMap
	service   *corev1.Service
	account   *corev1.ServiceAccount
	testPod   *corev1.Pod
	policy    *networkingv1.NetworkPolicy
	budget    *policyv1.PodDisruptionBudget
	monitor   *serviceMonitor
	roles     []role
	all       []metav1.Object
	kindNames []string
}

// role is a Role or ClusterRole with its subjects; the namespace is empty for a
// ClusterRole.
type role struct {
	namespace string
	rules     []rbacv1.PolicyRule
	subjects  []rbacv1.Subject
}

// decode decodes every object strictly: a field that its type does not have, or
// one that stands twice, fails the test.
func decode(t *testing.T, text string) objects {
	t.Helper()
	var o objects
	roles := map[string]*role{}
	roleOf := func(kind, namespace, name string) *role {
		key := kind + "/" + namespace + "/" + name
		if roles[key] == nil {
			roles[key] = &role{namespace: namespace}
		}
		return roles[key]
	}
	for _, document := range documents(text) {
		var kind metav1.TypeMeta
		require.NoError(t, yaml.Unmarshal([]byte(document), &kind), "%s", document)
		o.kindNames = append(o.kindNames, kind.Kind)
		if kind.Kind == "ServiceMonitor" {
			require.Equal(t, "monitoring.coreos.com/v1", kind.APIVersion)
			o.monitor = &serviceMonitor{}
			require.NoError(t, yaml.UnmarshalStrict([]byte(document), o.monitor), "%s", document)
			o.all = append(o.all, o.monitor)
			continue
		}
		object, _, err := strict.Decode([]byte(document), nil, nil)
		require.NoError(t, err, "%s", document)
		o.all = append(o.all, object.(metav1.Object))
		switch v := object.(type) {
		case *appsv1.DaemonSet:
			o.daemonSet, o.kind, o.workload, o.selector, o.pod = v, kind.Kind, v.ObjectMeta, v.Spec.Selector, v.Spec.Template
		case *appsv1.Deployment:
			o.deploy, o.kind, o.workload, o.selector, o.pod, o.replicas = v, kind.Kind, v.ObjectMeta, v.Spec.Selector, v.Spec.Template, v.Spec.Replicas
		case *appsv1.StatefulSet:
			o.stateful, o.kind, o.workload, o.selector, o.pod, o.replicas = v, kind.Kind, v.ObjectMeta, v.Spec.Selector, v.Spec.Template, v.Spec.Replicas
		case *corev1.ConfigMap:
			o.config = v
		case *corev1.Service:
			o.service = v
		case *corev1.ServiceAccount:
			o.account = v
		case *corev1.Pod:
			o.testPod = v
		case *networkingv1.NetworkPolicy:
			o.policy = v
		case *policyv1.PodDisruptionBudget:
			o.budget = v
		case *rbacv1.ClusterRole:
			roleOf("ClusterRole", "", v.Name).rules = v.Rules
		case *rbacv1.Role:
			roleOf("Role", v.Namespace, v.Name).rules = v.Rules
		case *rbacv1.ClusterRoleBinding:
			roleOf(v.RoleRef.Kind, "", v.RoleRef.Name).subjects = v.Subjects
		case *rbacv1.RoleBinding:
			roleOf(v.RoleRef.Kind, v.Namespace, v.RoleRef.Name).subjects = v.Subjects
		default:
			t.Fatalf("the chart renders %T, which no test knows", object)
		}
	}
	for _, r := range roles {
		o.roles = append(o.roles, *r)
	}
	require.NotNil(t, o.config)
	require.NotEmpty(t, o.kind)
	return o
}
