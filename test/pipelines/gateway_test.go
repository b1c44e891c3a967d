// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

// gateway is a Collector with config/gateway.yaml that can be stopped and
// started again at the same address.
type gateway struct {
	*harness.Collector
	config     harness.CollectorConfig
	grpc, page string
	traces     string
	behind     *backend
	// before are the rows that earlier processes wrote.
	before int
}

func newGateway(t *testing.T) *gateway {
	t.Helper()
	dir := t.TempDir()
	g := &gateway{
		grpc: harness.Address(t), page: harness.Address(t),
		traces: filepath.Join(dir, "run", "traces", "gateway-fpm"),
		behind: startBackend(t),
	}
	g.config = harness.CollectorConfig{
		File: "gateway.yaml",
		Override: fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: %q}, http: {endpoint: %q}}}}
exporters: {prometheus: {endpoint: %q}}
`, g.grpc, harness.Address(t), g.page),
		Env: []string{"OTLP_HTTP_ENDPOINT=http://" + g.behind.address},
		Dir: dir,
	}
	return g
}

func (g *gateway) start(t *testing.T) {
	t.Helper()
	g.before = len(harness.Rows(t, g.traces))
	g.Collector = harness.StartCollector(t, g.config)
}

// assertHasAll checks that all three backends of the gateway got everything.
func (g *gateway) assertHasAll(t *testing.T, sent map[int][]harness.Sent, labels ...string) {
	t.Helper()
	assertTotals(t, harness.Scrape(t, g.page), sent, labels...)
	want := passesOf(sent)
	harness.Wait(t, "the backend behind the gateway lacks something", func() bool {
		return assert.ObjectsAreEqual(want, g.behind.passes())
	})
}

// rows waits for n rows in the gateway's trace.
func (g *gateway) rows(t *testing.T, n int) {
	t.Helper()
	g.Until(t, fmt.Sprintf("the gateway does not write %d rows", n), func(p harness.Page) bool {
		return g.before+p.Count("otelcol_exporter_fpm_trace_rows", "outcome", "written") >= n
	})
}

// An agent that sends its metrics raw, and one that ran gauge_dedup: the gateway
// gives all of both to each of its backends.
func TestGateway(t *testing.T) {
	t.Parallel()
	const ranks, count = 2, 300
	g := newGateway(t)
	g.start(t)
	engines := map[string]*harness.Publisher{}
	for _, agent := range []struct{ name, processors string }{
		{"raw", "[]"},
		{"deduped", "[gauge_dedup]"},
	} {
		g.behind.Reset()
		endpoint := harness.TCP(ports.Block(t, ranks))
		engine := harness.Publish(t, endpoint, ranks, count, 300, "--worker-id", agent.name)
		collector := harness.StartCollector(t, harness.CollectorConfig{File: fpmAt(endpoint, ranks) + fmt.Sprintf(`
processors: {gauge_dedup: }
exporters: {otlp_grpc: {endpoint: %q, tls: {insecure: true}, sending_queue: {num_consumers: 1}}}
extensions: {health_check: {http: {status: {enabled: true}}}}
service:
  extensions: [health_check]
  pipelines:
    metrics: {receivers: [fpm], processors: %s, exporters: [otlp_grpc]}
    logs: {receivers: [fpm], exporters: [otlp_grpc]}
`, g.grpc, agent.processors)})
		engine.WaitForLine(t, "sent")
		collector.Delivered(t, "metrics", ranks*count)
		collector.Delivered(t, "logs", ranks*count)
		collector.Stop(t)
		g.assertHasAll(t, engine.Sent(t), "instance", agent.name)
		engines[agent.name] = engine
	}
	g.Stop(t)
	rows := harness.Rows(t, g.traces)
	for name, engine := range engines {
		assertRows(t, slices.DeleteFunc(slices.Clone(rows), func(r harness.Row) bool {
			return r.Event.Source.ProducerID != name
		}), engine.Sent(t))
	}
}
