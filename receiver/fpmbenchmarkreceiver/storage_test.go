// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/benchmarktest"
)

var storageID = component.MustNewID("file_storage")

func withStorage(c *Config) {
	c.Storage, c.PollInterval, c.Settle = &storageID, 5*time.Millisecond, 0
}

// fileStorage is the real extension.
func fileStorage(t *testing.T, folder string) component.Component {
	t.Helper()
	factory := filestorage.NewFactory()
	config := factory.CreateDefaultConfig().(*filestorage.Config)
	config.Directory, config.Timeout = folder, 100*time.Millisecond
	settings := extensiontest.NewNopSettings(factory.Type())
	extension, err := factory.Create(t.Context(), settings, config)
	require.NoError(t, err)
	require.NoError(t, extension.Start(t.Context(), newHost()))
	return extension
}

// With the storage a run is delivered once, however often the Collector starts;
// without it again after each start.
func TestDeliveredRunsSurviveARestart(t *testing.T) {
	for name, stored := range map[string]bool{"with storage": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			folder, state := t.TempDir(), t.TempDir()
			benchmarktest.New(benchmarktest.Options{RunID: "first"}).Write(t, folder)
			delivered := 0
			for start := range 3 {
				edits := []func(*Config){withStorage}
				if !stored {
					edits = append(edits, func(c *Config) { c.Storage = nil })
				}
				g := newRig(t, folder, edits...)
				extension := fileStorage(t, state)
				g.host.extensions = map[component.ID]component.Component{storageID: extension}
				if start == 2 {
					// A run that comes while the others are known.
					second := benchmarktest.New(benchmarktest.Options{RunID: "second", Ranks: 1, NoEngine: true})
					second.Ranks = nil
					benchmarktest.WriteFile(t, filepath.Join(folder, "second.json"), second.Merged.JSON())
				}
				g.startAndStop()
				for _, p := range named(g.metrics.points(), "fpm.benchmark.valid") {
					if p.resource["fpm.benchmark.run_id"] == "first" {
						delivered++
					}
				}
				if stored && start > 0 {
					assert.Equal(t, int64(4), g.counts("files")["ignored"])
				}
				require.NoError(t, extension.Shutdown(context.Background()), "the client is closed: the files are free")
			}
			assert.Equal(t, map[bool]int{true: 1, false: 3}[stored], delivered)
		})
	}
}

// startAndStop starts, waits until the files of the folder were looked into and
// what is due is delivered, and stops. It is for use outside of a bubble.
func (g *rig) startAndStop() {
	t := g.t
	t.Helper()
	factory, settings := NewFactory(), g.settings()
	metrics, err := factory.CreateMetrics(t.Context(), settings, g.config, g.metrics)
	require.NoError(t, err)
	require.NoError(t, metrics.Start(t.Context(), g.host))
	entries, err := os.ReadDir(g.folder)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		files, runs := g.counts("files"), g.counts("runs")
		looked := files["taken"] + files["ignored"]
		return looked >= int64(len(entries)) && (files["taken"] == 0 || runs["valid"] > 0)
	}, 10*time.Second, 5*time.Millisecond)
	time.Sleep(20 * time.Millisecond)
	require.NoError(t, metrics.Shutdown(context.Background()))
}

func TestStorageThatIsNone(t *testing.T) {
	for name, test := range map[string]struct {
		extensions map[component.ID]component.Component
		want       string
	}{
		"not there": {nil, "storage: got file_storage, want an extension that service::extensions lists"},
		"another kind": {
			map[component.ID]component.Component{storageID: struct {
				component.StartFunc
				component.ShutdownFunc
			}{}},
			"storage: got file_storage, want a storage extension such as file_storage",
		},
		"fails": {
			map[component.ID]component.Component{storageID: &fakeStorage{err: errors.New("disk on fire")}},
			"storage file_storage: disk on fire",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, t.TempDir(), withStorage)
			g.host.extensions = test.extensions
			r, err := NewFactory().CreateMetrics(t.Context(), g.settings(), g.config, g.metrics)
			require.NoError(t, err)
			require.EqualError(t, r.Start(t.Context(), g.host), test.want)
			require.NoError(t, r.Shutdown(t.Context()))
		})
	}
}

// fakeStorage fails as it is told.
type fakeStorage struct {
	component.StartFunc
	component.ShutdownFunc
	err    error
	closed bool

	mu             sync.Mutex
	getErr, setErr error
	values         map[string][]byte
}

// fail makes Get and Set fail from now on, or not.
func (s *fakeStorage) fail(getErr, setErr error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.getErr, s.setErr = getErr, setErr
}

func (s *fakeStorage) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return s, s.err
}

func (s *fakeStorage) Get(_ context.Context, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[key], s.getErr
}

func (s *fakeStorage) Set(_ context.Context, key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.setErr == nil {
		s.values[key] = value
	}
	return s.setErr
}

func (*fakeStorage) Delete(context.Context, string) error               { return nil }
func (*fakeStorage) Batch(context.Context, ...*storage.Operation) error { return nil }

func (s *fakeStorage) Close(context.Context) error {
	s.closed = true
	return nil
}

// While nobody can say whether a run was delivered, it is not.
func TestStorageThatCannotBeRead(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		benchmarktest.New(benchmarktest.Options{}).Write(t, folder)
		fake := &fakeStorage{getErr: errors.New("disk on fire"), values: map[string][]byte{}}
		g := newRig(t, folder, func(c *Config) { c.Storage = &storageID })
		g.host.extensions = map[component.ID]component.Component{storageID: fake}
		g.start()
		g.pass(time.Hour)
		assert.Empty(t, g.counts("runs"))
		assert.Empty(t, g.counts("files"))
		r := g.receivers[0].(*benchmarkReceiver)
		assert.Len(t, r.unasked, 4, "read once")
		assert.Equal(t, componentstatus.StatusRecoverableError, g.host.statuses()[0])
		fake.fail(nil, nil)
		g.pass(time.Minute)
		g.stop()
		assert.Equal(t, counts{"valid": 1}, g.counts("runs"))
		assert.Equal(t, componentstatus.StatusOK, g.host.statuses()[len(g.host.statuses())-1])
		assert.True(t, fake.closed)
		assert.Empty(t, r.unasked)
		assert.Contains(t, fake.values, "delivered/3f6a0c1e9b2d4e7f8a5b6c7d8e9f0a1b")
	})
}

// A storage that cannot be written costs a second delivery after a restart; that
// is said, and it is tried until it works.
func TestStorageThatCannotBeWritten(t *testing.T) {
	inBubble(t, func(t *testing.T, folder string) {
		benchmarktest.New(benchmarktest.Options{}).Write(t, folder)
		fake := &fakeStorage{setErr: errors.New("disk full"), values: map[string][]byte{}}
		g := newRig(t, folder, func(c *Config) { c.Storage = &storageID })
		g.host.extensions = map[component.ID]component.Component{storageID: fake}
		g.start()
		g.pass(time.Minute)
		assert.Equal(t, counts{"valid": 1}, g.counts("runs"), "once while it runs")
		assert.Equal(t, componentstatus.StatusRecoverableError, g.host.statuses()[0])
		assert.NotZero(t, g.lines.FilterMessageSnippet("after a restart they are delivered again").Len())
		fake.fail(nil, nil)
		g.pass(time.Minute)
		g.stop()
		assert.Len(t, fake.values, 1)
		assert.Equal(t, componentstatus.StatusOK, g.host.statuses()[len(g.host.statuses())-1])
	})
}

func TestRememberedRunsAreBounded(t *testing.T) {
	d := newDelivered()
	name := func(i int) string { return string(rune(i)) }
	for i := range maxRemembered + 10 {
		d.add(name(i+0x10000), time.Time{})
	}
	assert.Len(t, d.runs, maxRemembered)
	assert.Len(t, d.order, maxRemembered)
	oldest, err := d.has(t.Context(), name(0x10000))
	require.NoError(t, err)
	assert.False(t, oldest, "the oldest is forgotten first")
}
