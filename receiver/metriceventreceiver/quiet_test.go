// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// Quiet connections cost little, and nobody else.
func TestQuietConnections(t *testing.T) {
	quiet := 1000
	if long() {
		quiet = 10_000
	}
	var files syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files))
	if files.Max < uint64(quiet)+200 {
		t.Skipf("a process may have %d files open, and %d connections need more", files.Max, quiet)
	}
	tests := map[string]struct {
		greet          bool
		maxConnections int
	}{
		"producers that do not push": {true, quiet + 2},
		"peers that say nothing":     {false, quiet + 2},
		"more than max_connections":  {false, quiet / 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			others := goleak.IgnoreCurrent()
			var c *crowd
			counts := beside(t, func(c *Config) { c.MaxConnections = test.maxConnections }, func(g *rig) {
				memory, goroutines := inUse(), runtime.NumGoroutine()
				by := func() map[string]int64 { return g.counter("refused", "reason") }
				c = g.crowd(quiet, test.greet)
				// On a slow machine the first ones are gone before the last one has come.
				require.Eventually(t, func() bool {
					return g.receiver.server.connections() == min(1+quiet, test.maxConnections) || by()["timeout"] > 0
				}, patience, time.Millisecond)
				open := g.receiver.server.connections() - 1
				held := inUse() - memory
				t.Logf("%d of %d quiet connections open: %d bytes each, %d MiB together, %d goroutines",
					open, quiet, held/int64(open), held>>20, runtime.NumGoroutine()-goroutines)
				assert.Less(t, held, int64(open)*20<<10)

				// Where there is no place now, there is one after handshakeTimeout.
				second, refused := g.pushUntilTaken()
				pushes := func(p *pusher, pid int) {
					p.says(pid, 0, wireEvents(50, nil)...)
					g.eventually("producer_accepted", "producer", fmt.Sprintf("gpu-7:%d:%d", pid, testStart), 50)
				}
				pushes(second, 2)
				if test.greet {
					assert.Equal(t, test.maxConnections, g.receiver.server.connections())
					g.dial().isClosed()
					g.eventually("refused", "reason", "limit", 1)
					return
				}
				assert.Equal(t, quiet, c.closed())
				require.Eventually(t, func() bool { return by()["timeout"]+by()["limit"] == int64(quiet+refused) }, patience, pollEvery, "%v", by())
				t.Logf("refused: %v, of which %d a producer that tried again", by(), refused)
				assert.Positive(t, by()["timeout"])
				assert.Equal(t, test.maxConnections < quiet, by()["limit"] > 0)
				pushes(g.push(), 3)
			}, map[bool]int64{true: 50, false: 100}[test.greet])
			assert.Empty(t, counts.rejectedBy)
			if test.greet {
				assert.Equal(t, quiet, c.closed())
			}
			goleak.VerifyNone(t, others)
		})
	}
}

// inUse is the memory that the process needs now, in bytes.
func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// pushUntilTaken connects as a library does: where there is no place it tries
// again. It also returns how often it was refused.
func (g *rig) pushUntilTaken() (p *pusher, refused int) {
	g.t.Helper()
	for end := time.Now().Add(patience); ; refused++ {
		p = g.dial()
		err := p.begin()
		if err == nil {
			return p, refused
		}
		require.False(g.t, time.Now().After(end), "never taken: %v", err)
		time.Sleep(100 * time.Millisecond)
	}
}

// crowd is a process of its own with many connections to the receiver: both ends
// in one process would halve the files there are for each.
type crowd struct {
	t   *testing.T
	out *bufio.Scanner
}

const crowdEnv = "FPM_TEST_CROWD"

// crowd returns when the connections are open and, if they greet, have shaken
// hands.
func (g *rig) crowd(connections int, greet bool) *crowd {
	g.t.Helper()
	network, address := g.address()
	cmd := exec.Command(os.Args[0], "-test.run=^TestCrowd$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d %t", crowdEnv, network, address, connections, greet))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(g.t, err)
	require.NoError(g.t, cmd.Start())
	g.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	c := &crowd{g.t, bufio.NewScanner(out)}
	require.Equal(g.t, connections, c.says("open"))
	return c
}

// closed waits for the receiver to close the connections, and returns how many
// it has closed.
func (c *crowd) closed() int { return c.says("closed") }

func (c *crowd) says(what string) (n int) {
	c.t.Helper()
	var said []string
	for c.out.Scan() {
		if number, ok := strings.CutPrefix(c.out.Text(), what+" "); ok {
			_, err := fmt.Sscan(number, &n)
			require.NoError(c.t, err)
			return n
		}
		said = append(said, c.out.Text())
	}
	require.Fail(c.t, "the crowd has gone", "%v %v", said, c.out.Err())
	return 0
}

// TestCrowd is the process of a crowd. The runtime of Go has raised its limit of
// open files as far as it goes.
func TestCrowd(t *testing.T) {
	if os.Getenv(crowdEnv) == "" {
		t.Skip("is run by TestQuietConnections")
	}
	var (
		network, address string
		connections      int
		greet            bool
	)
	_, err := fmt.Sscan(os.Getenv(crowdEnv), &network, &address, &connections, &greet)
	require.NoError(t, err)
	all := make([]*pusher, connections)
	for i := range all {
		all[i] = dial(t, network, address)
		if greet {
			require.NoError(t, all[i].begin())
		}
	}
	fmt.Println("open", len(all))
	closed, end := 0, time.Now().Add(5*patience)
	for _, p := range all {
		require.NoError(t, p.nc.SetReadDeadline(end))
		if _, err := io.Copy(io.Discard, p.nc); !errors.Is(err, os.ErrDeadlineExceeded) {
			closed++
		}
	}
	fmt.Println("closed", closed)
}
