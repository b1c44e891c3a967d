// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	killDirEnv   = "FPM_TEST_KILL_DIR"
	killEpochEnv = "FPM_TEST_KILL_EPOCH"
	killFlush    = 100 * time.Millisecond
	// killSlack is what a loaded machine may add to killFlush.
	killSlack = 2500 * time.Millisecond
)

var killProducers = []string{"gpu-0", "gpu-1"}

// TestKillChild is the process that TestKill kills. It writes under load and
// says which counters were taken and how many rows it believes to be on disk.
func TestKillChild(t *testing.T) {
	dir := os.Getenv(killDirEnv)
	if dir == "" {
		t.Skip("only runs as the child of TestKill")
	}
	r := rigIn(t, dir, func(cfg *Config) {
		cfg.FlushInterval, cfg.RollBytes, cfg.MaxSegments = killFlush, 150_000, 1<<20
	}).start(nil)
	for next := int64(0); ; next += 20 {
		passes := counted(next, next+20)
		for i := range passes {
			passes[i].worker = os.Getenv(killEpochEnv)
		}
		for _, producer := range killProducers {
			r.send(producer, passes...)
		}
		fmt.Println("taken", next+20, "written", r.sum("rows", outcomeWritten))
		time.Sleep(5 * time.Millisecond) // a load that a busy machine keeps up with: rows must not wait in the queue
	}
}

// TestKill kills an exporter under load at random moments, and starts it anew
// in the same directory: every file reads up to the end of a member, what
// counted as written is there, the rows missing are those of the last flush
// interval, and nothing is ever appended to a file of a process before.
// FPM_TEST_LONG=1 does it 200 times.
func TestKill(t *testing.T) {
	kills := 10
	if os.Getenv("FPM_TEST_LONG") == "1" {
		kills = 200
	}
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	before := map[string][]byte{}
	torn, promised := 0, int64(0)
	for epoch := range kills {
		after := time.Duration(20+random.IntN(500)) * time.Millisecond
		if epoch%4 == 3 { // late enough to promise rows by the clock
			after += killFlush + killSlack
		}
		safe, written := killOnce(t, dir, strconv.Itoa(epoch), after)
		promised += safe
		for name, content := range before {
			now, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			require.True(t, bytes.Equal(content, now), "%s of an earlier process was touched", name)
		}
		found := int64(0)
		for _, producer := range killProducers {
			rows, tornFiles := rowsOfEpoch(t, dir, producer, before)
			found += int64(len(rows))
			torn += tornFiles
			require.LessOrEqual(t, tornFiles, 1)
			for i, row := range rows {
				require.Equal(t, int64(i), row.Event.FPM.CounterID)
				require.Equal(t, strconv.Itoa(epoch), row.Event.FPM.WorkerID)
			}
			require.GreaterOrEqual(t, int64(len(rows)), safe, "rows taken more than a flush interval before the kill are there")
		}
		require.GreaterOrEqual(t, found, written, "what counted as written is there")
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, entry := range entries {
			before[entry.Name()], err = os.ReadFile(filepath.Join(dir, entry.Name()))
			require.NoError(t, err)
		}
	}
	assert.Positive(t, promised, "some kills came late enough to promise rows")
	t.Logf("%d kills, %d torn files, %d segments, %d rows promised", kills, torn, len(before), promised)
}

// killOnce returns how many rows of each producer had been taken so long before
// the kill that they must be on disk, and how many of both counted as written.
func killOnce(t *testing.T, dir, epoch string, after time.Duration) (safe, written int64) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestKillChild$")
	child.Env = append(os.Environ(), killDirEnv+"="+dir, killEpochEnv+"="+epoch)
	output, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	type progress struct {
		taken int64
		at    time.Time
	}
	var all []progress
	lines := bufio.NewScanner(output)
	var kill *time.Timer
	killed := make(chan time.Time, 1)
	for lines.Scan() {
		var taken int64
		if n, _ := fmt.Sscanf(lines.Text(), "taken %d written %d", &taken, &written); n != 2 {
			continue
		}
		all = append(all, progress{taken, time.Now()})
		if kill == nil {
			kill = time.AfterFunc(after, func() {
				killed <- time.Now()
				_ = child.Process.Kill()
			})
		}
	}
	require.NotNil(t, kill, "the child did not start")
	at := <-killed
	_ = child.Wait()
	for _, p := range all {
		if at.Sub(p.at) > killFlush+killSlack {
			safe = p.taken
		}
	}
	return safe, written
}

// rowsOfEpoch reads a producer's files that are new, member by member.
func rowsOfEpoch(t *testing.T, dir, producer string, old map[string][]byte) (rows []row, torn int) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "fpm."+producer+".*.jsonl.gz"))
	require.NoError(t, err)
	for i, path := range names { // Glob sorts
		if _, known := old[filepath.Base(path)]; known {
			continue
		}
		text, whole := goodMembers(t, path)
		if !whole {
			torn++
			require.Equal(t, len(names)-1, i, "only the last segment of a producer can be torn")
		}
		for line := range strings.Lines(text) {
			require.True(t, strings.HasSuffix(line, "\n"), "a member holds whole rows")
			var parsed row
			require.NoError(t, json.Unmarshal([]byte(line), &parsed))
			rows = append(rows, parsed)
		}
	}
	return rows, torn
}

// goodMembers returns the text of all members that verify, and whether there
// is nothing behind them.
func goodMembers(t *testing.T, path string) (text string, whole bool) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	buffered := bufio.NewReader(file)
	for {
		if _, err := buffered.Peek(1); err == io.EOF {
			return text, true
		}
		reader, err := gzip.NewReader(buffered)
		if err != nil {
			return text, false
		}
		reader.Multistream(false)
		member, err := io.ReadAll(reader)
		if err != nil {
			return text, false
		}
		text += string(member)
	}
}

func TestGoodMembersSeesATornOne(t *testing.T) {
	var buffer bytes.Buffer
	for _, text := range []string{"first\n", "second\n"} {
		writer := gzip.NewWriter(&buffer)
		_, _ = writer.Write([]byte(text))
		require.NoError(t, writer.Close())
	}
	path := filepath.Join(t.TempDir(), "torn.gz")
	require.NoError(t, os.WriteFile(path, buffer.Bytes()[:buffer.Len()-3], 0o600))
	text, whole := goodMembers(t, path)
	assert.Equal(t, "first\n", text)
	assert.False(t, whole)
}
