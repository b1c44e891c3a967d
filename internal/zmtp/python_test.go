// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/python"
)

// long tells whether the tests that take their time shall do so.
func long() bool { return os.Getenv("FPM_TEST_LONG") == "1" }

// libzmqPeer is a process with one socket of the real library, see testdata/peer.py.
type libzmqPeer struct {
	cmd *exec.Cmd
	in  *json.Encoder
	out *bufio.Scanner
}

func startLibzmq(t *testing.T) *libzmqPeer {
	t.Helper()
	cmd := exec.Command(python.Path(t), "testdata/peer.py")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &libzmqPeer{cmd: cmd, in: json.NewEncoder(in), out: bufio.NewScanner(out)}
}

type request map[string]any

// begin sends an operation without waiting for its end.
func (p *libzmqPeer) begin(t *testing.T, op string, args request) {
	t.Helper()
	r := request{"op": op}
	for k, v := range args {
		r[k] = v
	}
	require.NoError(t, p.in.Encode(r))
}

// end waits for the answer to an operation begun.
func (p *libzmqPeer) end(t *testing.T) map[string]any {
	t.Helper()
	require.True(t, p.out.Scan(), "the peer has gone: %v", p.out.Err())
	var answer map[string]any
	require.NoError(t, json.Unmarshal(p.out.Bytes(), &answer))
	require.NotContains(t, answer, "error")
	return answer
}

func (p *libzmqPeer) do(t *testing.T, op string, args request) map[string]any {
	t.Helper()
	p.begin(t, op, args)
	return p.end(t)
}

// bind opens a socket and binds it; it returns the address for us to dial.
func (p *libzmqPeer) bind(t *testing.T, socketType string, options request, endpoint string) string {
	t.Helper()
	p.do(t, "open", request{"type": socketType, "options": options})
	bound := p.do(t, "bind", request{"endpoint": endpoint})["endpoint"].(string)
	_, address, _ := strings.Cut(bound, "://")
	return address
}

func (p *libzmqPeer) disconnections(t *testing.T) int {
	t.Helper()
	n, _ := p.do(t, "events", nil)["DISCONNECTED"].(float64)
	return int(n)
}

// exchange sends until a message arrives: a PUB cannot tell when the subscription has reached it.
func (p *libzmqPeer) exchange(t *testing.T, e *events) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); len(e.messages) == 0; {
		require.True(t, time.Now().Before(deadline), "no message arrives")
		p.do(t, "send", request{"size": 1})
		time.Sleep(5 * time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond)
	for len(e.messages) > 0 {
		<-e.messages
	}
}
