// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-fpm/otelcol-fpm/receiver/metriceventreceiver/internal/metadata"
)

// patience bounds each wait for something that takes well under a second on an
// idle machine.
const patience = 20 * time.Second

// pollEvery is how often a test looks meanwhile.
const pollEvery = 5 * time.Millisecond

// long tells whether the tests that take their time shall do so.
func long() bool { return os.Getenv("FPM_TEST_LONG") == "1" }

// rig is a receiver with its surroundings.
type rig struct {
	t         *testing.T
	telemetry *componenttest.Telemetry
	lines     *observer.ObservedLogs
	host      *statusHost
	receiver  *metricEventReceiver
}

// newRig makes a receiver through its factory.
func newRig(t *testing.T, next consumer.Metrics, change ...func(*Config)) *rig {
	t.Helper()
	config := NewFactory().CreateDefaultConfig().(*Config)
	config.Endpoint = "tcp://127.0.0.1:0"
	config.Batch.Timeout = 20 * time.Millisecond
	for _, f := range change {
		f(config)
	}
	require.NoError(t, config.Validate())
	g := &rig{t: t, telemetry: componenttest.NewTelemetry(), host: &statusHost{}}
	core, lines := observer.New(zapcore.InfoLevel)
	g.lines = lines
	settings := receiver.Settings{
		ID:                component.NewIDWithName(metadata.Type, "test"),
		TelemetrySettings: g.telemetry.NewTelemetrySettings(),
		BuildInfo:         component.BuildInfo{Version: "v1.2.3"},
	}
	settings.Logger = zap.New(core)
	r, err := NewFactory().CreateMetrics(t.Context(), settings, config, next)
	require.NoError(t, err)
	g.receiver = r.(*metricEventReceiver)
	return g
}

// started is newRig and Start; at the end of the test the receiver is shut down.
func started(t *testing.T, next consumer.Metrics, change ...func(*Config)) *rig {
	t.Helper()
	g := newRig(t, next, change...)
	require.NoError(t, g.receiver.Start(t.Context(), g.host))
	t.Cleanup(func() { _ = g.receiver.Shutdown(context.Background()) })
	return g
}

// startWithoutServer starts all but the listener: the test plays the
// connections, in a bubble of synctest.
func (g *rig) startWithoutServer() {
	g.t.Helper()
	endpoint, err := parseEndpoint(g.receiver.config.Endpoint)
	require.NoError(g.t, err)
	require.NoError(g.t, g.receiver.startDelivery(endpoint))
}

// says lets a producer send events; seq is the number of those before.
func (g *rig) says(pid int, seq int64, events ...any) {
	var d decoder
	g.receiver.intake.message(&d, framesOf(wireMessage(pid, seq, 0, events...)), time.Now())
}

func (g *rig) shutdown() {
	g.t.Helper()
	require.NoError(g.t, g.receiver.Shutdown(context.Background()))
}

// address is where the receiver listens.
func (g *rig) address() (network, address string) {
	a := g.receiver.server.listener.Addr()
	return a.Network(), a.String()
}

// counter gives an instrument's values by one attribute, "" when it has none.
func (g *rig) counter(name, key string) map[string]int64 {
	g.t.Helper()
	values := map[string]int64{}
	m, err := g.telemetry.GetMetric("otelcol_receiver_metric_event_" + name)
	if err != nil {
		return values // nothing was counted
	}
	for _, point := range m.Data.(metricdata.Sum[int64]).DataPoints {
		value, _ := point.Attributes.Value(attribute.Key(key))
		values[value.AsString()] += point.Value
	}
	return values
}

// eventually waits until a counter has a value.
func (g *rig) eventually(name, key, value string, want int64) {
	g.t.Helper()
	require.Eventually(g.t, func() bool { return g.counter(name, key)[value] >= want }, patience, 2*time.Millisecond,
		"%s{%s=%q} does not come to %d: %v", name, key, value, want, g.counter(name, key))
	require.Equal(g.t, want, g.counter(name, key)[value], "%s{%s=%q}", name, key, value)
}

// counts are what the ledger says.
type counts struct {
	accepted, rejected, delivered int64
	rejectedBy, droppedBy         map[string]int64
}

// settled asserts the loss ledger: all is quiet, and so many events were in the
// messages read. Every behaviour test ends with it.
func (g *rig) settled(read int64) counts {
	g.t.Helper()
	events := g.counter("events", "outcome")
	c := counts{
		accepted: events["accepted"], rejected: events["rejected"], delivered: g.counter("delivered", "")[""],
		rejectedBy: g.counter("rejected", "reason"), droppedBy: g.counter("dropped", "reason"),
	}
	assert.Equal(g.t, read, c.accepted+c.rejected, "events in messages read = accepted + rejected: %+v", c)
	rejected, dropped := int64(0), int64(0)
	for reason, n := range c.rejectedBy {
		if reason != "oversize" && reason != "protocol" {
			rejected += n
		}
	}
	for _, n := range c.droppedBy {
		dropped += n
	}
	assert.Equal(g.t, c.rejected, rejected, "rejected, by reason: %+v", c)
	assert.Equal(g.t, c.accepted, c.delivered+dropped, "accepted = delivered + dropped: %+v", c)
	assert.Zero(g.t, g.receiver.delivery.queue.waiting())
	for _, p := range g.receiver.producers.list() {
		for _, m := range p.metrics {
			for _, s := range m.series {
				assert.Zero(g.t, s.waiting.Load(), "events of a series that still wait")
			}
		}
	}
	return c
}

// ended shuts the receiver down and asserts the ledger.
func (g *rig) ended(read int64) counts {
	g.t.Helper()
	g.shutdown()
	return g.settled(read)
}

// said are the lines with a text.
func (g *rig) said(text string) []observer.LoggedEntry {
	return g.lines.FilterMessage(text).All()
}

// statusHost keeps what the component reports.
type statusHost struct {
	mu     sync.Mutex
	events []*componentstatus.Event
}

func (*statusHost) GetExtensions() map[component.ID]component.Component { return nil }

func (h *statusHost) Report(event *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, event)
}

func (h *statusHost) last() *componentstatus.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.events) == 0 {
		return componentstatus.NewEvent(componentstatus.StatusNone)
	}
	return h.events[len(h.events)-1]
}

// sink takes, refuses or hangs as it is told, and keeps what it took. What it
// refuses it spoils first: nobody may rely on data that was handed on.
type sink struct {
	mu     sync.Mutex
	taken  []pmetric.Metrics
	answer func(ctx context.Context) error // nil takes all
}

func (s *sink) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	s.mu.Lock()
	answer := s.answer
	s.mu.Unlock()
	if answer != nil {
		if err := answer(ctx); err != nil {
			md.ResourceMetrics().RemoveIf(func(pmetric.ResourceMetrics) bool { return true })
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = append(s.taken, md)
	return nil
}

func (*sink) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

// tell changes what the sink does from now on.
func (s *sink) tell(answer func(ctx context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *sink) all() []pmetric.Metrics {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.taken)
}

// read adds up all that was taken.
func (s *sink) read(t *testing.T) *reading {
	r := newReading(t)
	for _, md := range s.all() {
		r.take(md)
	}
	return r
}
