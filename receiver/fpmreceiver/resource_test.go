// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// names are the service.instance.id that points of a metric came under, in
// order, each once in a row.
func names(all []point, metric string) []string {
	var found []string
	for _, p := range of(all, metric) {
		name := p.resource["service.instance.id"].(string)
		if len(found) == 0 || found[len(found)-1] != name {
			found = append(found, name)
		}
	}
	return found
}

func TestResourceAndScope(t *testing.T) {
	hostname, err := os.Hostname()
	require.NoError(t, err)
	for name, test := range map[string]struct {
		config Config
		worker string
		want   map[string]any
	}{
		"tcp": {
			Config{Endpoint: "10.1.2.3:20380"},
			"vllm-0",
			map[string]any{
				"service.namespace": "default", "service.name": "backend", "service.instance.id": "vllm-0",
				"fpm.worker_id": "vllm-0", "server.address": "10.1.2.3", "server.port": int64(20380),
			},
		},
		"no worker_id": {
			Config{Endpoint: "tcp://10.1.2.3:20380"},
			"",
			map[string]any{
				"service.namespace": "default", "service.name": "backend", "service.instance.id": "10.1.2.3:20380",
				"fpm.worker_id": "", "server.address": "10.1.2.3", "server.port": int64(20380),
			},
		},
		"no worker_id, on this host": {
			Config{Endpoint: "localhost:20380"},
			"",
			map[string]any{
				"service.namespace": "default", "service.name": "backend", "service.instance.id": hostname + ":20380",
				"fpm.worker_id": "", "server.address": "localhost", "server.port": int64(20380),
			},
		},
		"no worker_id, ipc": {
			Config{Endpoint: "ipc:///tmp/sglang-fpm"},
			"",
			map[string]any{
				"service.namespace": "default", "service.name": "backend", "service.instance.id": hostname + ":/tmp/sglang-fpm",
				"fpm.worker_id": "",
			},
		},
		"a higher rank keeps the port of rank 0": {
			Config{Endpoint: "[::1]:20380", DPStartRank: 8},
			"",
			map[string]any{
				"service.namespace": "default", "service.name": "backend", "service.instance.id": hostname + ":20380",
				"fpm.worker_id": "", "server.address": "::1", "server.port": int64(20380),
			},
		},
		"configured attributes override": {
			Config{
				Endpoint: "10.1.2.3:20380", Namespace: "prod", Component: "prefill",
				ResourceAttributes: map[string]any{"service.instance.id": "mine", "k8s.pod.name": "vllm-0", "gpu.count": 8, "spot": true, "weight": 0.5},
			},
			"vllm-0",
			map[string]any{
				"service.namespace": "prod", "service.name": "prefill", "service.instance.id": "mine",
				"fpm.worker_id": "vllm-0", "server.address": "10.1.2.3", "server.port": int64(20380),
				"k8s.pod.name": "vllm-0", "gpu.count": int64(8), "spot": true, "weight": 0.5,
			},
		},
		"the long form inherits": {
			Config{
				Namespace: "prod", ResourceAttributes: map[string]any{"zone": "a", "rack": "1"},
				Endpoints: []EndpointConfig{{Endpoint: "10.1.2.3:20380", DPSize: 1, Component: "decode", ResourceAttributes: map[string]any{"rack": "2"}}},
			},
			"vllm-0",
			map[string]any{
				"service.namespace": "prod", "service.name": "decode", "service.instance.id": "vllm-0",
				"fpm.worker_id": "vllm-0", "server.address": "10.1.2.3", "server.port": int64(20380),
				"zone": "a", "rack": "2",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				metrics, logs := &metricsSink{}, &logsSink{}
				g := newRig(t, testConfig(func(c *Config) {
					c.Endpoint, c.Endpoints, c.DPStartRank = test.config.Endpoint, test.config.Endpoints, test.config.DPStartRank
					c.ResourceAttributes = test.config.ResourceAttributes
					if test.config.Namespace != "" {
						c.Namespace = test.config.Namespace
					}
					if test.config.Component != "" {
						c.Component = test.config.Component
					}
				}), metrics, logs)
				g.startWithoutIntake()
				e := g.endpoint(0)
				e.Connected()
				send(e, busy(test.worker, 3, 0))
				g.shutdown()
				g.settled(1)

				point := of(metrics.points(), fpm.MetricMessages)[0]
				assert.Equal(t, test.want, point.resource)
				assert.Equal(t, map[string]any{"fpm.dp_rank": int64(3)}, point.attributes)
				resource := logs.all()[0].ResourceLogs().At(0)
				assert.Equal(t, test.want, resource.Resource().Attributes().AsRaw())
				for _, scope := range []pcommon.InstrumentationScope{
					resource.ScopeLogs().At(0).Scope(),
					metrics.all()[0].ResourceMetrics().At(0).ScopeMetrics().At(0).Scope(),
				} {
					assert.Equal(t, "github.com/otelcol-fpm/otelcol-fpm/receiver/fpmreceiver", scope.Name())
					assert.Equal(t, "v1.2.3", scope.Version())
				}
				record := logs.records()[0]
				assert.Equal(t, "fpm.forward_pass", record.EventName())
				assert.Equal(t, map[string]any{"fpm.dp_rank": int64(3), "fpm.sequence": int64(0)}, record.Attributes().AsRaw())
				assert.Equal(t, point.at, record.Timestamp())
				assert.Equal(t, point.at, record.ObservedTimestamp())
			})
		})
	}
}

// Two engines of different namespaces may name their workers alike.
func TestSameWorkerInAnotherNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		g := newRig(t, testConfig(func(c *Config) {
			c.Endpoints = []EndpointConfig{{Endpoint: "127.0.0.1:100", DPSize: 1, Namespace: "other"}}
		}), metrics, nil)
		g.startWithoutIntake()
		for n := range 2 {
			g.endpoint(n).Connected()
			send(g.endpoint(n), busy("w", 0, 0))
		}
		g.shutdown()
		require.Equal(t, []string{"w"}, names(metrics.points(), fpm.MetricMessages))
		require.Empty(t, g.warnings("heard on another endpoint too"))
		wellFormed(t, metrics.points())
		g.settled(2)
	})
}

// Ranks of one engine share its resource, and only the attribute tells them
// apart.
func TestRanksShareTheResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics, logs := &metricsSink{}, &logsSink{}
		g := newRig(t, testConfig(func(c *Config) { c.DPSize = 4 }), metrics, logs)
		g.startWithoutIntake()
		for rank, e := range g.receiver.endpoints {
			e.Connected()
			send(e, busy("w", rank, 0), busy("w", rank, 1))
		}
		g.shutdown()
		g.settled(8)
		md, ld := metrics.all()[1], logs.all()[0]
		assert.Equal(t, 1, ld.ResourceLogs().Len())
		assert.Equal(t, 8, ld.LogRecordCount())
		require.Equal(t, 2, md.ResourceMetrics().Len(), "the worker, and its endpoints")
		assert.Equal(t, len(fpm.Metrics), md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().Len())
		wellFormed(t, metrics.points())
	})
}

// The timing_scope is part of a series' name: when it changes, the old series
// end and the rank goes on under the new ones.
func TestTimingScopeChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := &metricsSink{}
		g := newRig(t, testConfig(), metrics, nil)
		g.startWithoutIntake()
		e := g.endpoint(0)
		e.Connected()
		counter := int64(0)
		scoped := func(scope string) {
			e.Message(envelope(uint64(counter), busy("w", 0, counter).scoped(scope)), time.Now())
			counter++
		}
		scoped("execute_model_cuda")
		scoped("execute_model_cuda")
		scoped("model_step_cuda")
		time.Sleep(1100 * time.Millisecond)
		scoped("execute_model_cuda")
		scoped("model_step_cuda")
		time.Sleep(time.Minute)
		scoped("third") // what has ended does not end again
		g.shutdown()
		all := metrics.pointsBeforeShutdown()
		wellFormed(t, all)
		assert.Equal(t, rangeOf(0, 5), counters(all))
		ended := map[any]int{}
		for _, p := range all {
			if p.noValue {
				ended[p.attributes["fpm.timing_scope"]]++
			}
		}
		assert.Equal(t, map[any]int{"execute_model_cuda": 2 * fpm.Gauges, "model_step_cuda": fpm.Gauges}, ended,
			"what a batch leaves and takes up again does not end")
		g.settled(6)
	})
}
