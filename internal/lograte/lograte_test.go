// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package lograte

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestOneLineInTenSecondsForEachSourceAndReason(t *testing.T) {
	var limiter Limiter
	start := time.Unix(1_700_000_000, 0)
	key := Key{Source: "tcp://127.0.0.1:20380", Reason: "malformed"}

	show, hidden := limiter.Allow(key, start)
	assert.True(t, show)
	assert.Zero(t, hidden)
	for i := range 7 {
		show, _ = limiter.Allow(key, start.Add(time.Duration(i)*time.Second))
		assert.False(t, show)
	}
	show, _ = limiter.Allow(Key{Source: key.Source, Reason: "envelope"}, start)
	assert.True(t, show, "another reason has a line of its own")
	show, _ = limiter.Allow(key, start.Add(Interval-1))
	assert.False(t, show)
	show, hidden = limiter.Allow(key, start.Add(Interval))
	assert.True(t, show)
	assert.Equal(t, 8, hidden)
}

func TestKeysAreBounded(t *testing.T) {
	var limiter Limiter
	now := time.Unix(1_700_000_000, 0)
	for i := range maxKeys {
		limiter.Allow(Key{Source: strconv.Itoa(i)}, now)
	}
	show, _ := limiter.Allow(Key{Source: "first beyond"}, now)
	assert.True(t, show)
	show, _ = limiter.Allow(Key{Source: "second beyond"}, now)
	assert.False(t, show, "keys beyond the bound share one slot")
	assert.LessOrEqual(t, len(limiter.lines), maxKeys+1)
}
