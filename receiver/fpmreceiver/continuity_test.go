// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// reconnect stands between counters for a new connection.
const reconnect = -1

func TestContinuity(t *testing.T) {
	for name, test := range map[string]struct {
		counters []int64
		want     []step
	}{
		"next is fine":             {[]int64{7, 8, 9}, []step{{}, {}, {}}},
		"first counter is no loss": {[]int64{500}, []step{{}}},
		"gap of the difference":    {[]int64{0, 5}, []step{{}, {lost: 4}}},
		"duplicate":                {[]int64{3, 3, 4}, []step{{}, {duplicate: true}, {}}},
		"restart is no loss": {
			[]int64{499, 500, 0, 1},
			[]step{{}, {}, {restart: true, rebase: true}, {}},
		},
		"restart, then a gap below the old mark": {
			[]int64{100, 0, 5},
			[]step{{}, {restart: true, rebase: true}, {lost: 4}},
		},
		"restart, then a gap over the old mark": {
			[]int64{100, 98, 103},
			[]step{{}, {restart: true, rebase: true}, {lost: 4}},
		},
		"a restarted publisher passes the old mark step by step": {
			[]int64{2, 0, 1, 2, 3, 4},
			[]step{{}, {restart: true, rebase: true}, {}, {}, {}, {}},
		},
		"gap over a reconnect":     {[]int64{10, reconnect, 13}, []step{{}, {lost: 2}}},
		"restart over a reconnect": {[]int64{10, reconnect, 0}, []step{{}, {restart: true, rebase: true}}},
		"restart over a reconnect at the same counter": {
			[]int64{0, reconnect, 0, 1},
			[]step{{}, {restart: true, rebase: true}, {}},
		},
		"a duplicate later on the new connection": {
			[]int64{10, reconnect, 11, 11},
			[]step{{}, {}, {duplicate: true}},
		},
		"a restart over a reconnect is no second publisher": {
			[]int64{500, reconnect, 0, 1, 501},
			[]step{{}, {restart: true, rebase: true}, {}, {lost: 499}},
		},
		"two publishers, interleaved": {
			[]int64{1000, 5, 1001, 6, 1002, 7, 1003},
			[]step{{}, {restart: true, rebase: true}, {interleaved: true}, {rebase: true}, {}, {rebase: true}, {}},
		},
		"two publishers, interleaved, one loses messages": {
			[]int64{1000, 5, 1004, 6, 1007, 7, 1009},
			[]step{{}, {restart: true, rebase: true}, {interleaved: true}, {rebase: true}, {}, {rebase: true}, {}},
		},
		"a new connection forgets the interleaving": {
			[]int64{1000, 5, 1001, reconnect, 1002, 1005},
			[]step{{}, {restart: true, rebase: true}, {interleaved: true}, {}, {lost: 2}},
		},
		"the whole range": {[]int64{0, math.MaxInt64}, []step{{}, {lost: math.MaxInt64 - 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newContinuity()
			var got []step
			for _, counter := range test.counters {
				if counter == reconnect {
					c.connected()
					continue
				}
				got = append(got, c.next(counter))
			}
			assert.Equal(t, test.want, got)
		})
	}
}

// One publisher sends each second, the other all the time: no run of counters in
// order ends the suspicion, or the other's next counter would be a restart or a
// loss of millions.
func TestInterleavingIsNamedOnceAConnection(t *testing.T) {
	c := newContinuity()
	for _, counter := range []int64{1000, 5_000_000, 1001} {
		c.next(counter)
	}
	assert.Equal(t, step{interleaved: true}, c.next(5_000_001))
	for second := range int64(100) {
		for n := range int64(500) {
			s := c.next(1002 + second*500 + n)
			assert.Equal(t, step{rebase: n == 0}, s)
		}
		assert.Equal(t, step{}, c.next(5_000_002+second))
	}
}
