// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"context"
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-fpm/otelcol-fpm/receiver/fpmreceiver/internal/metadata"
)

// rig is a receiver with its surroundings.
type rig struct {
	t         *testing.T
	telemetry *componenttest.Telemetry
	lines     *observer.ObservedLogs
	receiver  *fpmReceiver
	stopWatch chan struct{}
}

func nopSettings() receiver.Settings { return receivertest.NewNopSettings(metadata.Type) }

// testConfig is the default configuration of one endpoint that nobody serves.
func testConfig(change ...func(*Config)) *Config {
	config := createDefaultConfig().(*Config)
	config.Endpoint = "127.0.0.1:1"
	for _, f := range change {
		f(config)
	}
	return config
}

// newRig makes a receiver through its factory. A nil consumer is a signal
// without a pipeline.
func newRig(t *testing.T, config *Config, metrics consumer.Metrics, logs consumer.Logs) *rig {
	t.Helper()
	require.NoError(t, config.Validate())
	g := &rig{t: t, telemetry: componenttest.NewTelemetry()}
	core, lines := observer.New(zapcore.InfoLevel)
	g.lines = lines
	settings := receiver.Settings{
		ID:                component.NewIDWithName(metadata.Type, "test"),
		TelemetrySettings: g.telemetry.NewTelemetrySettings(),
		BuildInfo:         component.BuildInfo{Version: "v1.2.3"},
	}
	settings.Logger = zap.New(core)
	factory := NewFactory()
	if metrics != nil {
		r, err := factory.CreateMetrics(t.Context(), settings, config, metrics)
		require.NoError(t, err)
		g.receiver = r.(*fpmReceiver)
	}
	if logs != nil {
		r, err := factory.CreateLogs(t.Context(), settings, config, logs)
		require.NoError(t, err)
		if g.receiver != nil {
			require.Same(t, g.receiver, r, "one instance for both signals")
		}
		g.receiver = r.(*fpmReceiver)
	}
	return g
}

// startWithoutIntake starts all but the subscriptions: the test plays them, in a
// bubble of synctest.
func (g *rig) startWithoutIntake() {
	g.t.Helper()
	require.NoError(g.t, g.receiver.startPipes())
	g.stopWatch = make(chan struct{})
	g.receiver.intake.Go(func() { g.receiver.watch(g.stopWatch) })
	synctest.Wait()
}

func (g *rig) start() {
	g.t.Helper()
	require.NoError(g.t, g.receiver.Start(g.t.Context(), componenttest.NewNopHost()))
	// A test that is skipped from here on, since there is no Python, leaves nothing behind.
	g.t.Cleanup(func() { _ = g.receiver.Shutdown(context.Background()) })
}

func (g *rig) shutdown() {
	g.t.Helper()
	require.NoError(g.t, g.stop())
}

func (g *rig) stop() error {
	if g.stopWatch != nil {
		close(g.stopWatch)
		g.receiver.intake.Wait()
	}
	// Not the test's context: it is over when cleanup begins.
	return g.receiver.Shutdown(context.Background())
}

// endpoint is the n-th endpoint, for a test that plays the subscription.
func (g *rig) endpoint(n int) *endpoint { return g.receiver.endpoints[n] }

// counts are what the loss ledger says.
type counts struct {
	accepted, duplicate, rejected int64
	rejectedBy                    map[string]int64
	delivered                     map[string]int64
	dropped                       map[string]map[string]int64
	lost, restarts, mismatch      int64
}

func (g *rig) counts() counts {
	messages := g.counter("otelcol_receiver_fpm_messages", "outcome")
	c := counts{
		accepted: messages["accepted"], duplicate: messages["duplicate"], rejected: messages["rejected"],
		rejectedBy: g.counter("otelcol_receiver_fpm_rejected", "reason"),
		delivered:  g.counter("otelcol_receiver_fpm_delivered", "signal"),
		dropped:    map[string]map[string]int64{"metrics": {}, "logs": {}},
		lost:       g.counter("otelcol_receiver_fpm_lost", "")[""],
		restarts:   g.counter("otelcol_receiver_fpm_restarts", "")[""],
		mismatch:   g.counter("otelcol_receiver_fpm_sequence_mismatch", "")[""],
	}
	g.points("otelcol_receiver_fpm_dropped", func(attributes attribute.Set, value int64) {
		s, _ := attributes.Value("signal")
		reason, _ := attributes.Value("reason")
		c.dropped[s.AsString()][reason.AsString()] += value
	})
	return c
}

// settled asserts the loss ledger: all is quiet, and read messages were read.
// Every behaviour test ends with it.
func (g *rig) settled(read int) counts {
	g.t.Helper()
	c := g.counts()
	assert.EqualValues(g.t, read, c.accepted+c.duplicate+c.rejected, "read = accepted + duplicate + rejected: %+v", c)
	var rejected int64
	for reason, n := range c.rejectedBy {
		if reason != rejectedOversize {
			rejected += n
		}
	}
	assert.Equal(g.t, rejected, c.rejected, "rejected, by reason: %+v", c)
	for s, run := range g.receiver.runners {
		if run == nil {
			continue
		}
		name := signal(s).String()
		var dropped int64
		for _, n := range c.dropped[name] {
			dropped += n
		}
		assert.Equal(g.t, c.accepted, c.delivered[name]+dropped, "accepted = delivered + dropped of %s: %+v", name, c)
		assert.Zero(g.t, run.queue.length())
	}
	for _, e := range g.receiver.endpoints {
		for _, r := range e.ranks {
			assert.Zero(g.t, r.waiting.Load(), "messages of a rank that still wait")
		}
	}
	return c
}

// counter gives an instrument's values by one attribute.
func (g *rig) counter(name, key string) map[string]int64 {
	values := map[string]int64{}
	g.points(name, func(attributes attribute.Set, value int64) {
		v, _ := attributes.Value(attribute.Key(key))
		values[v.AsString()] += value
	})
	return values
}

// counterWhere gives an instrument's values by one attribute, where another one
// has a value.
func (g *rig) counterWhere(name, where, value, key string) map[string]int64 {
	values := map[string]int64{}
	g.points(name, func(attributes attribute.Set, n int64) {
		if v, _ := attributes.Value(attribute.Key(where)); v.AsString() == value {
			v, _ = attributes.Value(attribute.Key(key))
			values[v.AsString()] += n
		}
	})
	return values
}

func (g *rig) points(name string, each func(attribute.Set, int64)) {
	g.t.Helper()
	m, err := g.telemetry.GetMetric(name)
	if err != nil {
		return // nothing counted yet
	}
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			each(p.Attributes, p.Value)
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			each(p.Attributes, p.Value)
		}
	default:
		g.t.Fatalf("%s is a %T", name, m.Data)
	}
}

// warnings are the log lines that contain a text.
func (g *rig) warnings(text string) []observer.LoggedEntry {
	return g.lines.FilterLevelExact(zapcore.WarnLevel).FilterMessageSnippet(text).All()
}

// pass is a forward pass as an engine encodes it.
type pass struct {
	Version   int     `msgpack:"version"`
	WorkerID  string  `msgpack:"worker_id"`
	DPRank    int     `msgpack:"dp_rank"`
	CounterID int64   `msgpack:"counter_id"`
	WallTime  float64 `msgpack:"wall_time"`
	Scheduled struct {
		NumPrefillRequests int     `msgpack:"num_prefill_requests"`
		SumPrefillTokens   int64   `msgpack:"sum_prefill_tokens"`
		VarPrefillLength   float64 `msgpack:"var_prefill_length"`
		SumPrefillKVTokens int64   `msgpack:"sum_prefill_kv_tokens"`
		NumDecodeRequests  int64   `msgpack:"num_decode_requests"`
		SumDecodeKVTokens  int64   `msgpack:"sum_decode_kv_tokens"`
		VarDecodeKVTokens  float64 `msgpack:"var_decode_kv_tokens"`
	} `msgpack:"scheduled_requests"`
	Queued struct {
		NumPrefillRequests int     `msgpack:"num_prefill_requests"`
		SumPrefillTokens   int64   `msgpack:"sum_prefill_tokens"`
		VarPrefillLength   float64 `msgpack:"var_prefill_length"`
		NumDecodeRequests  int64   `msgpack:"num_decode_requests"`
		SumDecodeKVTokens  int64   `msgpack:"sum_decode_kv_tokens"`
		VarDecodeKVTokens  float64 `msgpack:"var_decode_kv_tokens"`
	} `msgpack:"queued_requests"`
}

// busy is a pass with work: 20 ms, 3 decode requests, 512 prompt tokens.
func busy(workerID string, dpRank int, counter int64) pass {
	p := heartbeat(workerID, dpRank, counter)
	p.WallTime = 0.02
	p.Scheduled.NumPrefillRequests, p.Scheduled.SumPrefillTokens = 1, 512
	p.Scheduled.NumDecodeRequests, p.Scheduled.SumDecodeKVTokens = 3, 3000
	return p
}

func heartbeat(workerID string, dpRank int, counter int64) pass {
	return pass{Version: 1, WorkerID: workerID, DPRank: dpRank, CounterID: counter}
}

func (p pass) payload() []byte {
	b, err := msgpack.Marshal(p)
	if err != nil {
		panic(err)
	}
	return b
}

// scoped is the payload with a timing_scope of less than 32 bytes.
func (p pass) scoped(scope string) []byte {
	payload := p.payload()
	payload[0]++ // one key more
	payload = append(payload, "\xactiming_scope"...)
	return append(append(payload, byte(0xa0+len(scope))), scope...)
}

// frames are the message as it comes from the socket.
func (p pass) frames() [][]byte { return envelope(uint64(p.CounterID), p.payload()) }

func envelope(sequence uint64, payload []byte) [][]byte {
	return [][]byte{{}, binary.BigEndian.AppendUint64(nil, sequence), payload}
}

// send plays a message from the socket.
func send(e *endpoint, passes ...pass) {
	for _, p := range passes {
		e.Message(p.frames(), time.Now())
	}
}
