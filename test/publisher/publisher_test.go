// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package publisher runs the Python tests of what the test publishers share.
package publisher

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/python"
)

func TestPython(t *testing.T) {
	cmd := exec.Command(python.Path(t), "-m", "unittest", "discover", "--pattern", "*_test.py")
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "Ran 3 tests", "not all tests ran")
}
