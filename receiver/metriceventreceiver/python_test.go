// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
	"github.com/otelcol-fpm/otelcol-fpm/test/python"
)

// engines are producers of the real libraries, see testdata/push.py.
type engines struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Scanner
}

func startEngines(t *testing.T) *engines {
	t.Helper()
	cmd := exec.Command(python.Path(t), "testdata/push.py")
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
	return &engines{t, in, bufio.NewScanner(out)}
}

// do has one request served and returns how many events the producer has sent.
func (e *engines) do(op string, producer int, more map[string]any) int64 {
	e.t.Helper()
	request := map[string]any{"op": op, "producer": producer}
	for key, value := range more {
		request[key] = value
	}
	require.NoError(e.t, json.NewEncoder(e.in).Encode(request))
	require.True(e.t, e.out.Scan(), "the engines have gone: %v", e.out.Err())
	var answer struct{ Sent int64 }
	require.NoError(e.t, json.Unmarshal(e.out.Bytes(), &answer))
	return answer.Sent
}

func (g *rig) endpoint() string {
	network, address := g.address()
	if network == "unix" {
		return schemeIPC + address
	}
	return schemeTCP + address
}

// assertEngineTotals holds what came out to what push.py and plugin.py emit:
// events in threes, n of them altogether.
func assertEngineTotals(t *testing.T, s *sink, producers int, n int64) {
	t.Helper()
	var observed, incremented, assigned int64
	got := s.read(t).totals
	require.Len(t, got, 3*producers)
	for key, total := range got {
		switch {
		case key.metric == itl:
			observed += int64(total.count)
			sum, _ := total.sum.Float64()
			assert.InEpsilon(t, 0.01*float64(total.count), sum, 1e-12)
			assert.Equal(t, 0.01, total.max)
		case key.metric == "tokenspeed:generation_tokens_total":
			incremented += total.increments.Int64()
		default:
			assigned += int64(len(total.assigned))
		}
	}
	assert.Equal(t, n, observed/3+incremented/2+assigned, "weights are counted")
	resource := s.all()[0].ResourceMetrics().At(0).Resource().Attributes().AsRaw()
	assert.Equal(t, "test", resource["engine"])
}

func TestPyzmqProducers(t *testing.T) {
	for _, transport := range []string{"tcp", "ipc"} {
		t.Run(transport, func(t *testing.T) {
			e := startEngines(t)
			s := &sink{}
			g := started(t, s, func(c *Config) {
				if transport == "ipc" {
					c.Endpoint = schemeIPC + socketPath(t)
				}
			})
			sent, bad := int64(0), int64(0)
			for producer := range 4 {
				e.do("open", producer, map[string]any{"endpoint": g.endpoint()})
			}
			for producer := range 4 {
				e.do("push", producer, map[string]any{"messages": 20, "events": 300})
				sent += e.do("push", producer, map[string]any{"messages": 1, "events": 300, "bad": 3})
				bad += 90
				e.do("close", producer, nil)
			}
			g.eventually("delivered", "", "", sent-bad)
			g.eventually("rejected", "reason", "weight", bad)
			for producer, lost := range g.counter("producer_lost", "producer") {
				assert.Zero(t, lost, producer)
			}
			assertEngineTotals(t, s, 4, sent-bad)
			g.ended(sent)
		})
	}
}

// An engine outlives the Collector. What is lost meanwhile is what it sent less
// what the two Collectors accepted; the second one counts gaps from the first
// number it sees.
func TestCollectorRestartsUnderAProducer(t *testing.T) {
	e := startEngines(t)
	endpoint := fmt.Sprintf("tcp://127.0.0.1:%d", ports.One(t))
	at := func(c *Config) { c.Endpoint = endpoint }
	id := "gpu-7:1:1600000000000000000"

	first := started(t, &sink{}, at)
	e.do("open", 1, map[string]any{"endpoint": endpoint})
	sent := e.do("push", 1, map[string]any{"messages": 10, "events": 10})
	first.eventually("delivered", "", "", sent)
	first.ended(sent)

	second := started(t, &sink{}, at)
	// Before it has noticed the end of the first one, the producer sends into nowhere.
	require.Eventually(t, func() bool { return second.receiver.server.connections() == 1 }, patience, time.Millisecond)
	sent = e.do("push", 1, map[string]any{"messages": 10, "events": 10})
	e.do("close", 1, nil)
	// A message may have gone to the first one's socket after its end.
	require.Eventually(t, func() bool { return second.counter("producer_accepted", "producer")[id] >= 90 }, patience, pollEvery)
	second.shutdown()
	accepted := second.counter("events", "outcome")["accepted"]
	assert.LessOrEqual(t, accepted, sent-100)
	second.settled(accepted)
}

// The engine's own output plugin and the receiver agree on the message.
func TestTokenSpeedPlugin(t *testing.T) {
	source, err := filepath.Abs("../../plugins/tokenspeed/src")
	require.NoError(t, err)
	if _, err := os.Stat(source); err != nil {
		t.Skipf("no plugin to test with: %v", err)
	}
	const events = 3000
	s := &sink{}
	g := started(t, s)
	cmd := exec.Command(python.Path(t), "testdata/plugin.py", g.endpoint(), strconv.Itoa(events))
	cmd.Env = append(os.Environ(), "PYTHONPATH="+source)
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", output)
	g.eventually("delivered", "", "", events)
	assertEngineTotals(t, s, 1, events)
	for _, name := range []string{"producer_lost", "producer_dropped"} {
		for producer, n := range g.counter(name, "producer") {
			assert.Zero(t, n, "%s of %s", name, producer)
		}
	}
	g.ended(events)
	assert.Zero(t, g.lines.Len(), "%v", g.lines.All())
}
