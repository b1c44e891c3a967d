// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
	"github.com/otelcol-fpm/otelcol-fpm/receiver/fpmtracereceiver/internal/metadata"
)

// killDir tells a process of this test that it is the one to be killed, and
// where the traces are.
const killDir = "FPM_TRACE_KILL_DIR"

// TestKillRepeatsAtMostOneMember: a process that reads traces is killed again
// and again. Nothing is lost, order is kept, and what comes twice after a kill
// are rows of one member of a file.
func TestKillRepeatsAtMostOneMember(t *testing.T) {
	if dir := os.Getenv(killDir); dir != "" {
		readUntilKilled(t, dir)
		return
	}
	random := rand.New(rand.NewPCG(7, uint64(time.Now().UnixNano())))
	r := newRig(t, nil)
	ends := map[string][]int64{} // of the members
	total := 0
	for _, producer := range []string{"a", "b", "c"} {
		next := int64(0)
		for member := range 8 {
			rows := 1 + random.Int64N(2500)
			r.append(r.path(producer, member/4), rowsOf(producer, next, next+rows))
			next += rows
			ends[producer] = append(ends[producer], next)
			total += int(rows)
		}
	}

	delivered := filepath.Join(r.dir, "delivered")
	kills := 0
	for rows := 0; rows < total; kills++ {
		process := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
		process.Env = append(os.Environ(), killDir+"="+r.dir)
		var said strings.Builder
		process.Stdout, process.Stderr = &said, &said
		require.NoError(t, process.Start())
		// Let some more rows come, and kill it at any moment after that.
		before, deadline := rows, time.Now().Add(30*time.Second)
		for wanted := before + total/8; rows < min(wanted, total) && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
			rows = len(distinct(t, delivered))
		}
		time.Sleep(time.Duration(random.IntN(5000)) * time.Microsecond)
		require.NoError(t, process.Process.Kill())
		_ = process.Wait() // is an error: it was killed
		rows = len(distinct(t, delivered))
		require.Greater(t, rows, before, "nothing came: %s", said.String())
	}
	require.Greater(t, kills, 3)

	lines := readLines(t, delivered)
	last := map[string]int64{}
	repeated := 0
	for _, line := range lines {
		var producer string
		var counter int64
		_, err := fmt.Sscan(line, &producer, &counter)
		require.NoError(t, err)
		expected, known := last[producer]
		if known {
			expected++
		}
		require.LessOrEqual(t, counter, expected, "a row of %s is lost", producer)
		if counter < expected {
			// Back to somewhere in the member in which the last row was, whose rows
			// come again from there.
			repeated += int(expected - counter)
			start := int64(0)
			for _, end := range ends[producer] {
				if end < expected {
					start = end
				}
			}
			require.GreaterOrEqual(t, counter, start, "rows of %s of more than one member are repeated", producer)
		}
		last[producer] = counter
	}
	for producer, ends := range ends {
		require.Equal(t, ends[len(ends)-1]-1, last[producer])
	}
	t.Logf("%d rows, %d kills, %d rows repeated", total, kills, repeated)
}

func distinct(t *testing.T, path string) map[string]bool {
	rows := map[string]bool{}
	for _, line := range readLines(t, path) {
		rows[line] = true
	}
	return rows
}

// readLines reads the whole lines of a file; a kill may have cut the last one.
func readLines(t *testing.T, path string) (lines []string) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	whole := string(text[:strings.LastIndexByte(string(text), '\n')+1])
	for scanner := bufio.NewScanner(strings.NewReader(whole)); scanner.Scan(); {
		lines = append(lines, scanner.Text())
	}
	return lines
}

// readUntilKilled reads traces and notes each row in a file as delivered, a
// batch at once.
func readUntilKilled(t *testing.T, dir string) {
	file, err := os.OpenFile(filepath.Join(dir, "delivered"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	next, err := consumer.NewLogs(func(_ context.Context, logs plog.Logs) error {
		var text strings.Builder
		for _, resource := range logs.ResourceLogs().All() {
			producer := fpm.SourceOf(resource.Resource()).ProducerID
			for _, entry := range resource.ScopeLogs().At(0).LogRecords().All() {
				counter, _ := entry.Body().Map().Get("counter_id")
				fmt.Fprintln(&text, producer, counter.Int())
			}
		}
		_, err := file.WriteString(text.String())
		time.Sleep(time.Millisecond) // a kill should also come before positions are stored
		return err
	})
	require.NoError(t, err)

	cfg := createDefaultConfig().(*Config)
	cfg.Include = []string{filepath.Join(dir, "*.jsonl.gz")}
	cfg.Storage = &storageID
	settings := receivertest.NewNopSettings(metadata.Type)
	settings.ID = component.NewID(metadata.Type)
	host := &statusHost{extensions: map[component.ID]component.Component{storageID: openStorage(t, filepath.Join(dir, "offsets"))}}
	part, err := NewFactory().CreateLogs(context.Background(), settings, cfg, next)
	require.NoError(t, err)
	require.NoError(t, part.Start(context.Background(), host))
	time.Sleep(time.Minute)
	t.Error("was not killed")
}
