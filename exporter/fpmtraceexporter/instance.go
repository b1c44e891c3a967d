// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
)

// instances finds the exporter of a configuration. The Collector hands the
// same *Config to the creation of each signal of one component.
type instances struct {
	mu       sync.Mutex
	byConfig map[*Config]*instance
}

// instance is one exporter and the handles of its signals: the first start
// starts it, the last shutdown of a started handle ends it.
type instance struct {
	owner    *instances
	exporter *traceExporter
	started  int
}

// handle is one signal's hold on an instance.
type handle struct {
	instance *instance
	started  bool
}

func (i *instances) handle(set exporter.Settings, cfg *Config) (*handle, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	found := i.byConfig[cfg]
	if found == nil {
		made, err := newTraceExporter(set, cfg)
		if err != nil {
			return nil, err
		}
		found = &instance{owner: i, exporter: made}
		i.byConfig[cfg] = found
	}
	return &handle{instance: found}, nil
}

func (h *handle) exporter() *traceExporter { return h.instance.exporter }

func (h *handle) start(_ context.Context, host component.Host) error {
	i := h.instance
	i.owner.mu.Lock()
	defer i.owner.mu.Unlock()
	if i.started == 0 {
		if err := i.exporter.start(); err != nil {
			return err
		}
	}
	i.exporter.status.add(host)
	i.started++
	h.started = true
	return nil
}

func (h *handle) shutdown(ctx context.Context) error {
	i := h.instance
	i.owner.mu.Lock()
	if !h.started {
		if i.started == 0 {
			delete(i.owner.byConfig, i.exporter.cfg)
		}
		i.owner.mu.Unlock()
		return nil
	}
	h.started = false
	i.started--
	last := i.started == 0
	if last {
		delete(i.owner.byConfig, i.exporter.cfg)
	}
	i.owner.mu.Unlock()
	if !last {
		return nil
	}
	return i.exporter.shutdown(ctx)
}
