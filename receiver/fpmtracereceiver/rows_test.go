// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

func pack(t testing.TB, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	packer.Lock()
	defer packer.Unlock()
	packer.Reset(&out)
	_, err := packer.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, packer.Close())
	return out.Bytes()
}

// packer is large, and tests write thousands of members.
var packer = struct {
	sync.Mutex
	*gzip.Writer
}{Writer: gzip.NewWriter(nil)}

// rowOf is a row in short.
type rowOf struct {
	producer string
	worker   string
	rank     int64
	counter  int64
	sampled  bool
	at       time.Time // began, 20 ms later for each counter, if zero
	wallTime string    // 0.0123 if empty
}

// began is the time of the first row.
var began = time.Date(2026, 6, 30, 0, 0, 1, 250_000_000, time.UTC)

func (o rowOf) String() string {
	mode := fpm.CaptureFull
	if o.sampled {
		mode = fpm.CaptureSampled
	}
	if o.producer == "" {
		o.producer = "p"
	}
	if o.at.IsZero() {
		o.at = began.Add(time.Duration(o.counter) * 20 * time.Millisecond)
	}
	return fmt.Sprintf(`{"timestamp":%d,"event":{"schema":"dynamo.fpm.trace.v1","source":{"namespace":"default","component":"backend","producer_id":%q},"capture_mode":%q,"observed_at_unix_ms":%d,"fpm":%s}}`+"\n",
		o.counter*20, o.producer, mode, o.at.UnixMilli(), o.record())
}

func (o rowOf) record() string {
	if o.wallTime == "" {
		o.wallTime = "0.0123"
	}
	return fmt.Sprintf(`{"version":1,"worker_id":%q,"dp_rank":%d,"counter_id":%d,"wall_time":%s,"scheduled_requests":{"num_prefill_requests":1,"sum_prefill_tokens":512,"var_prefill_length":0.0,"sum_prefill_kv_tokens":64,"num_decode_requests":%d,"sum_decode_kv_tokens":16384,"var_decode_kv_tokens":100.0},"queued_requests":{"num_prefill_requests":2,"sum_prefill_tokens":2048,"var_prefill_length":256.5,"num_decode_requests":0,"sum_decode_kv_tokens":0,"var_decode_kv_tokens":0.0}}`,
		o.worker, o.rank, o.counter, o.wallTime, o.counter%64)
}

// rows are the rows of producer p with counters from…to−1.
func rows(from, to int64) string { return rowsOf("p", from, to) }

func rowsOf(producer string, from, to int64) string {
	var text strings.Builder
	for counter := from; counter < to; counter++ {
		text.WriteString(rowOf{producer: producer, worker: producer, counter: counter}.String())
	}
	return text.String()
}

func span(from, to int64) (counters []int64) {
	for counter := from; counter < to; counter++ {
		counters = append(counters, counter)
	}
	return counters
}
