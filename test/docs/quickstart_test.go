// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
)

// output collects what a command prints while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// quickstart are the README's first command, those for the second terminal, and
// the one for a graph.
func quickstart(t *testing.T) []string {
	t.Helper()
	return blocks(t, filepath.Join(root(t), "README.md"), "sh")[:3]
}

// TestQuickstart is a newcomer: it runs the README's first command, reads what
// it says, runs the commands for the second terminal, and presses Ctrl-C.
func TestQuickstart(t *testing.T) {
	commands := quickstart(t)
	require.Equal(t, "make run\n", commands[0])
	said := blocks(t, filepath.Join(root(t), "README.md"), "text")[0]
	lookAround := commands[1]

	var printed output
	run := exec.Command("bash", "-c", "exec make run")
	run.Dir = root(t)
	run.Stdout, run.Stderr = &printed, &printed
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, run.Start())
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	interrupted := false
	t.Cleanup(func() {
		if !interrupted {
			_ = syscall.Kill(-run.Process.Pid, syscall.SIGKILL)
		}
	})

	require.Eventually(t, func() bool { return strings.Contains(printed.String(), said) },
		time.Minute, 100*time.Millisecond, "make run did not say where to look:\n%s", &printed)

	for _, line := range strings.Split(strings.TrimSpace(lookAround), "\n") {
		var shown []byte
		assert.Eventually(t, func() bool {
			command := exec.Command("bash", "-c", line)
			command.Dir = root(t)
			shown, _ = command.CombinedOutput()
			return expected(line, string(shown))
		}, 20*time.Second, 500*time.Millisecond, "%s printed\n%s", line, &printed)
		t.Logf("$ %s\n%s", line, shown)
	}

	t.Run("graph", func(t *testing.T) { graph(t, commands[2]) })

	// Ctrl-C reaches the whole group, as in a terminal.
	interrupted = true
	require.NoError(t, syscall.Kill(-run.Process.Pid, syscall.SIGINT))
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		_ = syscall.Kill(-run.Process.Pid, syscall.SIGKILL)
		t.Fatalf("make run did not end after Ctrl-C:\n%s", &printed)
	}
	assert.Contains(t, printed.String(), "Stopped. Trace files:")

	files, err := filepath.Glob(filepath.Join(root(t), "run", "traces", "dynamo-fpm.*.jsonl.gz"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		assert.NoError(t, exec.Command("gzip", "-t", file).Run(), "%s is cut short", file)
	}
	log, err := os.ReadFile(filepath.Join(root(t), "run", "otelcol-fpm.log"))
	require.NoError(t, err)
	assert.Contains(t, string(log), "Shutdown complete")
}

// graph runs the README's Prometheus and asks it what its link draws.
func graph(t *testing.T, line string) {
	harness.Tool(t, "prometheus")
	link := regexp.MustCompile(`\(http://([0-9.:]+)/graph\?[^)]*g0\.expr=([^)]*)\)`).FindStringSubmatch(read(t, filepath.Join(root(t), "README.md")))
	require.NotNil(t, link)
	expr, err := url.QueryUnescape(link[2])
	require.NoError(t, err)
	require.Contains(t, line, "--web.listen-address="+link[1])
	var printed output
	command := exec.Command("bash", "-c", "exec "+line)
	command.Dir = root(t)
	command.Stdout, command.Stderr = &printed, &printed
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	server := &harness.Prometheus{Address: link[1]}
	harness.Wait(t, "Prometheus does not answer", func() bool {
		response, err := http.Get("http://" + link[1] + "/-/ready")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	harness.Wait(t, "nothing to draw", func() bool { return len(server.Query(t, expr)) == 2 })
}

// expected is what a newcomer hopes to see.
func expected(command, shown string) bool {
	switch {
	case strings.Contains(command, "9464"):
		return strings.Count(shown, "fpm_step_duration_seconds_count{") == 2
	case strings.Contains(command, "gzip"):
		return strings.Contains(shown, `"schema":"dynamo.fpm.trace.v1"`)
	case strings.Contains(command, "13133"):
		return strings.Contains(shown, `"receiver:fpm"`) && strings.Contains(shown, "StatusOK")
	default:
		return false
	}
}
