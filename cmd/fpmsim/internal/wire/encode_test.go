// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/otelcol-fpm/otelcol-fpm/cmd/fpmsim/internal/load"
	"github.com/otelcol-fpm/otelcol-fpm/test/python"
)

// jsonGroup and jsonMessage give a message to msgspec as JSON. Numbers travel
// as text that both sides read to the same bits.
type jsonGroup struct {
	NumPrefillRequests int     `json:"num_prefill_requests"`
	SumPrefillTokens   int     `json:"sum_prefill_tokens"`
	VarPrefillLength   float64 `json:"var_prefill_length"`
	SumPrefillKVTokens int     `json:"sum_prefill_kv_tokens"`
	NumDecodeRequests  int     `json:"num_decode_requests"`
	SumDecodeKVTokens  int     `json:"sum_decode_kv_tokens"`
	VarDecodeKVTokens  float64 `json:"var_decode_kv_tokens"`
}

type jsonMessage struct {
	WorkerID  string    `json:"worker_id"`
	DPRank    int       `json:"dp_rank"`
	CounterID uint64    `json:"counter_id"`
	WallTime  float64   `json:"wall_time"`
	Scheduled jsonGroup `json:"scheduled_requests"`
	Queued    jsonGroup `json:"queued_requests"`
}

// messages are rows at every edge of the number and string forms, and passes
// of every profile.
func messages(t *testing.T) []Message {
	t.Helper()
	out := []Message{{}, {WorkerID: `"quoted" \ tab` + "\t\x01 ünï ☃ 🚀", DPRank: 7}}
	for _, n := range []int{0, 31, 32, 255, 256, 65535, 65536} {
		out = append(out, Message{WorkerID: strings.Repeat("w", n)})
	}
	for _, n := range []uint64{0, 1, 127, 128, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1, math.MaxInt64, math.MaxUint64} {
		out = append(out, Message{CounterID: n})
	}
	for _, f := range []float64{0, 1, 0.025, 1e-7, 5e-324, 1e100, 123456.789} {
		out = append(out, Message{Pass: load.Pass{WallTime: f, Queued: load.Requests{VarPrefillLength: f}}})
	}
	for _, name := range load.ProfileNames() {
		p, err := load.ProfileByName(name)
		require.NoError(t, err)
		e := load.NewEngine(p, 5, 1)
		for i := range 300 {
			out = append(out, Message{WorkerID: "vllm-0", DPRank: 1, CounterID: uint64(i), Pass: e.Step().Pass})
		}
	}
	return out
}

func TestBytesEqualMsgspec(t *testing.T) {
	interpreter := python.Path(t)
	all := messages(t)
	var in bytes.Buffer
	lines := json.NewEncoder(&in)
	for _, m := range all {
		require.NoError(t, lines.Encode(jsonMessage{
			m.WorkerID, m.DPRank, m.CounterID, m.Pass.WallTime, jsonGroup(m.Pass.Scheduled), jsonGroup(m.Pass.Queued),
		}))
	}
	cmd := exec.Command(interpreter, "testdata/encode.py")
	cmd.Stdin = &in
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	hexes, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	want := strings.Fields(string(hexes))
	require.Len(t, want, len(all))
	for i, m := range all {
		require.Equal(t, want[i], hex.EncodeToString(AppendMessage(nil, &m)), "%+v", m)
	}
}

// The payload also says what was meant, to a decoder that is not msgspec.
func TestPayloadDecodes(t *testing.T) {
	m := Message{WorkerID: "w", DPRank: 3, CounterID: 300, Pass: load.Pass{
		WallTime:  0.0155,
		Scheduled: load.Requests{SumPrefillKVTokens: 4, VarDecodeKVTokens: 7.5},
		Queued:    load.Requests{SumDecodeKVTokens: 16},
	}}
	var got map[string]any
	require.NoError(t, msgpack.Unmarshal(AppendMessage([]byte{}, &m), &got))
	assert.EqualValues(t, 1, got["version"])
	assert.EqualValues(t, 300, got["counter_id"])
	assert.EqualValues(t, 3, got["dp_rank"])
	assert.Equal(t, math.Float64bits(0.0155), math.Float64bits(got["wall_time"].(float64)))
	scheduled, queued := got["scheduled_requests"].(map[string]any), got["queued_requests"].(map[string]any)
	assert.Len(t, scheduled, 7)
	assert.EqualValues(t, 4, scheduled["sum_prefill_kv_tokens"])
	assert.Equal(t, math.Float64bits(7.5), math.Float64bits(scheduled["var_decode_kv_tokens"].(float64)))
	assert.Len(t, queued, 6)
	assert.NotContains(t, queued, "sum_prefill_kv_tokens")
	assert.EqualValues(t, 16, queued["sum_decode_kv_tokens"])
}
