// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// Keys in the storage: the list of all files that have a key of their own, and
// the prefix of those.
const (
	keyFiles   = "files"
	keyPerFile = "file:"
)

// store keeps positions over a restart. Without an extension it keeps nothing.
//
// Invariant (TestStoreListsItsKeys): every key of a file is in the list, so that
// none is left behind when its file is gone.
type store struct {
	client storage.Client // nil without an extension
}

// saved is what is stored of a file.
type saved struct {
	Head    head     `json:"head"`
	Metrics position `json:"metrics"`
	Logs    position `json:"logs"`
	// Lines is the number of lines in front of the member at the first of the two
	// positions; -1 when it is not known.
	Lines int64 `json:"line_count"`
}

// openStore gets a client from the storage extension of the configuration.
func openStore(ctx context.Context, host component.Host, id *component.ID, own component.ID) (*store, error) {
	if id == nil {
		return &store{}, nil
	}
	extension, ok := host.GetExtensions()[*id]
	if !ok {
		return nil, fmt.Errorf("storage: got %q, want a storage extension that is listed under service::extensions", id)
	}
	storages, ok := extension.(storage.Extension)
	if !ok {
		return nil, fmt.Errorf("storage: got %q, want a storage extension: that one is none", id)
	}
	client, err := storages.GetClient(ctx, component.KindReceiver, own, "")
	if err != nil {
		return nil, fmt.Errorf("storage %q: %w", id, err)
	}
	return &store{client: client}, nil
}

// load reads what an earlier run has stored. resumed reports that there was one.
// damaged are the paths whose entry could not be read.
func (s *store) load(ctx context.Context) (known map[string]saved, resumed bool, damaged []string, err error) {
	known = map[string]saved{}
	if s.client == nil {
		return known, false, nil, nil
	}
	list, err := s.client.Get(ctx, keyFiles)
	if err != nil || list == nil {
		return known, false, nil, err
	}
	var paths []string
	if err := json.Unmarshal(list, &paths); err != nil {
		return known, false, nil, fmt.Errorf("the list of files: %w", err)
	}
	for _, path := range paths {
		text, err := s.client.Get(ctx, keyPerFile+path)
		if err != nil {
			return known, true, damaged, err
		}
		if text == nil {
			continue // listed, and nothing was read before the end
		}
		var entry saved
		if err := json.Unmarshal(text, &entry); err != nil {
			damaged = append(damaged, path)
			continue
		}
		known[path] = entry
	}
	return known, true, damaged, nil
}

// list stores which files there are, and removes the keys of those that are
// forgotten.
func (s *store) list(ctx context.Context, paths, forgotten []string) error {
	if s.client == nil {
		return nil
	}
	text, err := json.Marshal(paths)
	if err != nil {
		return err
	}
	operations := []*storage.Operation{storage.SetOperation(keyFiles, text)}
	for _, path := range forgotten {
		operations = append(operations, storage.DeleteOperation(keyPerFile+path))
	}
	return s.client.Batch(ctx, operations...)
}

// save stores the positions of files, all or none.
func (s *store) save(ctx context.Context, files []*file) error {
	if s.client == nil || len(files) == 0 {
		return nil
	}
	operations := make([]*storage.Operation, 0, len(files))
	for _, f := range files {
		text, err := json.Marshal(saved{Head: f.head, Metrics: f.taken[signalMetrics], Logs: f.taken[signalLogs], Lines: f.lines})
		if err != nil {
			return err
		}
		operations = append(operations, storage.SetOperation(keyPerFile+f.path, text))
	}
	return s.client.Batch(ctx, operations...)
}

func (s *store) close(ctx context.Context) error {
	if s.client == nil {
		return nil
	}
	return s.client.Close(ctx)
}

// resume puts a file where an earlier run has left it.
func (f *file) resume(entry saved) {
	f.head = entry.Head
	f.taken = positions{signalMetrics: entry.Metrics, signalLogs: entry.Logs}
	f.cursor = f.taken.first()
	f.lines = entry.Lines
}

var errNoPositions = errors.New("positions cannot be stored: rows will be read again after a restart")
