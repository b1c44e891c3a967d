// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/python"
)

// libzmq is a process that publishes through libzmq what the test makes; see
// testdata/publisher.py.
type libzmq struct {
	in  *json.Encoder
	out *bufio.Scanner
}

func startLibzmq(t *testing.T) *libzmq {
	t.Helper()
	cmd := exec.Command(python.Path(t), "testdata/publisher.py")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	return &libzmq{in: json.NewEncoder(in), out: bufio.NewScanner(out)}
}

func (p *libzmq) do(t *testing.T, request map[string]any) any {
	t.Helper()
	require.NoError(t, p.in.Encode(request))
	require.True(t, p.out.Scan(), "the publisher has gone: %v", p.out.Err())
	var answer map[string]any
	require.NoError(t, json.Unmarshal(p.out.Bytes(), &answer))
	require.NotContains(t, answer, "error")
	return answer["answer"]
}

// socket is one bound socket of a libzmq process.
type socket struct {
	t        *testing.T
	process  *libzmq
	endpoint string
}

func (p *libzmq) bind(t *testing.T, kind, endpoint string) *socket {
	t.Helper()
	bound := p.do(t, map[string]any{"op": "bind", "type": kind, "endpoint": endpoint}).(string)
	return &socket{t: t, process: p, endpoint: bound}
}

// publisher binds a publisher to a free port.
func (p *libzmq) publisher(t *testing.T) *socket {
	t.Helper()
	return p.bind(t, "XPUB", "tcp://127.0.0.1:*")
}

// again binds the endpoint of a socket that was closed.
func (s *socket) again() {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		require.NoError(s.t, s.process.in.Encode(map[string]any{"op": "bind", "endpoint": s.endpoint}))
		require.True(s.t, s.process.out.Scan())
		return !strings.Contains(s.process.out.Text(), "error")
	}, 10*time.Second, 10*time.Millisecond, "libzmq gives a port back a little later")
}

// subscribed waits for one more subscriber.
func (s *socket) subscribed() *socket {
	s.t.Helper()
	s.process.do(s.t, map[string]any{"op": "subscribed", "endpoint": s.endpoint})
	return s
}

func (s *socket) send(messages ...[][]byte) {
	s.t.Helper()
	encoded := make([][]string, len(messages))
	for i, frames := range messages {
		for _, frame := range frames {
			encoded[i] = append(encoded[i], hex.EncodeToString(frame))
		}
	}
	s.process.do(s.t, map[string]any{"op": "send", "endpoint": s.endpoint, "messages": encoded})
}

func (s *socket) pass(passes ...pass) {
	s.t.Helper()
	messages := make([][][]byte, len(passes))
	for i, p := range passes {
		messages[i] = p.frames()
	}
	s.send(messages...)
}

func (s *socket) close() {
	s.t.Helper()
	s.process.do(s.t, map[string]any{"op": "close", "endpoint": s.endpoint})
}

// read waits until the receiver has read so many messages.
func (g *rig) read(messages int) {
	g.t.Helper()
	require.Eventually(g.t, func() bool {
		c := g.counts()
		return c.accepted+c.duplicate+c.rejected == int64(messages)
	}, 20*time.Second, 5*time.Millisecond, "%d messages", messages)
}

// warned waits for a log line.
func (g *rig) warned(text string) string {
	g.t.Helper()
	require.Eventually(g.t, func() bool { return len(g.warnings(text)) > 0 }, 20*time.Second, 5*time.Millisecond, text)
	line := g.warnings(text)[0]
	err, _ := line.ContextMap()["error"].(string)
	return err
}
