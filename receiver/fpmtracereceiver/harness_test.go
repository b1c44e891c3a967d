// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
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
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

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
	factory := NewFactory()
	if r.metrics != nil {
		part, err := factory.CreateMetrics(context.Background(), r.settings, r.cfg, r.metrics.metrics(r.t))
		require.NoError(r.t, err)
		r.parts = append(r.parts, part)
	}
	if r.logs != nil {
		part, err := factory.CreateLogs(context.Background(), r.settings, r.cfg, r.logs.logs(r.t))
		require.NoError(r.t, err)
		r.parts = append(r.parts, part)
	}
	r.core = r.parts[0].(*traceReceiver)
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
