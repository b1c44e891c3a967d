// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
)

const (
	loadEndpoints = 1024
	loadRate      = 50 // messages a second and endpoint
	loadTime      = 20 * time.Second
)

// TestLoad subscribes to 1,024 publishers of 50 messages a second each, which
// another process is, and says what that costs this one.
//
//	FPM_TEST_LONG=1 go test -run '^TestLoad$' -v ./receiver/fpmreceiver/
func TestLoad(t *testing.T) {
	if os.Getenv("FPM_TEST_LONG") != "1" {
		t.Skip("takes a minute and both cores; FPM_TEST_LONG=1 runs it")
	}
	for name, test := range map[string]struct {
		metrics consumer.Metrics
		logs    consumer.Logs
	}{
		"metrics": {consumertest.NewNop(), nil},
		"logs":    {nil, consumertest.NewNop()},
		"both":    {consumertest.NewNop(), consumertest.NewNop()},
	} {
		t.Run(name, func(t *testing.T) {
			publishers := exec.Command(os.Args[0], "-test.run=^TestLoadPublishers$")
			publishers.Env = append(os.Environ(), "FPM_LOAD_PUBLISHERS=1")
			publishers.Stderr = os.Stderr
			in, err := publishers.StdinPipe()
			require.NoError(t, err)
			out, err := publishers.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, publishers.Start())
			lines := bufio.NewScanner(out)
			g := newRig(t, testConfig(func(c *Config) {
				c.Endpoint = ""
				for range loadEndpoints {
					require.True(t, lines.Scan())
					c.Endpoints = append(c.Endpoints, EndpointConfig{Endpoint: lines.Text(), DPSize: 1})
				}
			}), test.metrics, test.logs)
			g.start()
			time.Sleep(5 * time.Second) // all are connected
			cpu, read, began := cpuTime(t), g.counts().accepted, time.Now()
			time.Sleep(loadTime)
			elapsed := time.Since(began)
			cpu, read = cpuTime(t)-cpu, g.counts().accepted-read
			runtime.GC()
			var memory runtime.MemStats
			runtime.ReadMemStats(&memory)
			resident := residentMiB(t)
			in.Close() // the publishers fall silent, and say what they sent
			require.True(t, lines.Scan())
			var sent int
			_, err = fmt.Sscan(lines.Text(), &sent)
			require.NoError(t, err)
			g.read(sent)
			g.shutdown()
			require.NoError(t, publishers.Wait())
			c := g.settled(sent)
			assert.Zero(t, c.lost)
			t.Logf("%s: %d endpoints, %.0f messages/s, %.2f cores, %.1f µs CPU a message, heap %d MiB, resident at most %d MiB, dropped %v",
				name, loadEndpoints, float64(read)/elapsed.Seconds(), cpu.Seconds()/elapsed.Seconds(),
				float64(cpu.Microseconds())/float64(read), memory.HeapAlloc>>20, resident, c.dropped)
		})
	}
}

// TestLoadPublishers is the other process.
func TestLoadPublishers(t *testing.T) {
	if os.Getenv("FPM_LOAD_PUBLISHERS") != "1" {
		t.Skip("a part of TestLoad")
	}
	var (
		sent atomic.Int64
		stop = make(chan struct{})
	)
	for rank := range loadEndpoints {
		engine := publish(t, "PUB", func(conn net.Conn) {
			time.Sleep(time.Duration(rank) * time.Second / loadRate / loadEndpoints)
			ticker := time.NewTicker(time.Second / loadRate)
			defer ticker.Stop()
			for n := int64(0); ; n++ {
				select {
				case <-ticker.C:
				case <-stop:
					untilClosed(conn)
					return
				}
				if _, err := conn.Write(wire(busy(fmt.Sprint("w", rank), rank, n).frames())); err != nil {
					return
				}
				sent.Add(1)
			}
		})
		fmt.Println(engine.endpoint())
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	close(stop)
	time.Sleep(time.Second)
	fmt.Println(sent.Load())
	time.Sleep(2 * time.Second)
}

func cpuTime(t *testing.T) time.Duration {
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// residentMiB is the most memory that the process ever had.
func residentMiB(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kib int
	_, err = fmt.Sscan(rest, &kib)
	require.NoError(t, err)
	return kib >> 10
}
