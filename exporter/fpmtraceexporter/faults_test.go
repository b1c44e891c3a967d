// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"sync"

	"github.com/otelcol-fpm/otelcol-fpm/internal/segment"
)

// faults is the operating system's file system with hooks that fail or block;
// nil hooks do nothing.
type faults struct {
	segment.OS
	mu                             sync.Mutex
	create, write, sync, removeAny func() error
}

// set changes hooks while the exporter runs.
func (f *faults) set(change func(f *faults)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// ask runs a hook outside the lock: it may block.
func (f *faults) ask(which func(f *faults) func() error) error {
	f.mu.Lock()
	hook := which(f)
	f.mu.Unlock()
	if hook == nil {
		return nil
	}
	return hook()
}

func (f *faults) Create(name string) (segment.File, error) {
	if err := f.ask(func(f *faults) func() error { return f.create }); err != nil {
		return nil, err
	}
	file, err := f.OS.Create(name)
	if err != nil {
		return nil, err
	}
	return &faultyFile{File: file, faults: f}, nil
}

func (f *faults) Remove(name string) error {
	if err := f.ask(func(f *faults) func() error { return f.removeAny }); err != nil {
		return err
	}
	return f.OS.Remove(name)
}

type faultyFile struct {
	segment.File
	faults *faults
}

func (f *faultyFile) Write(data []byte) (int, error) {
	if err := f.faults.ask(func(f *faults) func() error { return f.write }); err != nil {
		n, _ := f.File.Write(data[:len(data)/2])
		return n, err
	}
	return f.File.Write(data)
}

func (f *faultyFile) Sync() error {
	if err := f.faults.ask(func(f *faults) func() error { return f.sync }); err != nil {
		return err
	}
	return f.File.Sync()
}
