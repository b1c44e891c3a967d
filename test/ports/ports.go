// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package ports finds tcp ports for tests that tell a process of their own
// where to listen.
//
// They lie below the range from which the system gives ports to outgoing
// connections: a port from that range, free a moment ago, may be somebody's
// when it is used.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

const (
	lowest  = 10000
	highest = 32000 // the range mostly begins at 32768
	tries   = 1000
)

var (
	mu    sync.Mutex
	given = map[int]bool{}
)

// Block returns the first of n adjacent ports on which nobody listens at
// 127.0.0.1 and which this process has not given out before. Test processes
// that run at the same time are kept apart by chance: there are many ports.
func Block(tb testing.TB, n int) int {
	tb.Helper()
	mu.Lock()
	defer mu.Unlock()
	for range tries {
		first := lowest + rand.IntN(highest-lowest-n)
		if !free(first, n) {
			continue
		}
		for port := first; port < first+n; port++ {
			given[port] = true
		}
		return first
	}
	tb.Fatalf("no %d adjacent free ports in %d to %d", n, lowest, highest)
	return 0
}

// One returns a single port.
func One(tb testing.TB) int {
	tb.Helper()
	return Block(tb, 1)
}

func free(first, n int) bool {
	for port := first; port < first+n; port++ {
		if given[port] {
			return false
		}
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		_ = listener.Close()
	}
	return true
}
