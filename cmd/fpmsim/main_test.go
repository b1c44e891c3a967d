// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
	"github.com/otelcol-fpm/otelcol-fpm/test/python"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// line is what testdata/subscribe.py prints.
type line struct {
	Endpoint string
	Frames   int
	Topic    string
	Sequence uint64
	Payload  struct {
		Version   int
		WorkerID  string  `json:"worker_id"`
		DPRank    int     `json:"dp_rank"`
		CounterID uint64  `json:"counter_id"`
		WallTime  float64 `json:"wall_time"`
	}
}

func TestLibzmqSubscriber(t *testing.T) {
	interpreter := python.Path(t)
	for name, endpoint := range map[string]string{
		"tcp": fmt.Sprintf("tcp://127.0.0.1:%d", ports.Block(t, 2)),
		"ipc": "ipc://" + filepath.Join(t.TempDir(), "fpm"),
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"--endpoint", endpoint, "--rate", "500", "--worker-id", "vllm-0"}
			o, err := parseOptions(args, nil)
			require.NoError(t, err)

			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var out strings.Builder
			ended := make(chan int)
			go func() { ended <- run(ctx, args, &out, &out) }()

			const count = 500
			cmd := exec.CommandContext(t.Context(), interpreter, append([]string{"testdata/subscribe.py", strconv.Itoa(count)}, o.endpoints...)...)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			stdout, err := cmd.Output()
			require.NoError(t, err, stderr.String())
			seen := map[string]int{}
			last := map[string]uint64{}
			lines := bufio.NewScanner(strings.NewReader(string(stdout)))
			for lines.Scan() {
				var l line
				require.NoError(t, json.Unmarshal(lines.Bytes(), &l))
				require.Equal(t, 3, l.Frames)
				require.Empty(t, l.Topic)
				require.Equal(t, 1, l.Payload.Version)
				require.Equal(t, "vllm-0", l.Payload.WorkerID)
				require.Equal(t, o.endpoints[l.Payload.DPRank], l.Endpoint)
				require.Equal(t, l.Sequence, l.Payload.CounterID)
				if seen[l.Endpoint] > 0 {
					require.Equal(t, last[l.Endpoint]+1, l.Sequence, "lost a message")
				}
				seen[l.Endpoint]++
				last[l.Endpoint] = l.Sequence
			}
			assert.Equal(t, map[string]int{o.endpoints[0]: count, o.endpoints[1]: count}, seen)

			stop()
			select {
			case code := <-ended:
				assert.Zero(t, code)
			case <-time.After(10 * time.Second):
				t.Fatal("does not end")
			}
			assert.Contains(t, out.String(), "rank 1 publishes at "+o.endpoints[1]+"\n")
			assert.Regexp(t, `rank 1 published \d+ messages, \d+ dropped\n`, out.String())
		})
	}
}

func TestEndpointInUse(t *testing.T) {
	port := ports.Block(t, 2)
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+1))
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	var out, errs strings.Builder
	code := run(t.Context(), []string{"--endpoint", fmt.Sprintf("tcp://127.0.0.1:%d", port)}, &out, &errs)
	assert.Equal(t, 1, code)
	assert.Contains(t, errs.String(), fmt.Sprintf("cannot publish at tcp://127.0.0.1:%d: ", port+1))
	assert.Empty(t, out.String())
}

func TestDurationEndsIt(t *testing.T) {
	var out, errs strings.Builder
	code := run(t.Context(), []string{"--endpoint", "ipc://" + filepath.Join(t.TempDir(), "s"), "--duration", "200ms"}, &out, &errs)
	assert.Zero(t, code, errs.String())
	assert.Equal(t, 2, strings.Count(out.String(), " messages, "))
}

func TestBadFlag(t *testing.T) {
	var out, errs strings.Builder
	assert.Equal(t, 2, run(t.Context(), []string{"--rate", "fast"}, &out, &errs))
	assert.Equal(t, 1, strings.Count(errs.String(), "\n"), errs.String())
}
