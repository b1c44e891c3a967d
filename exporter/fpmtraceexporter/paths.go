// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"fmt"
	"path/filepath"
	"sync"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-fpm/otelcol-fpm/internal/segment"
)

// paths are the base paths that exporters of this process write to. Two
// exporters with the same one would prune each other's segments.
var paths = struct {
	mu    sync.Mutex
	owner map[string]component.ID
}{owner: map[string]component.ID{}}

// claimPath takes a configured path for an exporter, and returns how to give
// it back.
func claimPath(path string, id component.ID) (release func(), err error) {
	base, err := filepath.Abs(segment.Base(path))
	if err != nil {
		return nil, fmt.Errorf("path: %w", err)
	}
	paths.mu.Lock()
	defer paths.mu.Unlock()
	if owner, taken := paths.owner[base]; taken {
		return nil, fmt.Errorf("path: %s is written by the exporter %s already, each needs a path of its own", base, owner)
	}
	paths.owner[base] = id
	return func() {
		paths.mu.Lock()
		defer paths.mu.Unlock()
		delete(paths.owner, base)
	}, nil
}
