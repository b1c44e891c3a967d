// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// TestStoreListsItsKeys: every key of a file is in the list, also of files that
// came and went.
func TestStoreListsItsKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, withStorage)
		r.start()
		for i := range 5 {
			r.append(r.path("p", i), rows(int64(i), int64(i)+1))
			r.settle()
			assert.Len(t, storedKeys(t, r), i+2)
		}
		known, resumed, damaged, err := r.core.reader.store.load(context.Background())
		require.NoError(t, err)
		assert.True(t, resumed)
		assert.Empty(t, damaged)
		assert.Len(t, known, 5)
		r.stop()
	})
}

// brokenStorage is a storage extension whose clients fail to write while broken.
type brokenStorage struct {
	extension.Extension
	broken atomic.Bool
}

type brokenClient struct {
	storage.Client
	of *brokenStorage
}

func (b *brokenStorage) GetClient(ctx context.Context, kind component.Kind, id component.ID, name string) (storage.Client, error) {
	client, err := b.Extension.(storage.Extension).GetClient(ctx, kind, id, name)
	return brokenClient{client, b}, err
}

func (c brokenClient) Batch(ctx context.Context, operations ...*storage.Operation) error {
	if c.of.broken.Load() {
		return errors.New("no space left on device")
	}
	return c.Client.Batch(ctx, operations...)
}

// TestStorageThatFails: reading goes on, a status tells, and positions are stored
// as soon as that is possible again, also when nothing more is read.
func TestStorageThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, withStorage)
		broken := &brokenStorage{}
		broken.broken.Store(true)
		r.wrapStorage = func(real extension.Extension) extension.Extension {
			broken.Extension = real
			return broken
		}
		r.append(r.path("p", 0), rows(0, 5), rows(5, 10))
		r.append(r.path("q", 0), rowsOf("q", 0, 5))
		r.start()
		r.settle()
		r.expect("p", span(0, 10))
		assert.Equal(t, componentstatus.StatusRecoverableError, r.host.reported()[0])
		require.NotEmpty(t, r.messages("positions cannot be stored"))
		require.NoError(t, os.Remove(r.path("q", 0)))
		time.Sleep(forgetAfter + time.Minute) // forgotten before it was ever stored
		broken.broken.Store(false)
		r.settle()
		reported := r.host.reported()
		assert.Equal(t, componentstatus.StatusOK, reported[len(reported)-1])
		r.stop()

		again := rigIn(t, r.dir, withStorage).start()
		again.settle()
		assert.Zero(t, again.logs.total())
		assert.Equal(t, []string{keyPerFile + r.path("p", 0), keyFiles}, storedKeys(t, again))
		again.stop()
	})
}

// TestListKeepsWhatIsNotSeen: a file in a directory that cannot be searched after
// a restart keeps its position, also when the list changes meanwhile.
func TestListKeepsWhatIsNotSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, withStorage)
		other := filepath.Join(r.dir, "other")
		both := func(c *Config) {
			withStorage(c)
			c.Include = []string{filepath.Join(r.dir, "*.jsonl.gz"), filepath.Join(other, "*.jsonl.gz")}
		}
		both(r.cfg)
		require.NoError(t, os.Mkdir(other, 0o755))
		r.append(filepath.Join(other, "fpm.q.000000.jsonl.gz"), rowsOf("q", 0, 5))
		r.start()
		r.settle()
		r.expect("q", span(0, 5))
		r.stop()

		require.NoError(t, os.Rename(other, other+".away"))
		require.NoError(t, os.WriteFile(other, nil, 0o600)) // cannot be searched
		again := rigIn(t, r.dir, both)
		again.append(again.path("p", 0), rows(0, 5))
		again.start()
		again.settle()
		again.expect("p", span(0, 5))
		again.stop()

		require.NoError(t, os.Remove(other))
		require.NoError(t, os.Rename(other+".away", other))
		last := rigIn(t, r.dir, both).start()
		last.settle()
		assert.Zero(t, last.logs.total())
		last.stop()
	})
}

// TestDamagedPosition: the file is read from its beginning, and the log says so.
func TestDamagedPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, withStorage)
		r.append(r.path("p", 0), rows(0, 5))
		r.append(r.path("q", 0), rowsOf("q", 0, 5))
		r.start()
		r.settle()
		require.NoError(t, r.core.reader.store.client.Set(context.Background(), keyPerFile+r.path("p", 0), []byte("{")))
		r.stop()

		again := rigIn(t, r.dir, withStorage).start()
		again.settle()
		again.expect("p", span(0, 5))
		again.expect("q", nil)
		require.Len(t, again.messages("is damaged"), 1)
		again.stop()
	})
}
