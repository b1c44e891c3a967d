// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package shared_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/internal/shared"
)

type config struct{ endpoint string }

type instance struct{ forget func() }

func create(forget func()) *instance { return &instance{forget} }

func TestOneInstanceAConfiguration(t *testing.T) {
	var instances shared.Instances[*instance]
	of := func(c *config) *instance { return instances.Of(c, create) }
	one, equal := &config{"tcp://gpu-7:20380"}, &config{"tcp://gpu-7:20380"}
	first, other := of(one), of(equal)
	assert.Same(t, first, of(one), "the same configuration")
	assert.NotSame(t, first, other, "an equal one is another")

	first.forget()
	second := of(one)
	assert.NotSame(t, first, second, "forgotten")
	assert.Same(t, other, of(equal), "the others are not")
	first.forget()
	assert.Same(t, second, of(one), "an instance forgets only itself")
}

func TestConcurrentSignals(t *testing.T) {
	var (
		instances shared.Instances[*instance]
		signals   sync.WaitGroup
		got       [8]*instance
		of        = &config{}
	)
	for i := range got {
		signals.Go(func() { got[i] = instances.Of(of, create) })
	}
	signals.Wait()
	require.NotNil(t, got[0])
	for _, one := range got {
		assert.Same(t, got[0], one)
	}
}
