// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

const every = 2 * time.Millisecond

// evenMoment is one that all readers are woken at.
var evenMoment = time.Unix(1_800_000_000, 0)

// All pollers look at the same moments, at most one apart.
func TestMomentsAreTheSameForAll(t *testing.T) {
	r := rhythm{every: every}
	for _, early := range []time.Duration{every, every - 1, every / 2, 1} {
		assert.Equal(t, early, r.pause(evenMoment.Add(-early)))
		assert.Equal(t, early, r.pause(evenMoment.Add(every-early)))
	}
}

// Who was woken at the even moment before is not woken at an odd one; all are at even ones.
func TestFastPeersAreReadAtEvenMoments(t *testing.T) {
	for _, test := range []struct {
		since time.Duration // the even moment
		woken int64         // moments ago
		want  bool
	}{
		{0, 1, false},
		{0, 2, false},
		{every, 1, true},
		{every + every/2, 1, true},
		{every, 2, false},
		{every, 3, false},
		{every, 0, false},
	} {
		r := rhythm{every: every}
		r.look(evenMoment.Add(test.since))
		assert.Equal(t, test.want, r.defers(r.moment-test.woken), "%+v", test)
	}
}

// When all but one are deferred at an odd moment some of the next ones are left out; then one is looked at again.
func TestIdleOddMomentsAreLeftOut(t *testing.T) {
	for _, test := range []struct {
		name            string
		at              time.Duration
		woken, deferred int
		skips           bool
	}{
		{"all deferred", every, 0, 8, true},
		{"one is slower", every, 1, 8, true},
		{"two are slower", every, 2, 8, false},
		{"one is all there is", every, 1, 0, true},
		{"nothing came", every, 0, 0, true},
		{"even", 0, 8, 0, false},
		{"even, deferred before", 0, 0, 1, false},
	} {
		r := rhythm{every: every}
		now := evenMoment.Add(test.at)
		r.look(now)
		r.looked(now, test.woken, test.deferred)
		skipped := 0
		for now = evenMoment; r.pause(now) == 2*every; now = now.Add(2 * every) {
			skipped++
		}
		want := 0
		if test.skips {
			want = skippedMoments
		}
		assert.Equal(t, want, skipped, test.name)
		assert.Equal(t, every, r.pause(now), test.name)
	}
}

// A message long after the one before has the poller wait, one soon after has it look.
func TestQuickSuccession(t *testing.T) {
	r := rhythm{every: every}
	assert.False(t, r.quick(evenMoment), "the first message of all")
	r.looked(evenMoment, 1, 0)
	for after, want := range map[time.Duration]bool{1: true, every: true, 2 * every: true, 2*every + 1: false, time.Hour: false} {
		assert.Equal(t, want, r.quick(evenMoment.Add(after)), "after %v", after)
	}
	r.looked(evenMoment.Add(every), 0, 0)
	assert.False(t, r.quick(evenMoment.Add(2*every+1)), "nothing came to the last look")
	r.looked(evenMoment.Add(every), 0, 1)
	assert.True(t, r.quick(evenMoment.Add(3*every)))
}
