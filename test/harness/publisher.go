// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/otelcol-fpm/otelcol-fpm/test/python"
)

// Publisher is a running test/publisher/fpm_publisher.py: an engine's libzmq
// and msgspec, with numbers that are random but the same each time.
type Publisher struct {
	*Process
	dump string
}

// Sent is a message as it was sent.
type Sent struct {
	Rank     int   `json:"rank"`
	Sequence int64 `json:"sequence"`
	// FPM is the text that its trace row must have.
	FPM json.RawMessage `json:"fpm"`
	// Record is what it says.
	Record Record `json:"-"`
}

// Record is what tests need of an `fpm` object.
type Record struct {
	WorkerID  string  `json:"worker_id"`
	DPRank    int     `json:"dp_rank"`
	CounterID int64   `json:"counter_id"`
	WallTime  float64 `json:"wall_time"`
	Scheduled Group   `json:"scheduled_requests"`
	Queued    Group   `json:"queued_requests"`
}

// Group is scheduled_requests or queued_requests.
type Group struct {
	NumPrefillRequests float64 `json:"num_prefill_requests"`
	SumPrefillTokens   float64 `json:"sum_prefill_tokens"`
	SumPrefillKVTokens float64 `json:"sum_prefill_kv_tokens"`
	NumDecodeRequests  float64 `json:"num_decode_requests"`
	SumDecodeKVTokens  float64 `json:"sum_decode_kv_tokens"`
}

// Publish starts a publisher that writes down what it sends, and waits until it
// is bound. It sends as soon as each rank has a subscriber.
func Publish(tb testing.TB, endpoint string, ranks, count, rate int, args ...string) *Publisher {
	tb.Helper()
	p := &Publisher{dump: filepath.Join(tb.TempDir(), "sent.jsonl")}
	args = append([]string{
		filepath.Join(Root(), "test", "publisher", "fpm_publisher.py"),
		"--endpoint", endpoint, "--dump", p.dump, "--ranks", strconv.Itoa(ranks),
		"--count", strconv.Itoa(count), "--rate", strconv.Itoa(rate),
	}, args...)
	p.Process = start(tb, "the publisher", "", []string{"PYTHONDONTWRITEBYTECODE=1"}, python.Path(tb), args...)
	p.WaitForLine(tb, "bound")
	return p
}

// Sent reads back what was sent, by rank and in order.
func (p *Publisher) Sent(tb testing.TB) map[int][]Sent {
	tb.Helper()
	f, err := os.Open(p.dump)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	all := map[int][]Sent{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s Sent
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			tb.Fatalf("%s: %v", p.dump, err)
		}
		if err := json.Unmarshal(s.FPM, &s.Record); err != nil {
			tb.Fatalf("%s: %v", p.dump, err)
		}
		all[s.Rank] = append(all[s.Rank], s)
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
	return all
}

// Totals is what metrics must say after the messages of a rank.
type Totals struct {
	Messages int
	// Passes have a duration.
	Passes, PassSeconds, PrefillTokens, DecodeTokens, DecodeSeconds float64
	Last                                                            Record
}

// TotalsOf adds messages up.
func TotalsOf(messages []Sent) (t Totals) {
	for i := range messages {
		r := messages[i].Record
		t.Messages++
		t.PrefillTokens += r.Scheduled.SumPrefillTokens
		t.DecodeTokens += r.Scheduled.NumDecodeRequests
		if r.WallTime > 0 {
			t.Passes++
			t.PassSeconds += r.WallTime
			t.DecodeSeconds += r.WallTime * r.Scheduled.NumDecodeRequests
		}
		t.Last = r
	}
	return t
}
