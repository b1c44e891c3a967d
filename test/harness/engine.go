// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Simulate starts fpmsim, which `make build` puts beside the Collector, at an
// endpoint.
func Simulate(tb testing.TB, endpoint string, args ...string) *Process {
	tb.Helper()
	path := filepath.Join(filepath.Dir(Binary(tb)), "fpmsim")
	if _, err := os.Stat(path); err != nil {
		tb.Fatalf("there is no simulated engine at %s: run `make build`", path)
	}
	return start(tb, "fpmsim", "", nil, path, append([]string{"--endpoint", endpoint}, args...)...)
}

// TCP is the endpoint of a port of the loopback interface.
func TCP(port int) string { return "tcp://127.0.0.1:" + strconv.Itoa(port) }
