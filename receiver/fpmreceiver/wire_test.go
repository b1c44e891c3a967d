// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
	"github.com/otelcol-fpm/otelcol-fpm/test/python"
)

// fpmLine is what the test publisher says it sent.
type fpmLine struct {
	Rank int             `json:"rank"`
	FPM  json.RawMessage `json:"fpm"`
	Bad  string          `json:"bad"`
}

// freePorts is the first of n ports in a row that are free now. They lie below
// the range of outgoing connections.
func freePorts(t *testing.T, n int) int {
	t.Helper()
	for first := 21000 + os.Getpid()%5000; first < 32000; first += n {
		free := 0
		for ; free < n; free++ {
			l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(first+free))
			if err != nil {
				break
			}
			l.Close()
		}
		if free == n {
			return first
		}
	}
	t.Fatal("no free ports")
	return 0
}

// Every kind of publisher, with the encoder and the transport of the engines:
// metrics and logs come from one socket a rank, and both say what was sent.
func TestPublisherVariants(t *testing.T) {
	const count, ranks = 120, 2
	tcp := "tcp://127.0.0.1:%d"
	for name, test := range map[string]struct {
		endpoint, variant, worker string
	}{
		"Dynamo vLLM":     {tcp, "v1", "vllm-0"},
		"native vLLM":     {tcp, "native", "vllm-0"},
		"SGLang":          {"ipc://" + filepath.Join(t.TempDir(), "fpm"), "v1", ""},
		"first releases":  {tcp, "unversioned", ""},
		"additive fields": {tcp, "additive", "w\u2028\"1\""},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint := test.endpoint
			if endpoint == tcp {
				endpoint = fmt.Sprintf(tcp, freePorts(t, ranks))
			}
			metrics, logs := &metricsSink{}, &logsSink{}
			g := newRig(t, testConfig(func(c *Config) { c.Endpoint, c.DPSize = endpoint, ranks }), metrics, logs)
			g.start()
			dump := filepath.Join(t.TempDir(), "dump")
			runPublisher(t, "--endpoint", endpoint, "--ranks", strconv.Itoa(ranks), "--variant", test.variant,
				"--worker-id", test.worker, "--count", strconv.Itoa(count), "--rate", "400",
				"--heartbeat-every", "10", "--bad-every", "9", "--dump", dump)

			want := make([][]string, ranks)
			bad := map[string]int64{}
			sent := 0
			for _, line := range readLines(t, dump) {
				var l fpmLine
				require.NoError(t, json.Unmarshal([]byte(line), &l))
				sent++
				if l.Bad != "" {
					bad[l.Bad]++
				} else {
					want[l.Rank] = append(want[l.Rank], string(l.FPM))
				}
			}
			g.read(sent)
			g.shutdown()
			c := g.settled(sent)
			assert.Equal(t, bad["duplicate"], c.duplicate)
			delete(bad, "duplicate")
			assert.Equal(t, bad, c.rejectedBy)
			assert.EqualValues(t, count*ranks, c.accepted)
			assert.Zero(t, c.lost+c.restarts+c.mismatch)
			wellFormed(t, metrics.points())
			contiguous(t, metrics.points())

			assert.Equal(t, want, rowsOfLogs(t, logs.all(), ranks), "log bodies")
			if test.variant == "v1" || test.variant == "native" {
				assert.Equal(t, want, rowsOfMetrics(t, metrics, ranks), "records rebuilt from metrics")
			}
			for _, p := range of(metrics.points(), fpm.MetricMessages) {
				_, scoped := p.attributes["fpm.timing_scope"]
				assert.Equal(t, test.variant == "native", scoped)
				assert.Equal(t, test.worker, p.resource["fpm.worker_id"])
			}
			observed := 0
			for _, rank := range want {
				for _, row := range rank {
					if !strings.Contains(row, `"wall_time":0.0,`) {
						observed++
					}
				}
			}
			assert.Len(t, of(metrics.points(), fpm.MetricStepDuration), observed)
		})
	}
}

// runPublisher runs the shared test publisher until all is sent; it then stays
// as an engine would, until the test ends.
func runPublisher(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(python.Path(t), append([]string{"../../test/publisher/fpm_publisher.py"}, args...)...)
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "sent" {
			return
		}
	}
	t.Fatal("the publisher has gone")
}

func readLines(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// rowsOfLogs are the fpm objects of trace rows, by rank.
func rowsOfLogs(t *testing.T, all []plog.Logs, ranks int) [][]string {
	rows := make([][]string, ranks)
	records := (&logsSink{sink: sink[plog.Logs]{taken: all}}).records()
	for _, record := range records {
		checked, err := fpm.ValidateBody(record.Body())
		require.NoError(t, err)
		event := fpm.AppendEvent(nil, &fpm.Envelope{}, record.Body().Map(), &checked)
		rank, _ := record.Attributes().Get("fpm.dp_rank")
		sequence, _ := record.Attributes().Get("fpm.sequence")
		assert.Equal(t, checked.CounterID, sequence.Int())
		rows[rank.Int()] = append(rows[rank.Int()], onlyFPM(event))
	}
	return rows
}

func rowsOfMetrics(t *testing.T, metrics *metricsSink, ranks int) [][]string {
	rows := make([][]string, ranks)
	reconstructor := fpm.NewReconstructor()
	for _, md := range metrics.all() {
		for _, rebuilt := range reconstructor.Metrics(md) {
			require.Equal(t, fpm.Complete, rebuilt.Completeness())
			event := fpm.AppendRecordEvent(nil, &fpm.Envelope{}, &rebuilt.Record)
			rows[rebuilt.Record.DPRank] = append(rows[rebuilt.Record.DPRank], onlyFPM(event))
		}
	}
	return rows
}

func onlyFPM(event []byte) string {
	_, text, _ := strings.Cut(string(event), `"fpm":`)
	return strings.TrimSuffix(text, "}")
}

// An engine that ends and comes back is found again, its counters go on or start
// over, and what was missed meanwhile is told from a restart.
func TestReconnect(t *testing.T) {
	metrics, logs := &metricsSink{}, &logsSink{}
	p := startLibzmq(t)
	engine := p.publisher(t)
	g := newRig(t, testConfig(func(c *Config) { c.Endpoint = engine.endpoint }), metrics, logs)
	g.start()
	engine.subscribed().pass(busy("w", 0, 0), busy("w", 0, 1), busy("w", 0, 2))
	g.read(3)
	engine.close()
	engine.again() // the connection broke, the publisher counts on
	engine.subscribed().pass(busy("w", 0, 10), busy("w", 0, 11))
	g.read(5)
	engine.close()
	engine.again() // a new publisher
	engine.subscribed().pass(busy("w", 0, 0), busy("w", 0, 1))
	g.read(7)
	g.shutdown()
	c := g.settled(7)
	assert.EqualValues(t, 7, c.lost)
	assert.EqualValues(t, 1, c.restarts)
	assert.Equal(t, map[string]int64{engine.endpoint: 3}, map[string]int64{engine.endpoint: g.endpoint(0).connects.Load()})
	assert.Equal(t, []int64{0, 1, 2, 10, 11, 0, 1}, counters(metrics.points()))
	starts := map[any]int{}
	for _, p := range of(metrics.points(), fpm.MetricMessages) {
		starts[p.start]++
	}
	assert.Len(t, starts, 2, "a restart begins a new start time, a reconnect does not")
	wellFormed(t, metrics.points())
	contiguous(t, metrics.points())
}

func TestContinuityOnTheWire(t *testing.T) {
	for name, test := range map[string]struct {
		counters []int64
		accepted []int64
		want     counts
		warnings int
	}{
		"in order":  {[]int64{5, 6, 7}, []int64{5, 6, 7}, counts{accepted: 3}, 0},
		"gap":       {[]int64{0, 1, 5, 6, 9}, []int64{0, 1, 5, 6, 9}, counts{accepted: 5, lost: 5}, 0},
		"duplicate": {[]int64{0, 1, 1, 2, 2, 2, 3}, []int64{0, 1, 2, 3}, counts{accepted: 4, duplicate: 3}, 0},
		"restart":   {[]int64{499, 500, 0, 1, 2}, []int64{499, 500, 0, 1, 2}, counts{accepted: 5, restarts: 1}, 0},
		"two publishers behind one endpoint": {
			[]int64{1000, 7, 1001, 8, 1002, 9, 1003, 10},
			[]int64{1000, 7, 1001, 8, 1002, 9, 1003, 10},
			counts{accepted: 8, restarts: 1},
			1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			metrics, logs := &metricsSink{}, &logsSink{}
			p := startLibzmq(t)
			engine := p.publisher(t)
			g := newRig(t, testConfig(func(c *Config) { c.Endpoint = engine.endpoint }), metrics, logs)
			g.start()
			engine.subscribed()
			for _, counter := range test.counters {
				engine.pass(busy("w", 0, counter))
			}
			g.read(len(test.counters))
			g.shutdown()
			c := g.settled(len(test.counters))
			test.want.rejectedBy, test.want.delivered, test.want.dropped = c.rejectedBy, c.delivered, c.dropped
			assert.Equal(t, test.want, c)
			assert.Equal(t, test.accepted, counters(metrics.points()))
			assert.Equal(t, test.accepted, logCounters(logs.records()))
			wellFormed(t, metrics.points())
			assert.Len(t, g.warnings("Two publishers speak through one endpoint"), test.warnings)
		})
	}
}

// One port carries two workers, and two endpoints carry one worker: nobody's
// series overlap.
func TestIdentitiesOnTheWire(t *testing.T) {
	metrics, logs := &metricsSink{}, &logsSink{}
	p := startLibzmq(t)
	first, second := p.publisher(t), p.publisher(t)
	g := newRig(t, testConfig(func(c *Config) {
		c.Endpoint = ""
		c.Endpoints = []EndpointConfig{{Endpoint: first.endpoint, DPSize: 1}, {Endpoint: second.endpoint, DPSize: 1}}
	}), metrics, logs)
	// One rank a port: the suffix of a rank is none for tcp.
	g.start()
	first.subscribed()
	second.subscribed()
	first.pass(busy("a", 0, 0), busy("b", 0, 0), busy("", 0, 0))
	g.read(3)
	second.pass(busy("a", 0, 0), busy("", 0, 0))
	first.pass(busy("a", 0, 1))
	g.read(6)
	g.shutdown()
	g.settled(6)
	found := map[any]int{}
	for _, p := range of(metrics.points(), fpm.MetricMessages) {
		found[p.resource["service.instance.id"]]++
	}
	hostname, err := os.Hostname()
	require.NoError(t, err)
	port := func(s *socket) string { return s.endpoint[strings.LastIndex(s.endpoint, ":"):] }
	assert.Equal(t, map[any]int{
		"a": 2, "b": 1, "a@127.0.0.1" + port(second): 1,
		hostname + port(first): 1, hostname + port(second): 1,
	}, found)
	assert.Len(t, g.warnings("heard on another endpoint too"), 1)
	wellFormed(t, metrics.points())
}

// A message over the limit costs its connection; the next one is there at once.
func TestOversize(t *testing.T) {
	logs := &logsSink{}
	p := startLibzmq(t)
	engine := p.publisher(t)
	g := newRig(t, testConfig(func(c *Config) { c.Endpoint, c.MaxMessageBytes = engine.endpoint, 1000 }), nil, logs)
	g.start()
	engine.subscribed().pass(busy("w", 0, 0))
	g.read(1)
	engine.send(envelope(1, make([]byte, 2000)))
	err := g.warned("the peer announced more than is allowed")
	assert.Contains(t, err, "at most 1000 are allowed")
	engine.subscribed() // it ended, and came again
	engine.pass(busy("w", 0, 2))
	g.read(2)
	engine.send(make([][]byte, 17))
	engine.subscribed()
	engine.pass(busy("w", 0, 3))
	g.read(3)
	g.shutdown()
	c := g.settled(3)
	assert.EqualValues(t, 2, c.rejectedBy[rejectedOversize])
	assert.Zero(t, c.rejected)
	assert.Equal(t, []int64{0, 2, 3}, logCounters(logs.records()))
	assert.EqualValues(t, 1, c.lost)
}

// What is rejected is counted by reason, and named once in ten seconds.
func TestRejectedOnTheWire(t *testing.T) {
	logs := &logsSink{}
	p := startLibzmq(t)
	engine := p.publisher(t)
	g := newRig(t, testConfig(func(c *Config) { c.Endpoint, c.AcceptUnversioned = engine.endpoint, false }), nil, logs)
	g.start()
	engine.subscribed()
	good := busy("w", 0, 0)
	two := busy("w", 0, 1)
	two.Version = 2
	eventPlane := [][]byte{[]byte("forward-pass-metrics"), make([]byte, 8), make([]byte, 8), {1}}
	for range 20 {
		engine.send(
			two.frames(), eventPlane, envelope(0, nil), envelope(0, []byte{0x80}), envelope(1<<63, good.payload()),
			[][]byte{{}, {1, 2, 3}, good.payload()}, [][]byte{good.payload()}, make([][]byte, 3),
		)
	}
	engine.pass(good)
	g.read(161)
	g.shutdown()
	c := g.settled(161)
	assert.Equal(t, map[string]int64{"unsupported_version": 20, "envelope": 80, "malformed": 40, "out_of_range": 20}, c.rejectedBy)
	lines := g.warnings("Message rejected")
	assert.Len(t, lines, 4, "one line a reason")
	text := ""
	for _, line := range lines {
		assert.Equal(t, engine.endpoint, line.ContextMap()["endpoint"])
		text += fmt.Sprintln(line.ContextMap()["error"])
	}
	assert.Contains(t, text, "version: got 2, want 1")
	assert.Contains(t, text, "this looks like Dynamo's event plane, not the raw FPM port")
	assert.Equal(t, []int64{0}, logCounters(logs.records()))
}

// Peers that are no publishers are named and asked again; the other endpoints
// are not concerned.
func TestPeersThatAreNoPublishers(t *testing.T) {
	for name, test := range map[string]struct {
		peer func(*testing.T) string
		line string
		err  string
	}{
		"self-benchmark": {
			func(t *testing.T) string {
				return startLibzmq(t).bind(t, "ROUTER", "tcp://127.0.0.1:*").endpoint
			},
			"This is the engine's self-benchmark port", "ROUTER",
		},
		"HTTP server": {
			func(t *testing.T) string {
				return listen(t, func(conn net.Conn) {
					_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
					untilClosed(conn)
				}).endpoint()
			},
			"does not answer as a publisher", "an HTTP server",
		},
		"silent": {
			func(t *testing.T) string { return listen(t, untilClosed).endpoint() },
			"does not answer as a publisher", "timeout",
		},
	} {
		t.Run(name, func(t *testing.T) {
			logs := &logsSink{}
			good := publish(t, "PUB", func(conn net.Conn) {
				_, _ = conn.Write(wire(busy("w", 0, 0).frames()))
				untilClosed(conn)
			})
			g := newRig(t, testConfig(func(c *Config) {
				c.Endpoint = test.peer(t)
				c.Endpoints = []EndpointConfig{{Endpoint: good.endpoint(), DPSize: 1}}
				c.Dial = DialConfig{Timeout: 100 * time.Millisecond, InitialBackoff: 10 * time.Millisecond, MaxBackoff: 50 * time.Millisecond}
			}), nil, logs)
			g.start()
			assert.Contains(t, g.warned(test.line), test.err)
			g.read(1)
			time.Sleep(300 * time.Millisecond)
			assert.Len(t, g.warnings(test.line), 1)
			g.shutdown()
			g.settled(1)
		})
	}
}
