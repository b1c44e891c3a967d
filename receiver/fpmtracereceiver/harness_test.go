// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
	"github.com/otelcol-fpm/otelcol-fpm/receiver/fpmtracereceiver/internal/metadata"
)

var storageID = component.MustNewID("file_storage")

// rig is a receiver with a directory of its own, whose ledger is checked.
type rig struct {
	t         testing.TB
	dir       string
	cfg       *Config
	metrics   *sink
	logs      *sink
	host      *statusHost
	telemetry *componenttest.Telemetry
	said      *observer.ObservedLogs
	settings  receiver.Settings
	parts     []component.Component
	storage   extension.Extension
	// wrapStorage, if any, puts faults between the receiver and its storage.
	wrapStorage func(extension.Extension) extension.Extension
	core        *traceReceiver
	gate        *exitGate // nil: the process's own
	halted      bool
}

// newRig makes a receiver with pipelines of both signals that is not started
// yet.
func newRig(t testing.TB, change func(*Config)) *rig { return rigIn(t, t.TempDir(), change) }

func rigIn(t testing.TB, dir string, change func(*Config)) *rig {
	r := &rig{t: t, dir: dir, metrics: &sink{}, logs: &sink{}, telemetry: componenttest.NewTelemetry()}
	r.host = &statusHost{extensions: map[component.ID]component.Component{}}
	r.cfg = createDefaultConfig().(*Config)
	r.cfg.Include = []string{filepath.Join(dir, "*.jsonl.gz")}
	if change != nil {
		change(r.cfg)
	}
	require.NoError(t, r.cfg.Validate())
	core, said := observer.New(zap.InfoLevel)
	r.said = said
	r.settings = receivertest.NewNopSettings(metadata.Type)
	r.settings.ID = component.NewID(metadata.Type)
	r.settings.TelemetrySettings = r.telemetry.NewTelemetrySettings()
	r.settings.Logger = zap.New(core)
	return r
}

// start makes the receiver and starts it. Without a sink a signal has no
// pipeline.
func (r *rig) start() *rig {
	r.t.Helper()
	r.create()
	for _, part := range r.parts {
		require.NoError(r.t, part.Start(context.Background(), r.host))
	}
	return r
}

// create makes the receiver.
func (r *rig) create() {
	r.t.Helper()
	if r.cfg.Storage != nil {
		r.storage = openStorage(r.t, filepath.Join(r.dir, "offsets"))
		if r.wrapStorage != nil {
			r.storage = r.wrapStorage(r.storage)
		}
		r.host.extensions[*r.cfg.Storage] = r.storage
	}
	instances := &instances{byConfig: map[component.Config]*traceReceiver{}}
	if r.metrics != nil {
		part, err := instances.createMetrics(context.Background(), r.settings, r.cfg, r.metrics.metrics(r.t))
		require.NoError(r.t, err)
		r.parts = append(r.parts, part)
	}
	if r.logs != nil {
		part, err := instances.createLogs(context.Background(), r.settings, r.cfg, r.logs.logs(r.t))
		require.NoError(r.t, err)
		r.parts = append(r.parts, part)
	}
	r.core = instances.byConfig[r.cfg]
	if r.gate != nil {
		r.core.exit.leave(r.core)
		r.core.exit = r.gate
		r.gate.enter(r.core)
	}
	r.t.Cleanup(func() { // of a test that failed half-way
		if !r.halted {
			r.halt()
		}
	})
}

// stop stops the receiver, and checks its ledger. Reading must be over.
func (r *rig) stop() {
	r.t.Helper()
	r.halt()
	r.checkLedger()
}

// halt stops the receiver wherever it is.
func (r *rig) halt() {
	r.t.Helper()
	r.halted = true
	for _, part := range r.parts {
		require.NoError(r.t, part.Shutdown(context.Background()))
	}
	if r.storage != nil {
		require.NoError(r.t, r.storage.Shutdown(context.Background()))
	}
}

// settle lets all that is there be read, and two polls pass.
func (r *rig) settle() {
	synctest.Wait()
	for range 2 {
		time.Sleep(r.cfg.PollInterval)
		synctest.Wait()
	}
}

func openStorage(t testing.TB, dir string) extension.Extension {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	factory := filestorage.NewFactory()
	cfg := factory.CreateDefaultConfig().(*filestorage.Config)
	cfg.Directory = dir
	made, err := factory.Create(context.Background(), extensiontest.NewNopSettings(factory.Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, made.Start(context.Background(), componenttest.NewNopHost()))
	return made
}

// path is that of a segment of a producer.
func (r *rig) path(producer string, index int) string {
	return filepath.Join(r.dir, fmt.Sprintf("fpm.%s.%06d.jsonl.gz", producer, index))
}

// append adds members to a file, each with the lines of one of texts.
func (r *rig) append(path string, texts ...string) {
	r.t.Helper()
	var members []byte
	for _, text := range texts {
		members = append(members, pack(r.t, text)...)
	}
	r.appendBytes(path, members)
}

func (r *rig) appendBytes(path string, bytes []byte) {
	r.t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(r.t, err)
	_, err = file.Write(bytes)
	require.NoError(r.t, err)
	require.NoError(r.t, file.Close())
}

func pack(t testing.TB, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	packer.Lock()
	defer packer.Unlock()
	packer.Reset(&out)
	_, err := packer.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, packer.Close())
	return out.Bytes()
}

// packer is large, and tests write thousands of members.
var packer = struct {
	sync.Mutex
	*gzip.Writer
}{Writer: gzip.NewWriter(nil)}

// rowOf is a row in short.
type rowOf struct {
	producer string
	worker   string
	rank     int64
	counter  int64
	sampled  bool
	at       time.Time // began, 20 ms later for each counter, if zero
	wallTime string    // 0.0123 if empty
}

// began is the time of the first row.
var began = time.Date(2026, 6, 30, 0, 0, 1, 250_000_000, time.UTC)

func (o rowOf) String() string {
	mode := fpm.CaptureFull
	if o.sampled {
		mode = fpm.CaptureSampled
	}
	if o.producer == "" {
		o.producer = "p"
	}
	if o.at.IsZero() {
		o.at = began.Add(time.Duration(o.counter) * 20 * time.Millisecond)
	}
	return fmt.Sprintf(`{"timestamp":%d,"event":{"schema":"dynamo.fpm.trace.v1","source":{"namespace":"default","component":"backend","producer_id":%q},"capture_mode":%q,"observed_at_unix_ms":%d,"fpm":%s}}`+"\n",
		o.counter*20, o.producer, mode, o.at.UnixMilli(), o.record())
}

func (o rowOf) record() string {
	if o.wallTime == "" {
		o.wallTime = "0.0123"
	}
	return fmt.Sprintf(`{"version":1,"worker_id":%q,"dp_rank":%d,"counter_id":%d,"wall_time":%s,"scheduled_requests":{"num_prefill_requests":1,"sum_prefill_tokens":512,"var_prefill_length":0.0,"sum_prefill_kv_tokens":64,"num_decode_requests":%d,"sum_decode_kv_tokens":16384,"var_decode_kv_tokens":100.0},"queued_requests":{"num_prefill_requests":2,"sum_prefill_tokens":2048,"var_prefill_length":256.5,"num_decode_requests":0,"sum_decode_kv_tokens":0,"var_decode_kv_tokens":0.0}}`,
		o.worker, o.rank, o.counter, o.wallTime, o.counter%64)
}

// rows are the rows of producer p with counters from…to−1.
func rows(from, to int64) string { return rowsOf("p", from, to) }

func rowsOf(producer string, from, to int64) string {
	var text strings.Builder
	for counter := from; counter < to; counter++ {
		text.WriteString(rowOf{producer: producer, worker: producer, counter: counter}.String())
	}
	return text.String()
}

func span(from, to int64) (counters []int64) {
	for counter := from; counter < to; counter++ {
		counters = append(counters, counter)
	}
	return counters
}

// sink is a consumer that remembers what it took.
type sink struct {
	mu sync.Mutex
	// answer, if any, is asked before a batch is taken, with the number of the
	// call.
	answer func(call int) error
	calls  int
	// counters are those of the rows taken, by producer, and order the producers
	// of the rows.
	counters map[string][]int64
	allLogs  []plog.Logs
	all      []pmetric.Metrics
}

func (s *sink) asked() error {
	s.mu.Lock()
	s.calls++
	call, answer := s.calls, s.answer
	s.mu.Unlock()
	if answer != nil {
		return answer(call)
	}
	return nil
}

// will changes the answer of a sink that is in use.
func (s *sink) will(answer func(call int) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *sink) took(producer string, counter int64) {
	if s.counters == nil {
		s.counters = map[string][]int64{}
	}
	s.counters[producer] = append(s.counters[producer], counter)
}

// of are the counters of a producer's rows, in the order in which they came.
func (s *sink) of(producer string) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counters[producer]
}

func (s *sink) total() (rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, counters := range s.counters {
		rows += len(counters)
	}
	return rows
}

func (s *sink) logs(t testing.TB) consumer.Logs {
	next, err := consumer.NewLogs(func(_ context.Context, logs plog.Logs) error {
		if err := s.asked(); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.allLogs = append(s.allLogs, logs)
		for _, resource := range logs.ResourceLogs().All() {
			producer := fpm.SourceOf(resource.Resource()).ProducerID
			for _, scope := range resource.ScopeLogs().All() {
				for _, entry := range scope.LogRecords().All() {
					counter, _ := entry.Body().Map().Get("counter_id")
					s.took(producer, counter.Int())
				}
			}
		}
		return nil
	})
	require.NoError(t, err)
	return next
}

func (s *sink) metrics(t testing.TB) consumer.Metrics {
	next, err := consumer.NewMetrics(func(_ context.Context, metrics pmetric.Metrics) error {
		if err := s.asked(); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all = append(s.all, metrics)
		for _, resource := range metrics.ResourceMetrics().All() {
			producer := fpm.SourceOf(resource.Resource()).ProducerID
			for _, scope := range resource.ScopeMetrics().All() {
				for _, metric := range scope.Metrics().All() {
					if metric.Name() == fpm.MetricMessages {
						for _, point := range metric.Sum().DataPoints().All() {
							s.took(producer, point.IntValue())
						}
					}
				}
			}
		}
		return nil
	})
	require.NoError(t, err)
	return next
}

// expect asserts that both sinks have just these rows of a producer.
func (r *rig) expect(producer string, counters []int64) {
	r.t.Helper()
	for name, s := range map[string]*sink{"metrics": r.metrics, "logs": r.logs} {
		if s != nil {
			assert.Equal(r.t, counters, s.of(producer), "%s of %s", name, producer)
		}
	}
}

// sum adds a counter's points up, those with the given values of attributes.
func (r *rig) sum(name string, values ...string) (total int64) {
	r.t.Helper()
	found, err := r.telemetry.GetMetric("otelcol_receiver_fpm_trace_" + name)
	if err != nil {
		return 0 // nothing was counted
	}
points:
	for _, point := range found.Data.(metricdata.Sum[int64]).DataPoints {
		for _, value := range values {
			has := false
			for _, attribute := range point.Attributes.ToSlice() {
				has = has || attribute.Value.AsString() == value
			}
			if !has {
				continue points
			}
		}
		total += point.Value
	}
	return total
}

// checkLedger holds the receiver to the invariant of ledger.
func (r *rig) checkLedger() {
	r.t.Helper()
	accepted := r.sum("rows", "accepted") + r.sum("rows", "no_envelope")
	assert.Equal(r.t, r.sum("rows", "rejected"), r.sum("rejected"), "rejected")
	for name, s := range map[string]*sink{"metrics": r.metrics, "logs": r.logs} {
		if s != nil {
			assert.Equal(r.t, accepted, r.sum("delivered", name)+r.sum("dropped", name), "delivered and dropped, %s", name)
			assert.Equal(r.t, r.sum("delivered", name), int64(s.total()), "delivered, %s", name)
		}
	}
}

// messages are the log lines at or above a level whose text contains part.
func (r *rig) messages(part string) (lines []observer.LoggedEntry) {
	for _, entry := range r.said.All() {
		if strings.Contains(entry.Message, part) {
			lines = append(lines, entry)
		}
	}
	return lines
}

// statusHost remembers the status that was reported.
type statusHost struct {
	extensions map[component.ID]component.Component
	mu         sync.Mutex
	events     []*componentstatus.Event
}

func (h *statusHost) GetExtensions() map[component.ID]component.Component { return h.extensions }

func (h *statusHost) Report(event *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, event)
}

func (h *statusHost) reported() (all []componentstatus.Status) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, event := range h.events {
		all = append(all, event.Status())
	}
	return all
}

var errNotNow = errors.New("not now")

// once sets mode once.
func once(c *Config) { c.Mode = modeOnce }

// withStorage sets a storage.
func withStorage(c *Config) { c.Storage = &storageID }

// storedKeys lists what the storage holds.
func storedKeys(t testing.TB, r *rig) (keys []string) {
	t.Helper()
	walker := r.core.reader.store.client.(storage.Walker)
	require.NoError(t, walker.Walk(context.Background(), func(key string, _ []byte) ([]*storage.Operation, error) {
		keys = append(keys, key)
		return nil, nil
	}))
	return keys
}
