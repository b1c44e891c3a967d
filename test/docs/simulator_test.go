// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
)

// The session that the simulator's README shows looks like that: the command, what
// it says, Ctrl-C, what it says then. Counts differ.
func TestSimulatorSession(t *testing.T) {
	shown := blocks(t, filepath.Join(root(t), "cmd", "fpmsim", "README.md"), "console")[0]
	line, said, _ := strings.Cut(strings.TrimPrefix(shown, "$ "), "\n")
	before, after, found := strings.Cut(said, "^C\n")
	require.True(t, found, shown)

	var printed output
	command := exec.Command("bash", "-c", "exec "+line)
	command.Dir = links(t)
	command.Stdout, command.Stderr = &printed, &printed
	require.NoError(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill() })
	harness.Wait(t, line+" does not say what it should", func() bool { return printed.String() == before })
	require.NoError(t, command.Process.Signal(os.Interrupt))
	assert.NoError(t, command.Wait())
	digits := regexp.MustCompile(`\d+ messages, \d+`)
	assert.Equal(t, digits.ReplaceAllString(before+after, "N messages, N"), digits.ReplaceAllString(printed.String(), "N messages, N"))
}
