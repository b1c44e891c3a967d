// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pythonReader is how trace files are read by the tools around Dynamo: the
// standard library, line by line.
const pythonReader = `
import gzip, json, sys
for path in sys.argv[1:]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            event = row["event"]
            assert event["schema"] == "dynamo.fpm.trace.v1", event
            assert isinstance(row["timestamp"], int)
            fpm = event["fpm"]
            assert fpm["version"] == 1
            for group in ("scheduled_requests", "queued_requests"):
                for name, value in fpm[group].items():
                    assert type(value) is (float if name.startswith("var_") else int), (name, value)
            print(event["source"]["producer_id"], fpm["counter_id"])
`

func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

// TestFilesReadLikeDynamos: gzip accepts and Python reads every file, whatever
// the options; open files too, up to the last flush.
func TestFilesReadLikeDynamos(t *testing.T) {
	python, gzip := tool(t, "python3"), tool(t, "gzip")
	fsyncs := []string{fsyncNever, fsyncRoll, fsyncFlush}
	for _, level := range []int{1, 3, 6, 9} {
		for i, roll := range []int64{1, 20_000, 1 << 30} {
			fsync := fsyncs[(level+i)%len(fsyncs)] // does not change a byte
			t.Run(fmt.Sprintf("level=%d/roll=%d/fsync=%s", level, roll, fsync), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, func(cfg *Config) {
					cfg.CompressionLevel, cfg.Fsync, cfg.RollBytes, cfg.MaxSegments = level, fsync, roll, 1000
					cfg.FlushInterval = time.Millisecond
				}).start(nil)
				const rows = 60
				for i := range int64(rows / 20) {
					r.send("gpu/7", counted(20*i, 20*i+20)...)
				}
				require.Eventually(t, func() bool { return r.sum("rows", outcomeWritten) == rows }, 20*time.Second, time.Millisecond)
				readWith(t, python, gzip, r, rows) // still open
				r.stop()
				readWith(t, python, gzip, r, rows)
			})
		}
	}
}

func readWith(t *testing.T, python, gzip string, r *rig, rows int) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(r.dir, "*.jsonl.gz"))
	require.NoError(t, err)
	output, err := exec.Command(gzip, append([]string{"-t"}, paths...)...).CombinedOutput()
	require.NoError(t, err, string(output))
	output, err = exec.Command(python, append([]string{"-c", pythonReader}, paths...)...).CombinedOutput()
	require.NoError(t, err, string(output))
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	require.Len(t, lines, rows)
	for i, line := range lines {
		assert.Equal(t, fmt.Sprintf("gpu/7 %d", i), line)
	}
}
