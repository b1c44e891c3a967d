// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/chart/container"
)

// spec is what the pod of a rendering says to a container runtime, for a pod of
// that address.
func spec(t *testing.T, o objects, address string) container.Spec {
	t.Helper()
	pod := o.pod.Spec
	main := pod.Containers[0]
	require.Empty(t, main.Command, "the image's entry point runs")
	s := container.Spec{
		Arguments: main.Args,
		Files:     map[string]string{},
		ReadOnly:  *main.SecurityContext.ReadOnlyRootFilesystem,
	}
	for name, value := range environment(pod) {
		if name == "MY_POD_IP" {
			value = address
		}
		s.Environment = append(s.Environment, name+"="+value)
	}
	for _, mount := range main.VolumeMounts {
		if mount.Name != "config" {
			s.Volumes = append(s.Volumes, mount.MountPath)
			continue
		}
		for key, text := range o.config.Data {
			s.Files[filepath.Join(mount.MountPath, key)] = text
		}
	}
	return s
}

// The binary takes the configuration of every rendering, and its pod becomes
// ready: with the image's files, read-only, as the image's user.
func TestPodsOfAllRenderingsBecomeReady(t *testing.T) {
	image := container.Build(t)
	each(t, func(t *testing.T, o objects) {
		address := container.Address()
		s := spec(t, o, address)
		if o.kind == "DaemonSet" {
			newAPIServer(t, o).give(&s)
		}
		validate := s
		validate.Arguments = append([]string{"validate"}, s.Arguments...)
		output, err := image.Run(t, validate)
		require.NoError(t, err, "%s", output)

		c := image.Start(t, s)
		for _, probe := range []string{"startup", "liveness", "readiness"} {
			assert.Contains(t, c.Get(t, "http://"+address+":13133/status"), `"healthy":true`, probe)
		}
		for _, port := range o.pod.Spec.Containers[0].Ports {
			at := net.JoinHostPort(address, strconv.Itoa(int(port.ContainerPort)))
			switch port.Name {
			case "metrics", "telemetry":
				c.Get(t, "http://"+at+"/metrics")
			default:
				conn, err := net.DialTimeout("tcp", at, time.Second)
				require.NoError(t, err, port.Name)
				_ = conn.Close()
			}
		}
		limit := o.pod.Spec.Containers[0].Resources.Limits.Memory().Value()
		assert.Less(t, c.MemoryBytes(t), limit*3/4, "an idle Collector is at its limit already")
		c.Stop(t)
		assert.NotContains(t, c.Log(), "permission denied")
		assert.NotContains(t, c.Log(), "read-only file system")
	})
}

// engine runs the simulated engine at an address, a port for each rank.
func engine(t *testing.T, address string, ranks int) {
	t.Helper()
	command := exec.Command(container.Binary(t, "fpmsim"),
		"--endpoint", "tcp://"+address+":20380", "--ranks", fmt.Sprint(ranks), "--rate", "50", "--worker-id", "worker-7")
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Logf("the engine said: %s", output.String())
		}
	})
}

// A StatefulSet's pod hears a fixed engine: the page has every rank, and the rows
// are on the claim under the pod's own name.
func TestFixedEngineReachesPageAndClaim(t *testing.T) {
	image := container.Build(t)
	publisher, address := container.Address(), container.Address()
	engine(t, publisher, 2)
	o := render(t, "statefulset", "--set", "engines.endpoints[0].endpoint="+publisher+":20380,engines.endpoints[0].dp_size=2")
	c := image.Start(t, spec(t, o, address))
	for rank := range 2 {
		c.Wait(t, "http://"+address+":9464/metrics", fmt.Sprintf(`fpm_step_duration_seconds_count{fpm_dp_rank="%d",instance="worker-7",job="default/backend"`, rank))
	}
	c.Wait(t, "http://"+address+":8888/metrics", `otelcol_exporter_fpm_trace_rows{outcome="written"`)
	c.Stop(t)
	rows := rows(t, filepath.Join(c.Volumes["/var/lib/otelcol-fpm"], "traces", podName))
	require.NotEmpty(t, rows)
	ranks := map[int]bool{}
	for _, row := range rows {
		assert.Equal(t, "dynamo.fpm.trace.v1", row.Event.Schema)
		assert.Equal(t, "full", row.Event.CaptureMode)
		ranks[row.Event.FPM.DPRank] = true
	}
	assert.Len(t, ranks, 2)
}

// A DaemonSet's pod finds the engines of its node by the name of their port, with
// the rights of its role, and its page says which pod they are.
func TestDiscoveredEngineReachesPageAndTraces(t *testing.T) {
	image := container.Build(t)
	publisher, address := container.Address(), container.Address()
	engine(t, publisher, 8)
	o := render(t, "daemonset-traces")
	api := newAPIServer(t, o)
	api.add(enginePod("engine-0", "llm-a", publisher, "fpm"))
	api.add(enginePod("web-0", "llm-a", container.Address(), "http"))
	s := spec(t, o, address)
	api.give(&s)
	c := image.Start(t, s)
	page := c.Wait(t, "http://"+address+":9464/metrics", `fpm_step_duration_seconds_count{fpm_dp_rank="7",instance="worker-7",job="default/backend",k8s_namespace_name="llm-a",k8s_pod_name="engine-0"`)
	assert.NotContains(t, page, "web-0")
	assert.Contains(t, page, `llm_role="decode"`, "discovery.resourceAttributes are expressions")
	c.Wait(t, "http://"+address+":8888/metrics", `otelcol_exporter_fpm_trace_rows{outcome="written"`)
	c.Stop(t)
	assert.NotEmpty(t, rows(t, filepath.Join(c.Volumes["/var/lib/otelcol-fpm"], "traces", nodeName)))
	assert.Empty(t, api.denied(), "the role lacks what the observer asks for")
	assert.ElementsMatch(t, []string{"llm-a", "llm-b"}, api.namespaces())
}

// Workers of Dynamo's operator are found as it makes them: by their labels, without
// a port of our name. Its frontend is none.
func TestDynamoWorkerIsFoundByItsLabels(t *testing.T) {
	image := container.Build(t)
	publisher, address := container.Address(), container.Address()
	engine(t, publisher, 1)
	o := render(t, "dynamo")
	api := newAPIServer(t, o)
	for name, component := range map[string]string{"VllmDecodeWorker": "worker", "Frontend": "frontend"} {
		pod := enginePod(name, "llm", publisher, "system")
		pod.Labels = map[string]string{
			"nvidia.com/dynamo-component-type": component, "nvidia.com/dynamo-component": name, "nvidia.com/dynamo-namespace": "llm-vllm-agg",
		}
		api.add(pod)
	}
	s := spec(t, o, address)
	api.give(&s)
	c := image.Start(t, s)
	page := c.Wait(t, "http://"+address+":9464/metrics", `fpm_step_duration_seconds_count{fpm_dp_rank="0",instance="worker-7",job="llm-vllm-agg/VllmDecodeWorker",k8s_namespace_name="llm",k8s_pod_name="VllmDecodeWorker"`)
	assert.NotContains(t, page, "Frontend")
	c.Stop(t)
	assert.Empty(t, api.denied(), "the role lacks what the observer asks for")
}

// Without its role the pod runs and finds nothing; the test above could fail.
func TestDiscoveryNeedsItsRole(t *testing.T) {
	image := container.Build(t)
	address := container.Address()
	o := render(t, "daemonset", "--set", "rbac.create=false")
	api := newAPIServer(t, o)
	s := spec(t, o, address)
	api.give(&s)
	c := image.Start(t, s)
	c.Get(t, "http://"+address+":13133/status")
	api.waitDenied(t)
	c.Stop(t)
}

// A pod on a port of a cluster that speaks IPv6 alone.
func TestPodsListenOnIPv6(t *testing.T) {
	image := container.Build(t)
	o := render(t, "engines")
	c := image.Start(t, spec(t, o, "::1"))
	assert.Contains(t, c.Get(t, "http://[::1]:13133/status"), `"healthy":true`)
	c.Get(t, "http://[::1]:9464/metrics")
	c.Get(t, "http://[::1]:8888/metrics")
	c.Stop(t)
}

type traceRow struct {
	Event struct {
		Schema      string `json:"schema"`
		CaptureMode string `json:"capture_mode"`
		FPM         struct {
			DPRank int `json:"dp_rank"`
		} `json:"fpm"`
	} `json:"event"`
}

// rows reads the segments of a folder.
func rows(t *testing.T, folder string) []traceRow {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "dynamo-fpm.*.jsonl.gz"))
	require.NoError(t, err)
	var found []traceRow
	for _, path := range files {
		f, err := os.Open(path)
		require.NoError(t, err)
		z, err := gzip.NewReader(f)
		require.NoError(t, err)
		text, err := io.ReadAll(z)
		require.NoError(t, err)
		_ = f.Close()
		for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			var row traceRow
			require.NoError(t, json.Unmarshal([]byte(line), &row), "%s", line)
			found = append(found, row)
		}
	}
	return found
}
