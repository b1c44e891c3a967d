// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

func TestNextTime(t *testing.T) {
	const now = pcommon.Timestamp(1_700_000_000_000_000_000)
	for name, test := range map[string]struct{ last, own, want pcommon.Timestamp }{
		"first pass":                 {0, now, now},
		"long after":                 {now - 5*ms, now, now},
		"exactly spaced":             {now - ms, now, now},
		"too close":                  {now - 1, now, now - 1 + ms},
		"equal":                      {now, now, now + ms},
		"clock stepped back a bit":   {now + 500*ms, now, now + 501*ms},
		"spacing reaches the limit":  {now + 999*ms, now, now + 1000*ms},
		"spacing would pass it":      {now + 1000*ms, now, now + 1000*ms + 1},
		"clock stepped back an hour": {now + 3600_000*ms, now, now + 3600_000*ms + 1},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.want, NextTime(test.last, test.own)) })
	}
}

func TestTimesStrictlyIncrease(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	clock := pcommon.Timestamp(1_700_000_000_000_000_000)
	var last pcommon.Timestamp
	for range 100_000 {
		clock += pcommon.Timestamp(random.Int64N(int64(2*time.Millisecond))) - pcommon.Timestamp(500*time.Microsecond)
		next := NextTime(last, clock)
		assert.Greater(t, next, last)
		assert.GreaterOrEqual(t, next, clock)
		start := StartBefore(last, next)
		assert.Less(t, start, next)
		assert.GreaterOrEqual(t, start, last)
		last = next
	}
}
