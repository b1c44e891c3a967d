// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package shared lets the signals of one component share one instance.
//
// The Collector creates a component once for each signal that it has pipelines
// of, each time with the same configuration. A component that has one socket or
// one set of files, whatever the number of signals, asks its Instances for the
// one of the configuration, and has it forgotten when it ends.
package shared

import (
	"sync"

	"go.opentelemetry.io/collector/component"
)

// Instances are the instances of one factory, by configuration. The zero value
// has none. It is safe for concurrent use.
//
// Invariant (TestOneInstanceAConfiguration): a configuration has one instance
// from its creation until it is forgotten, and an instance forgets only itself.
type Instances[T any] struct {
	mu       sync.Mutex
	byConfig map[component.Config]T
}

// Of returns the instance of a configuration, which is a pointer. Where there is
// none it has one made by create, which gives it forget to call when it shuts
// down; more calls do nothing.
func (i *Instances[T]) Of(config component.Config, create func(forget func()) T) T {
	i.mu.Lock()
	defer i.mu.Unlock()
	if instance, ok := i.byConfig[config]; ok {
		return instance
	}
	if i.byConfig == nil {
		i.byConfig = make(map[component.Config]T)
	}
	instance := create(sync.OnceFunc(func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.byConfig, config)
	}))
	i.byConfig[config] = instance
	return instance
}
