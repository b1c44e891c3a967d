// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
)

// instance is one exporter and the handles of its signals: the first start
// starts it, the last shutdown of a started handle ends it.
type instance struct {
	exporter *traceExporter
	forget   func()

	mu      sync.Mutex
	started int // handles
}

// handle is one signal's hold on an instance.
type handle struct {
	*instance
	holds bool // started, and not shut down
}

func (h *handle) start(_ context.Context, host component.Host) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.started == 0 {
		if err := h.exporter.start(); err != nil {
			return err
		}
	}
	h.exporter.status.add(host)
	h.started++
	h.holds = true
	return nil
}

func (h *handle) shutdown(ctx context.Context) error {
	h.mu.Lock()
	held := h.holds
	if held {
		h.holds = false
		h.started--
	}
	last := h.started == 0
	h.mu.Unlock()
	if !last {
		return nil
	}
	h.forget()
	if !held {
		return nil
	}
	return h.exporter.shutdown(ctx)
}
