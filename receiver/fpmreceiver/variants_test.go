// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
	"github.com/otelcol-fpm/otelcol-fpm/test/python"
)

// fpmLine is what the test publisher says it sent.
type fpmLine struct {
	Rank int             `json:"rank"`
	FPM  json.RawMessage `json:"fpm"`
	Bad  string          `json:"bad"`
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
				endpoint = fmt.Sprintf(tcp, ports.Block(t, ranks))
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
