// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package python finds the Python interpreter that has pyzmq and msgspec, for
// tests against the libraries that engines use.
package python

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Path is the interpreter named by FPM_TEST_PYTHON, else .venv/bin/python at
// the root of the repository. Where there is none the test is skipped, in
// continuous integration (CI=true) it fails.
func Path(tb testing.TB) string {
	tb.Helper()
	path := os.Getenv("FPM_TEST_PYTHON")
	if path == "" {
		out, err := exec.Command("go", "env", "GOMOD").Output()
		if err != nil {
			tb.Fatalf("cannot find the root of the repository: %v", err)
		}
		path = filepath.Join(filepath.Dir(strings.TrimSpace(string(out))), ".venv", "bin", "python")
	}
	if out, err := exec.Command(path, "-c", "import zmq, msgspec").CombinedOutput(); err != nil {
		say := tb.Skipf
		if os.Getenv("CI") == "true" {
			say = tb.Fatalf
		}
		say("no Python with pyzmq and msgspec at %s (python3 -m venv .venv && .venv/bin/pip install -r test/requirements.txt): %v %s", path, err, out)
	}
	return path
}
