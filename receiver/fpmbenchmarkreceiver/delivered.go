// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmbenchmarkreceiver

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

const (
	// storageKey is before the run id in the keys of the storage; the value is
	// when the run was done.
	storageKey = "delivered/"
	// maxRemembered is how many runs are remembered without the storage; the
	// oldest is forgotten first.
	maxRemembered = 65536
)

// delivered are the runs that are done. With a storage none is ever forgotten:
// a run takes a few dozen bytes there.
type delivered struct {
	client storage.Client // nil without a storage
	runs   map[string]struct{}
	order  []string
	// unsaved are the runs that the storage does not have yet.
	unsaved []*storage.Operation
}

func newDelivered() *delivered { return &delivered{runs: make(map[string]struct{})} }

// open gets the client of the configured storage.
func (d *delivered) open(ctx context.Context, host component.Host, id *component.ID, receiver component.ID) error {
	if id == nil {
		return nil
	}
	extension, found := host.GetExtensions()[*id]
	if !found {
		return fmt.Errorf("storage: got %s, want an extension that service::extensions lists", id)
	}
	storages, ok := extension.(storage.Extension)
	if !ok {
		return fmt.Errorf("storage: got %s, want a storage extension such as file_storage", id)
	}
	client, err := storages.GetClient(ctx, component.KindReceiver, receiver, "")
	if err != nil {
		return fmt.Errorf("storage %s: %w", id, err)
	}
	d.client = client
	return nil
}

// has reports whether a run is done.
func (d *delivered) has(ctx context.Context, run string) (bool, error) {
	if _, known := d.runs[run]; known || d.client == nil {
		return known, nil
	}
	at, err := d.client.Get(ctx, storageKey+run)
	return at != nil, err
}

// add notes that a run is done; flush stores it.
func (d *delivered) add(run string, now time.Time) {
	if _, known := d.runs[run]; known {
		return
	}
	if len(d.order) >= maxRemembered {
		delete(d.runs, d.order[0])
		d.order = d.order[1:]
	}
	d.runs[run] = struct{}{}
	d.order = append(d.order, run)
	if d.client != nil {
		d.unsaved = append(d.unsaved, storage.SetOperation(storageKey+run, []byte(now.UTC().Format(time.RFC3339))))
	}
}

// flush stores what is not stored yet. What stays so is delivered again after a
// restart.
func (d *delivered) flush(ctx context.Context) error {
	for len(d.unsaved) > 0 {
		if err := d.client.Set(ctx, d.unsaved[0].Key, d.unsaved[0].Value); err != nil {
			return err
		}
		d.unsaved = d.unsaved[1:]
	}
	return nil
}

func (d *delivered) close(ctx context.Context) error {
	if d.client == nil {
		return nil
	}
	return d.client.Close(ctx)
}
