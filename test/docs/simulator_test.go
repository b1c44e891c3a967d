// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

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
	command.Dir = root(t)
	command.Stdout, command.Stderr = &printed, &printed
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, command.Start())
	ended := false
	t.Cleanup(func() {
		if !ended {
			_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		}
	})
	harness.WaitFor(t, 2*time.Minute, line+" does not say what it should", func() bool { return printed.String() == before })
	require.NoError(t, syscall.Kill(-command.Process.Pid, syscall.SIGINT))
	err := command.Wait()
	ended = true
	assert.NoError(t, err)
	digits := regexp.MustCompile(`\d+ messages, \d+`)
	assert.Equal(t, digits.ReplaceAllString(before+after, "N messages, N"), digits.ReplaceAllString(printed.String(), "N messages, N"))
}
