// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

// fence finds the blocks of code in the README.
var fence = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")

// readmeBlock is the block of a language in the README that contains part.
func readmeBlock(t *testing.T, language, part string) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, match := range fence.FindAllStringSubmatch(string(text), -1) {
		if match[1] == language && strings.Contains(match[2], part) {
			return match[2]
		}
	}
	t.Fatalf("no block with %s in the README", part)
	return ""
}

// server is a real Prometheus server.
type server struct {
	t   *testing.T
	url string
}

// startPrometheus runs the prometheus on the PATH until the test ends. Without
// one the test is skipped, but not where CI is true.
func startPrometheus(t *testing.T, config string) *server {
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("no prometheus on the PATH; apt-get install prometheus")
		}
		t.Skip("no prometheus on the PATH; apt-get install prometheus")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	address := fmt.Sprintf("127.0.0.1:%d", ports.One(t))
	var said bytes.Buffer
	cmd := exec.Command(binary, "--config.file="+path, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--web.enable-remote-write-receiver", "--log.level=warn")
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		assert.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		assert.NoError(t, cmd.Wait(), "%s", &said)
	})
	s := &server{t: t, url: "http://" + address}
	client := http.Client{Timeout: time.Second}
	require.Eventually(t, func() bool {
		answer, err := client.Get(s.url + "/-/ready")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	}, 30*time.Second, 50*time.Millisecond)
	client.CloseIdleConnections()
	return s
}

// value runs a query that gives one value at a time.
func (s *server) value(query string, at time.Time) float64 {
	s.t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(s.url + "/api/v1/query?query=" + url.QueryEscape(query) + "&time=" + strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64))
	require.NoError(s.t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	var parsed struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	require.NoError(s.t, json.Unmarshal(body, &parsed), string(body))
	require.Len(s.t, parsed.Data.Result, 1, "%s at %v: %s", query, at, body)
	value, err := strconv.ParseFloat(parsed.Data.Result[0].Value[1].(string), 64)
	require.NoError(s.t, err)
	return value
}

// trace writes 600 passes of a producer, 20 ms apart, in members of n rows.
func (r *rig) trace(producer string, first time.Time, n int64) (last time.Time) {
	var text strings.Builder
	for counter := int64(0); counter < 600; counter++ {
		last = first.Add(time.Duration(counter) * 20 * time.Millisecond)
		text.WriteString(rowOf{producer: producer, worker: producer, counter: counter, at: last}.String())
		if (counter+1)%n == 0 {
			r.append(r.path(producer, 0), text.String())
			text.Reset()
		}
	}
	return last
}

// run runs the configuration in a Collector until it ends by itself.
func (s *server) run(config string, r *rig, environment ...string) {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "config.yaml")
	require.NoError(s.t, os.WriteFile(path, []byte(config+"\n  telemetry: {metrics: {level: none}}\n"), 0o600))
	process := exec.Command(os.Args[0], "-test.run", "^TestExitWhenDone$")
	process.Env = append(append(os.Environ(), exitConfig+"="+path, "TRACES="+r.cfg.Include[0],
		"REMOTE_WRITE_ENDPOINT="+s.url+"/api/v1/write"), environment...)
	var said strings.Builder
	process.Stdout, process.Stderr = &said, &said
	timer := time.AfterFunc(30*time.Second, func() { _ = process.Process.Kill() })
	defer timer.Stop()
	require.NoError(s.t, process.Run(), said.String())
	assert.NotContains(s.t, said.String(), "\terror\t")
	assert.NotContains(s.t, said.String(), "refused")
}

// checkTrace compares the server's answers with the rows, at the rows' times.
func (s *server) checkTrace(producer string, first, last time.Time) {
	s.t.Helper()
	series := fmt.Sprintf(`{instance=%q}`, producer)
	for _, counter := range []int64{0, 1, 77, 300, 599} {
		at := first.Add(time.Duration(counter) * 20 * time.Millisecond)
		assert.Equal(s.t, float64(counter%64), s.value("fpm_scheduled_decode_requests"+series, at), "row %d", counter)
	}
	tokens := 0.0
	for counter := range 600 {
		tokens += float64(counter % 64)
	}
	assert.Equal(s.t, 599.0, s.value("fpm_messages_total"+series, last))
	assert.Equal(s.t, tokens, s.value("fpm_decode_tokens_total"+series, last))
	assert.Equal(s.t, 600.0, s.value("fpm_step_duration_seconds_count"+series, last))
	assert.Equal(s.t, tokens, s.value("fpm_decode_token_latency_seconds_count"+series, last))
	assert.InEpsilon(s.t, 600*0.0123, s.value("fpm_step_duration_seconds_sum"+series, last), 1e-9)
}

// TestOldRowsInPrometheus runs the README's example: a trace of yesterday, into
// a server that has samples of today, with the out-of-order window that the
// README names.
func TestOldRowsInPrometheus(t *testing.T) {
	s := startPrometheus(t, readmeBlock(t, "yml", "out_of_order_time_window"))
	config := readmeBlock(t, "yaml", "prometheus_remote_write")
	for _, age := range []time.Duration{time.Minute, 26 * time.Hour} { // the newer one first
		r := newRig(t, nil)
		first := time.Now().Add(-age).Truncate(time.Millisecond)
		producer := fmt.Sprint("p", age.Hours())
		last := r.trace(producer, first, 50)
		s.run(config, r)
		s.checkTrace(producer, first, last)
	}
}

// TestShiftedToNow runs the README's other example: the same trace as if its
// last row were of now, into a server without a window.
func TestShiftedToNow(t *testing.T) {
	s := startPrometheus(t, "{}")
	config := readmeBlock(t, "yaml", "transform")
	r := newRig(t, nil)
	first := began
	last := r.trace("p", first, 600)

	// The shell lines find the last row's time.
	script := strings.ReplaceAll(readmeBlock(t, "sh", "SHIFT_NS"), "/var/log/dynamo/fpm.*.jsonl.gz", r.cfg.Include[0])
	output, err := exec.Command("bash", "-c", script+"\necho $SHIFT_NS").Output()
	require.NoError(t, err)
	shift, err := strconv.ParseInt(strings.TrimSpace(string(output)), 10, 64)
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now(), last.Add(time.Duration(shift)), 5*time.Second)

	s.run(config, r, fmt.Sprint("SHIFT_NS=", shift))
	s.checkTrace("p", first.Add(time.Duration(shift)), last.Add(time.Duration(shift)))
}
