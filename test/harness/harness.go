// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package harness runs the built Collector, engines and a Prometheus server as
// processes, for tests that look at them from the outside:
//
//	engine (libzmq, or fpmsim) ─▶ Collector with a file of config/ ─▶ its Prometheus page, its trace files,
//	                                                                  or a Prometheus server
//
// Everything listens at ports of its own and works in folders of its own, so
// tests may run beside each other. What a process printed is shown when its test
// fails, and no process outlives its test.
package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

// Patience bounds each wait for something that takes well under a second on an
// idle machine.
const Patience = 30 * time.Second

// Root is the folder of the module.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// Binary is the Collector under test: FPM_BIN, else bin/otelcol-fpm.
func Binary(tb testing.TB) string {
	tb.Helper()
	if testing.Short() {
		tb.Skip("tests of the built Collector take longer than -short allows")
	}
	path := os.Getenv("FPM_BIN")
	if path == "" {
		path = filepath.Join(Root(), "bin", "otelcol-fpm")
	}
	if _, err := os.Stat(path); err != nil {
		tb.Fatalf("there is no Collector to test at %s: run `make build`, or set FPM_BIN", path)
	}
	return path
}

// Config is the path of a file of config/.
func Config(name string) string { return filepath.Join(Root(), "config", name) }

// Wait waits until a condition holds, as long as Patience lasts. The condition
// is asked in the goroutine of the test, so that it may end the test.
func Wait(tb testing.TB, failure string, condition func() bool) {
	tb.Helper()
	WaitFor(tb, Patience, failure, condition)
}

// WaitFor is Wait with another patience.
func WaitFor(tb testing.TB, patience time.Duration, failure string, condition func() bool) {
	tb.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("%s within %v", failure, patience)
		}
	}
}

// Address is a free address of the loopback interface.
func Address(tb testing.TB) string {
	tb.Helper()
	return fmt.Sprintf("127.0.0.1:%d", ports.One(tb))
}
