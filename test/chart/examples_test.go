// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/otelcol-fpm/otelcol-fpm/test/chart/container"
)

// officialValues are the values of the official chart opentelemetry-collector that
// the example uses, with the types that its templates put them into. That chart's
// schema is closed, too.
type officialValues struct {
	Mode  string `json:"mode"`
	Image struct {
		Repository string `json:"repository"`
		Tag        string `json:"tag"`
	} `json:"image"`
	Command struct {
		Name      string   `json:"name"`
		ExtraArgs []string `json:"extraArgs"`
	} `json:"command"`
	AlternateConfig map[string]any `json:"alternateConfig"`
	Config          struct {
		Service struct {
			Extensions []string `json:"extensions"`
		} `json:"service"`
	} `json:"config"`
	ExtraEnvs         []corev1.EnvVar      `json:"extraEnvs"`
	ExtraVolumes      []corev1.Volume      `json:"extraVolumes"`
	ExtraVolumeMounts []corev1.VolumeMount `json:"extraVolumeMounts"`
	ClusterRole       struct {
		Create bool                `json:"create"`
		Rules  []rbacv1.PolicyRule `json:"rules"`
	} `json:"clusterRole"`
	Ports map[string]struct {
		Enabled       bool   `json:"enabled"`
		ContainerPort int    `json:"containerPort"`
		ServicePort   int    `json:"servicePort"`
		Protocol      string `json:"protocol"`
	} `json:"ports"`
	PodMonitor struct {
		Enabled          bool `json:"enabled"`
		MetricsEndpoints []struct {
			Port        string `json:"port"`
			HonorLabels bool   `json:"honorLabels"`
		} `json:"metricsEndpoints"`
	} `json:"podMonitor"`
	UseGOMEMLIMIT      bool                        `json:"useGOMEMLIMIT"`
	Resources          corev1.ResourceRequirements `json:"resources"`
	PodSecurityContext corev1.PodSecurityContext   `json:"podSecurityContext"`
	SecurityContext    corev1.SecurityContext      `json:"securityContext"`
	Tolerations        []corev1.Toleration         `json:"tolerations"`
}

func example(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(distribution("examples", name))
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, into))
	assert.NotContains(t, string(text), "{{", "the official chart would take it for a template")
}

func asYAML(t *testing.T, v any) string {
	t.Helper()
	text, err := yaml.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// The official chart runs /<command.name> with --config=/conf/relay.yaml, puts
// MY_POD_IP into the environment, and asks / of port 13133.
func TestValuesForTheOfficialChart(t *testing.T) {
	var v officialValues
	example(t, "opentelemetry-collector-values.yaml", &v)
	image := container.Build(t)
	assert.Equal(t, []string{"/" + v.Command.Name}, image.Entrypoint, "the path that the chart makes of command.name")
	assert.NotEmpty(t, v.Image.Repository)
	assert.NotEmpty(t, v.Image.Tag)
	assert.Contains(t, v.Config.Service.Extensions, "health_check", "the chart's notes fail without")
	assert.Contains(t, at(t, v.AlternateConfig, "service", "extensions"), "health_check")
	assert.True(t, *v.SecurityContext.ReadOnlyRootFilesystem)
	assert.Equal(t, int64(image.UID), *v.PodSecurityContext.RunAsUser)
	for _, endpoint := range v.PodMonitor.MetricsEndpoints {
		assert.True(t, v.Ports[endpoint.Port].Enabled, endpoint.Port)
	}

	address, publisher := container.Address(), container.Address()
	engine(t, publisher, 1)
	api := newAPIServer(t, objects{roles: []role{{rules: v.ClusterRole.Rules}}})
	api.add(enginePod("engine-0", "llm", publisher, "fpm"))
	s := container.Spec{
		Arguments: append([]string{"--config=/conf/relay.yaml"}, v.Command.ExtraArgs...),
		Files:     map[string]string{"/conf/relay.yaml": asYAML(t, v.AlternateConfig)},
		ReadOnly:  true,
	}
	pod := corev1.PodSpec{Containers: []corev1.Container{{Env: v.ExtraEnvs}}}
	for name, value := range environment(pod) {
		s.Environment = append(s.Environment, name+"="+value)
	}
	s.Environment = append(s.Environment, "MY_POD_IP="+address)
	for i, mount := range v.ExtraVolumeMounts {
		assert.Equal(t, v.ExtraVolumes[i].Name, mount.Name)
		s.Volumes = append(s.Volumes, mount.MountPath)
	}
	api.give(&s)
	c := image.Start(t, s)
	c.Get(t, "http://"+address+":13133/")
	c.Wait(t, "http://"+address+":9464/metrics", `k8s_pod_name="engine-0"`)
	c.Get(t, "http://"+address+":8888/metrics")
	c.Stop(t)
	assert.NotContains(t, c.Log(), "permission denied")
	assert.Empty(t, api.denied())
}

// operatorCollector is the part of opentelemetry.io/v1beta1 OpenTelemetryCollector
// that the examples use, after the API reference of the operator.
type operatorCollector struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Mode                          string                      `json:"mode"`
		Replicas                      *int32                      `json:"replicas,omitempty"`
		Image                         string                      `json:"image"`
		Env                           []corev1.EnvVar             `json:"env,omitempty"`
		Resources                     corev1.ResourceRequirements `json:"resources"`
		PodSecurityContext            *corev1.PodSecurityContext  `json:"podSecurityContext,omitempty"`
		SecurityContext               *corev1.SecurityContext     `json:"securityContext"`
		TerminationGracePeriodSeconds *int64                      `json:"terminationGracePeriodSeconds,omitempty"`
		Volumes                       []corev1.Volume             `json:"volumes,omitempty"`
		VolumeMounts                  []corev1.VolumeMount        `json:"volumeMounts,omitempty"`
		Config                        map[string]any              `json:"config"`
	} `json:"spec"`
}

// operate makes of a custom resource what the operator does: the configuration as a
// file, or for a sidecar as a variable, its own telemetry at every address, POD_NAME,
// and probes of the health page. 0.0.0.0 would be every pod of this machine: the
// pod's address stands for it.
func operate(t *testing.T, c operatorCollector, address string) (s container.Spec, probe string) {
	t.Helper()
	service := at(t, c.Spec.Config, "service").(map[string]any)
	require.NotContains(t, service, "telemetry")
	service["telemetry"] = map[string]any{"metrics": map[string]any{"readers": []any{map[string]any{
		"pull": map[string]any{"exporter": map[string]any{"prometheus": map[string]any{"host": "0.0.0.0", "port": 8888}}},
	}}}}
	config := strings.ReplaceAll(asYAML(t, c.Spec.Config), "0.0.0.0", address)
	s = container.Spec{Environment: []string{"POD_NAME=" + podName}, Files: map[string]string{}, ReadOnly: *c.Spec.SecurityContext.ReadOnlyRootFilesystem}
	for name, value := range environment(corev1.PodSpec{Containers: []corev1.Container{{Env: c.Spec.Env}}}) {
		s.Environment = append(s.Environment, name+"="+value)
	}
	if c.Spec.Mode == "sidecar" {
		s.Arguments = []string{"--config=env:OTEL_CONFIG"}
		s.Environment = append(s.Environment, "OTEL_CONFIG="+config)
	} else {
		s.Arguments = []string{"--config=/conf/collector.yaml"}
		s.Files["/conf/collector.yaml"] = config
	}
	for i, mount := range c.Spec.VolumeMounts {
		assert.Equal(t, c.Spec.Volumes[i].Name, mount.Name)
		s.Volumes = append(s.Volumes, mount.MountPath)
	}
	endpoint := toText(at(t, c.Spec.Config, "extensions", "health_check", "endpoint"))
	assert.True(t, strings.HasPrefix(endpoint, "0.0.0.0:"), "a kubelet does not reach %s", endpoint)
	return s, "http://" + strings.Replace(endpoint, "0.0.0.0", address, 1) + "/"
}

// The two custom resources together: an engine, a sidecar at its loopback address,
// the gateway it sends to, the gateway's page and traces.
func TestOperatorSidecarAndGateway(t *testing.T) {
	var sidecar, gateway operatorCollector
	example(t, "operator-sidecar.yaml", &sidecar)
	example(t, "operator-gateway.yaml", &gateway)
	for _, c := range []operatorCollector{sidecar, gateway} {
		assert.Equal(t, "opentelemetry.io/v1beta1", c.APIVersion)
		assert.Equal(t, "OpenTelemetryCollector", c.Kind)
		assert.Equal(t, []corev1.Capability{"ALL"}, c.Spec.SecurityContext.Capabilities.Drop)
		// A key without a value is lost on the way through kubectl edit.
		text, err := json.Marshal(c.Spec.Config)
		require.NoError(t, err)
		assert.NotContains(t, string(text), "null", c.Name)
	}
	assert.Equal(t, "sidecar", sidecar.Spec.Mode)
	assert.Equal(t, "deployment", gateway.Spec.Mode)
	// The operator's Service of a custom resource.
	service := gateway.Name + "-collector.monitoring.svc:4317"
	assert.Equal(t, service, at(t, sidecar.Spec.Config, "exporters", "otlp_grpc", "endpoint"))

	image := container.Build(t)
	publisher, beside, behind := container.Address(), container.Address(), container.Address()
	engine(t, publisher, 1)
	at(t, sidecar.Spec.Config, "receivers", "fpm").(map[string]any)["endpoint"] = publisher + ":20380"
	at(t, sidecar.Spec.Config, "exporters", "otlp_grpc").(map[string]any)["endpoint"] = behind + ":4317"

	gatewaySpec, gatewayProbe := operate(t, gateway, behind)
	g := image.Start(t, gatewaySpec)
	g.Get(t, gatewayProbe)
	sidecarSpec, sidecarProbe := operate(t, sidecar, beside)
	s := image.Start(t, sidecarSpec)
	s.Get(t, sidecarProbe)

	g.Wait(t, "http://"+behind+":9464/metrics", `fpm_step_duration_seconds_count{fpm_dp_rank="0",instance="worker-7",job="default/backend",k8s_pod_name="`+podName+`"`)
	s.Stop(t)
	g.Stop(t)
	assert.NotEmpty(t, rows(t, g.Volumes["/var/lib/otelcol-fpm"]+"/traces/"+podName), "what waits is written at the end")
}
