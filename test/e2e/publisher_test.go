// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/python"
)

// publisher is a running test/publisher/fpm_publisher.py.
type publisher struct {
	cmd   *exec.Cmd
	stdin io.Closer
	log   *logBuffer
	dump  string
}

// sent is a message as it was sent.
type sent struct {
	Rank     int   `json:"rank"`
	Sequence int64 `json:"sequence"`
	// FPM is the text that its trace row must have.
	FPM json.RawMessage `json:"fpm"`
	// Bad is why a reader must reject the message; there is then no row.
	Bad string `json:"bad"`
}

// record is what the tests need of an `fpm` object.
type record struct {
	WorkerID  string  `json:"worker_id"`
	DPRank    int     `json:"dp_rank"`
	CounterID int64   `json:"counter_id"`
	WallTime  float64 `json:"wall_time"`
	Scheduled group   `json:"scheduled_requests"`
	Queued    group   `json:"queued_requests"`
}

type group struct {
	NumPrefillRequests float64 `json:"num_prefill_requests"`
	SumPrefillTokens   float64 `json:"sum_prefill_tokens"`
	VarPrefillLength   float64 `json:"var_prefill_length"`
	SumPrefillKVTokens float64 `json:"sum_prefill_kv_tokens"`
	NumDecodeRequests  float64 `json:"num_decode_requests"`
	SumDecodeKVTokens  float64 `json:"sum_decode_kv_tokens"`
	VarDecodeKVTokens  float64 `json:"var_decode_kv_tokens"`
}

func (s *sent) record(t *testing.T) (r record) {
	t.Helper()
	require.NoError(t, json.Unmarshal(s.FPM, &r))
	return r
}

// publish starts a publisher that writes down what it sends.
func publish(t *testing.T, endpoint string, args ...string) *publisher {
	t.Helper()
	p := &publisher{log: &logBuffer{}, dump: filepath.Join(t.TempDir(), "sent.jsonl")}
	args = append([]string{filepath.Join("..", "publisher", "fpm_publisher.py"), "--endpoint", endpoint, "--dump", p.dump}, args...)
	p.cmd = exec.Command(python.Path(t), args...)
	p.cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	var err error
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("output of the publisher:\n%s", p.log)
		}
	})
	p.waitFor(t, "bound")
	return p
}

// waitFor waits for a line of the publisher's output.
func (p *publisher) waitFor(t *testing.T, line string) {
	t.Helper()
	wait(t, "the publisher does not say "+line, func() bool {
		return strings.Contains("\n"+p.log.String(), "\n"+line+"\n")
	})
}

// kill ends it as a crash does. It may have ended already.
func (p *publisher) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// end closes its sockets in good order.
func (p *publisher) end(t *testing.T) {
	t.Helper()
	require.NoError(t, p.stdin.Close())
	require.NoError(t, p.cmd.Wait(), "%s", p.log)
}

// sent reads back what was sent: the good messages by rank, in order, and the
// number of bad ones by reason. A publisher that was killed may have died
// before it sent the last messages.
func (p *publisher) sent(t *testing.T) (good map[int][]sent, bad map[string]int) {
	t.Helper()
	f, err := os.Open(p.dump)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	good, bad = map[int][]sent{}, map[string]int{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s sent
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			require.False(t, lines.Scan(), "a torn line in the middle: %v", err)
			break
		}
		if s.Bad != "" {
			bad[s.Bad]++
			continue
		}
		good[s.Rank] = append(good[s.Rank], s)
	}
	require.NoError(t, lines.Err())
	return good, bad
}
