// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

// Two ranks of SGLang on ipc sockets: a page, and a sampled trace that ends with
// the last message of each rank.
func TestSGLangIPC(t *testing.T) {
	t.Parallel()
	const ranks, count = 2, 300
	endpoint, page := "ipc://"+filepath.Join(t.TempDir(), "sglang-fpm"), harness.Address(t)
	engine := harness.Publish(t, endpoint, ranks, count, 300, "--heartbeat-every", "9")
	collector := harness.StartCollector(t, harness.CollectorConfig{
		File:     "sglang-ipc.yaml",
		Override: fmt.Sprintf("exporters: {prometheus: {endpoint: %q}}\n", page),
		Env:      []string{"SGLANG_FPM_ENDPOINT=" + endpoint},
	})
	engine.WaitForLine(t, "sent")
	collector.Delivered(t, "metrics", ranks*count)
	collector.Delivered(t, "logs", ranks*count)
	assertPage(t, page, engine.Sent(t))
	collector.Stop(t)
	assertSampled(t, filepath.Join(collector.Dir, "run", "traces", "sglang-fpm"), engine.Sent(t))
}

// assertSampled checks that a trace has some messages of each rank, in order,
// and its last.
func assertSampled(t *testing.T, path string, sent map[int][]harness.Sent) {
	t.Helper()
	last := map[int]harness.Row{}
	rows := harness.Rows(t, path)
	for i := range rows {
		record := rows[i].Record(t)
		if earlier, found := last[record.DPRank]; found {
			require.Greater(t, record.CounterID, earlier.Record(t).CounterID)
		}
		require.Equal(t, string(sent[record.DPRank][record.CounterID].FPM), string(rows[i].Event.FPM))
		assert.Equal(t, "sampled", rows[i].Event.CaptureMode)
		last[record.DPRank] = rows[i]
	}
	assert.Less(t, len(rows), sentOf(sent)/10)
	for rank, messages := range sent {
		row := last[rank]
		assert.Equal(t, string(messages[len(messages)-1].FPM), string(row.Event.FPM), "the last row of rank %d", rank)
	}
}

// tracesOnly runs config/traces-only.yaml with variables of Dynamo until an
// engine of two ranks has sent 300 messages each.
func tracesOnly(t *testing.T, variables ...string) (dir string, sent map[int][]harness.Sent) {
	t.Helper()
	const ranks, count = 2, 300
	port := ports.Block(t, ranks)
	engine := harness.Publish(t, harness.TCP(port), ranks, count, 300)
	dir = t.TempDir()
	collector := harness.StartCollector(t, harness.CollectorConfig{
		File: "traces-only.yaml",
		Env: append([]string{
			"DYN_FORWARDPASS_METRIC_PORT=" + strconv.Itoa(port), "FPM_DP_SIZE=" + strconv.Itoa(ranks),
			"DYN_FPM_OUTPUT_PATH=" + filepath.Join(dir, "traces", "fpm.jsonl.gz"),
		}, variables...),
	})
	engine.WaitForLine(t, "sent")
	collector.Delivered(t, "logs", ranks*count)
	collector.Stop(t)
	return dir, engine.Sent(t)
}

// With Dynamo's own variables as Dynamo takes them, and each of its modes.
func TestTracesOnly(t *testing.T) {
	t.Parallel()
	t.Run("off", func(t *testing.T) {
		t.Parallel()
		dir, _ := tracesOnly(t)
		assert.NoDirExists(t, filepath.Join(dir, "traces"), "tracing is off without DYN_FPM_TRACE")
	})
	t.Run("sampled", func(t *testing.T) {
		t.Parallel()
		dir, sent := tracesOnly(t, "DYN_FPM_TRACE= On ")
		assertSampled(t, filepath.Join(dir, "traces", "fpm"), sent)
	})
	t.Run("full", func(t *testing.T) {
		t.Parallel()
		dir, sent := tracesOnly(t, "DYN_FPM_TRACE=1", "DYN_FPM_MODE=FULL")
		assertRows(t, harness.Rows(t, filepath.Join(dir, "traces", "fpm")), sent)
	})
	t.Run("rolling", func(t *testing.T) {
		t.Parallel()
		dir, sent := tracesOnly(t, "DYN_FPM_TRACE=yes", "DYN_FPM_MODE=full",
			"DYN_FPM_JSONL_GZ_ROLL_BYTES=100000", "DYN_FPM_MAX_SEGMENTS=2")
		path := filepath.Join(dir, "traces", "fpm")
		assert.Len(t, harness.Segments(t, path), 2)
		rows := harness.Rows(t, path)
		require.NotEmpty(t, rows)
		assert.Less(t, len(rows), sentOf(sent), "older segments go")
		newest := rows[len(rows)-1]
		record := newest.Record(t)
		assert.Equal(t, string(sent[record.DPRank][len(sent[record.DPRank])-1].FPM), string(newest.Event.FPM))
	})
}

// Dynamo switches tracing off when a variable is wrong; we say so and do not
// start.
func TestTracesOnlyRefusesWrongVariables(t *testing.T) {
	t.Parallel()
	for variable, said := range map[string]string{
		"DYN_FPM_TRACE=maybe":                `exporters::fpm_trace`,
		"DYN_FPM_TRACE=":                     `exporters::fpm_trace`,
		"DYN_FPM_OUTPUT_PATH=":               `path`,
		"DYN_FPM_OUTPUT_PATH=   ":            `path`,
		"DYN_FPM_MODE=everything":            `mode: "everything"`,
		"DYN_FPM_MODE=":                      `mode`,
		"DYN_FPM_SAMPLE_INTERVAL_MS=0":       `sample_interval`,
		"DYN_FPM_SAMPLE_INTERVAL_MS=-5000":   `sample_interval`,
		"DYN_FPM_SAMPLE_INTERVAL_MS=5s":      `sample_interval`,
		"DYN_FPM_SAMPLE_INTERVAL_MS=1e3":     `sample_interval`,
		"DYN_FPM_SAMPLE_INTERVAL_MS=":        `sample_interval`,
		"DYN_FPM_JSONL_GZ_ROLL_BYTES=0":      `roll_bytes`,
		"DYN_FPM_JSONL_GZ_ROLL_BYTES=256MiB": `roll_bytes`,
		"DYN_FPM_JSONL_GZ_ROLL_BYTES=":       `roll_bytes`,
		"DYN_FPM_MAX_SEGMENTS=-1":            `max_segments`,
		"DYN_FPM_MAX_SEGMENTS=many":          `max_segments`,
		"DYN_FPM_MAX_SEGMENTS=":              `max_segments`,
		"DYN_FORWARDPASS_METRIC_PORT=no":     `endpoint`,
		"DYN_FORWARDPASS_METRIC_PORT=70000":  `70000`,
		"FPM_DP_SIZE=0":                      `dp_size`,
	} {
		t.Run(variable, func(t *testing.T) {
			log := harness.FailToStart(t, harness.CollectorConfig{
				File: "traces-only.yaml", Env: []string{"DYN_FPM_TRACE=1", variable},
			})
			assert.Contains(t, log, said)
		})
	}
}

// The defaults are those that Dynamo documents.
func TestTracesOnlyHasDynamosDefaults(t *testing.T) {
	text, err := os.ReadFile(harness.Config("traces-only.yaml"))
	require.NoError(t, err)
	defaults := map[string]string{}
	for _, match := range regexp.MustCompile(`\$\{env:([A-Z_]+):-([^}]*)\}`).FindAllStringSubmatch(string(text), -1) {
		defaults[match[1]] = match[2]
	}
	assert.Equal(t, map[string]string{
		"DYN_FORWARDPASS_METRIC_PORT": "20380",
		"DYN_FPM_TRACE":               "off",
		"DYN_FPM_OUTPUT_PATH":         "/tmp/dynamo-fpm",
		"DYN_FPM_MODE":                "sampled",
		"DYN_FPM_SAMPLE_INTERVAL_MS":  "5000",
		"DYN_FPM_JSONL_GZ_ROLL_BYTES": "268435456",
		"DYN_FPM_MAX_SEGMENTS":        "4",
		"FPM_DP_SIZE":                 "1",
	}, defaults)
}
