// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
	"github.com/otelcol-fpm/otelcol-fpm/internal/shutdown"
)

// Random engines, consumers and limits, drawn anew for each seed: engines fall
// silent, restart, lose messages, are heard twice; consumers take, refuse for
// now or for good, take their time, hang; the receiver shuts down somewhere in
// between. Whatever happens, the ledger is exact, every message that was taken
// was taken once and in order, and the points are well formed.
func TestLedgerInRandomInterleavings(t *testing.T) {
	seeds := uint64(20)
	if os.Getenv("FPM_TEST_LONG") == "1" {
		seeds = 300
	}
	for seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomInterleaving(t, seed) })
		})
	}
}

func randomInterleaving(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 7))
	metrics, logs := &metricsSink{}, &logsSink{}
	metrics.tell(moody(random.Uint64()))
	logs.tell(moody(random.Uint64()))
	g := newRig(t, testConfig(func(c *Config) {
		c.DPSize = 3
		c.QueueSize = 1 + random.IntN(400)
		c.Batch.MaxMessages = 1 + random.IntN(100)
		c.Batch.Timeout = time.Duration(1+random.IntN(3000)) * time.Millisecond
		c.StaleAfter = time.Duration(500+random.IntN(3000)) * time.Millisecond
		c.RankTTL = c.StaleAfter + time.Duration(random.IntN(20_000))*time.Millisecond
		c.MaxRanks = 1 + random.IntN(8)
		c.GaugeInterval = time.Duration(seed%2) * time.Duration(1+random.IntN(4000)) * time.Millisecond
	}), metrics, logs)
	g.startWithoutIntake()

	var (
		engines sync.WaitGroup
		read    [3]int
	)
	for n, e := range g.receiver.endpoints {
		source := rand.New(rand.NewPCG(seed, uint64(n)))
		engines.Go(func() { read[n] = play(e, source) })
	}
	engines.Wait()
	if random.IntN(2) == 0 {
		time.Sleep(time.Duration(random.IntN(30)) * time.Second)
	}
	began := time.Now()
	stopped := g.stop() // a hanging consumer is its business
	assert.LessOrEqual(t, time.Since(began), shutdown.Timeout)
	g.settled(read[0] + read[1] + read[2])
	time.Sleep(time.Hour) // consumers that hang come back
	c := g.settled(read[0] + read[1] + read[2])

	all := metrics.points()
	wellFormed(t, all)
	var passes int64
	for _, p := range of(all, fpm.MetricStepDuration) {
		passes += int64(p.count)
	}
	if stopped == nil {
		assert.Equal(t, c.delivered["metrics"], passes, "each delivered message is in one point")
	} else { // what hung may be taken after it was counted as dropped
		assert.GreaterOrEqual(t, passes, c.delivered["metrics"])
		assert.LessOrEqual(t, passes, c.accepted)
	}
	inOrder(t, logs)
}

// play is an engine: it connects, speaks, pauses, breaks off. It returns how many
// messages it sent.
func play(e *endpoint, random *rand.Rand) (sent int) {
	counter := int64(0)
	for range 5 + random.IntN(10) {
		e.Connected()
		for range random.IntN(200) {
			switch random.IntN(60) {
			case 0:
				counter = 0
			case 1:
				counter += random.Int64N(1000)
			case 2: // the same again
			case 3:
				time.Sleep(time.Duration(random.IntN(6000)) * time.Millisecond)
			case 4:
				e.Message([][]byte{{}, {1}, {2}}, time.Now())
				sent++
			default:
				counter++
			}
			worker := "shared"
			if random.IntN(10) == 0 {
				worker = fmt.Sprint("own", random.IntN(3))
			}
			p := busy(worker, 0, counter)
			payload := p.payload()
			if random.IntN(10) == 0 {
				payload = p.scoped([]string{"a", "b"}[random.IntN(2)])
			}
			e.Message(envelope(uint64(counter), payload), time.Now())
			sent++
			time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
		}
		e.Disconnected(errNow)
		time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
	}
	return sent
}

// moody is a consumer that changes its mind every few seconds.
func moody(seed uint64) func(context.Context, int) error {
	random := rand.New(rand.NewPCG(seed, 0))
	until, mood := time.Now(), 0
	return func(ctx context.Context, _ int) error {
		if now := time.Now(); now.After(until) {
			until, mood = now.Add(time.Duration(random.IntN(10_000))*time.Millisecond), random.IntN(8)
		}
		switch mood {
		case 0:
			return errNow
		case 1:
			return errEver
		case 2:
			select {
			case <-time.After(time.Duration(random.IntN(3000)) * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		case 3:
			time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
		case 4:
			time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
			return errNow
		case 5:
			if random.IntN(20) == 0 {
				time.Sleep(30 * time.Second) // longer than Shutdown waits
			}
		}
		return nil
	}
}

// inOrder asserts that the log records of each rank have increasing times, so
// that none came twice or out of its turn.
func inOrder(t *testing.T, logs *logsSink) {
	t.Helper()
	last := map[string]pcommon.Timestamp{}
	for _, ld := range logs.all() {
		for _, rl := range ld.ResourceLogs().All() {
			name := fmt.Sprint(rl.Resource().Attributes().AsRaw())
			for _, sl := range rl.ScopeLogs().All() {
				for _, record := range sl.LogRecords().All() {
					assert.Greater(t, record.Timestamp(), last[name])
					last[name] = record.Timestamp()
				}
			}
		}
	}
}
