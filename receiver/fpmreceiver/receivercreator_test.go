// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/observer"
	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/receivercreator"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// pods is an observer extension whose pods the test lets come and go.
type pods struct {
	component.StartFunc
	component.ShutdownFunc
	notify observer.Notify
}

func (p *pods) ListAndWatch(notify observer.Notify) { p.notify = notify }
func (p *pods) Unsubscribe(observer.Notify)         {}

// creatorHost has the observer, and the factory of this receiver.
type creatorHost struct {
	component.Host
	id   component.ID
	pods *pods
}

func (h *creatorHost) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{h.id: h.pods}
}

func (h *creatorHost) GetFactory(component.Kind, component.Type) component.Factory {
	return NewFactory()
}

// The stock receiver_creator starts this receiver for a pod it is told of: it
// sets the key endpoint, and nothing else unless the template does.
func TestReceiverCreator(t *testing.T) {
	for name, template := range map[string]map[string]any{
		"nothing set": {},
		"some set":    {"stale_after": "2s", "resource_attributes": map[string]any{"zone": "a"}},
		"in the long form": {
			"endpoints": []any{map[string]any{"endpoint": "`endpoint`"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			engine := publish(t, "PUB", func(conn net.Conn) {
				for n := range int64(10) {
					_, _ = conn.Write(wire(busy("w", 0, n).frames()))
				}
				untilClosed(conn)
			})
			target := engine.endpoint()
			if name == "in the long form" {
				template["endpoint"] = "" // or it would be set
			}

			factory := receivercreator.NewFactory()
			config := factory.CreateDefaultConfig()
			require.NoError(t, confmap.NewFromStringMap(map[string]any{
				"watch_observers": []any{"pods"},
				"receivers": map[string]any{
					"fpm": map[string]any{"rule": `type == "port" && name == "fpm"`, "config": template},
				},
			}).Unmarshal(config))
			settings := receivertest.NewNopSettings(factory.Type())
			metrics, logs := &metricsSink{}, &logsSink{}
			creator, err := factory.CreateMetrics(t.Context(), settings, config, metrics)
			require.NoError(t, err)
			same, err := factory.CreateLogs(t.Context(), settings, config, logs)
			require.NoError(t, err)

			host := &creatorHost{Host: componenttest.NewNopHost(), id: component.MustNewID("pods"), pods: &pods{}}
			require.NoError(t, creator.Start(t.Context(), host))
			require.NoError(t, same.Start(t.Context(), host))
			pod := observer.Endpoint{
				ID: "pod-1", Target: target,
				Details: &observer.Port{Name: "fpm", Port: 20380, Transport: observer.ProtocolTCP, Pod: observer.Pod{Name: "vllm-0", UID: "1", Namespace: "prod"}},
			}
			host.pods.notify.OnAdd([]observer.Endpoint{pod})
			require.Eventually(t, func() bool { return len(logs.records()) == 10 && len(counters(metrics.points())) == 10 }, 20*time.Second, 5*time.Millisecond)
			host.pods.notify.OnRemove([]observer.Endpoint{pod})
			require.NoError(t, creator.Shutdown(t.Context()))
			require.NoError(t, same.Shutdown(t.Context()))

			p := of(metrics.points(), fpm.MetricMessages)[0]
			address, port, err := net.SplitHostPort(target)
			require.NoError(t, err)
			number, err := strconv.ParseInt(port, 10, 64)
			require.NoError(t, err)
			assert.Equal(t, "default", p.resource["service.namespace"], "not the pod's: Dynamo's")
			assert.Equal(t, address, p.resource["server.address"])
			assert.Equal(t, number, p.resource["server.port"])
			assert.Equal(t, "vllm-0", p.resource["k8s.pod.name"], "the creator adds what it knows of the pod")
			wellFormed(t, metrics.points())
		})
	}
}
