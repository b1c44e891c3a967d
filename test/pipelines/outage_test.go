// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-fpm/otelcol-fpm/test/harness"
	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

const (
	outageRanks = 2
	outageRate  = 100 // messages a second and rank
	// aroundOutage is how long the engine sends before and after an outage.
	aroundOutage = 10 * time.Second
)

// outageTime is how long the gateway is away: more than a minute with
// FPM_TEST_LONG.
func outageTime() time.Duration {
	if os.Getenv("FPM_TEST_LONG") == "1" {
		return 65 * time.Second
	}
	return 4 * time.Second
}

// outage is an engine that sends, an agent with config/otlp-gateway.yaml, and a
// gateway that is away.
type outage struct {
	gateway *gateway
	agent   *harness.Collector
	engine  *harness.Publisher
	began   time.Time
}

func beginOutage(t *testing.T) *outage {
	t.Helper()
	o := &outage{gateway: newGateway(t)}
	o.gateway.start(t)
	endpoint := harness.TCP(ports.Block(t, outageRanks))
	count := int((outageTime() + aroundOutage).Seconds()) * outageRate
	o.engine = harness.Publish(t, endpoint, outageRanks, count, outageRate)
	o.agent = harness.StartCollector(t, harness.CollectorConfig{
		File:     "otlp-gateway.yaml",
		Override: fpmAt(endpoint, outageRanks),
		Env:      []string{"OTLP_ENDPOINT=" + o.gateway.grpc},
	})
	o.gateway.rows(t, outageRanks*outageRate)
	o.gateway.Stop(t)
	o.began = time.Now()
	return o
}

// lasts waits until a part of the outage is over. The agent then has what came
// meanwhile on disk.
func (o *outage) lasts(t *testing.T, part float64) {
	t.Helper()
	time.Sleep(time.Until(o.began.Add(time.Duration(part * float64(outageTime())))))
	require.NotContains(t, o.engine.Log(), "\nsent\n", "the engine has ended before the outage")
	o.agent.Until(t, "nothing waits in the agent", func(p harness.Page) bool {
		return p.Sum("otelcol_exporter_queue_size", "data_type", "logs") > 0 && p.Sum("otelcol_exporter_queue_size", "data_type", "metrics") > 0
	})
	files, err := filepath.Glob(filepath.Join(o.agent.Dir, "run", "queue", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "the queue is not on disk")
}

// end brings the gateway back, lets the engine end and waits until the agent
// has sent all that it heard. It stops both and says what the agent's last
// process delivered to its pipelines of logs.
func (o *outage) end(t *testing.T) (delivered int) {
	t.Helper()
	o.lasts(t, 1)
	o.gateway.start(t)
	back := time.Now()
	o.engine.WaitForLine(t, "sent")
	// The exporter waits up to 45 s between two attempts, and gRPC up to 2
	// minutes before it connects again.
	busy := time.Now()
	harness.WaitFor(t, 3*time.Minute, "the agent does not come to rest", func() bool {
		p := harness.Scrape(t, o.agent.Telemetry)
		delivered = p.Count("otelcol_receiver_fpm_delivered", "signal", "logs")
		if p.Count("otelcol_receiver_fpm_messages") != delivered || p.Count("otelcol_receiver_fpm_delivered", "signal", "metrics") != delivered ||
			p.Sum("otelcol_exporter_queue_size")+p.Sum("otelcol_exporter_in_flight_requests") > 0 {
			busy = time.Now()
		}
		return time.Since(busy) > time.Second
	})
	t.Logf("away for %v, all arrived %v later", back.Sub(o.began).Round(time.Second), busy.Sub(back).Round(time.Second))
	o.agent.Stop(t)
	return delivered
}

// The gateway is away for a minute while the engine works: all of it arrives,
// each row once and in order, each pass counted once.
func TestGatewayOutage(t *testing.T) {
	t.Parallel()
	o := beginOutage(t)
	delivered := o.end(t)
	sent := o.engine.Sent(t)
	assert.Equal(t, sentOf(sent), delivered)
	o.gateway.assertHasAll(t, sent)
	o.gateway.Stop(t)
	assertRows(t, harness.Rows(t, o.gateway.traces), sent)
}

// The agent ends in the middle of the outage and is started again: what it had
// on disk arrives too. What the engine sent between the two processes nobody
// heard.
func TestGatewayOutageAndAgentRestart(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*testing.T, *harness.Collector){
		"stopped": func(t *testing.T, agent *harness.Collector) { t.Helper(); agent.Stop(t) },
		"killed":  func(_ *testing.T, agent *harness.Collector) { agent.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := beginOutage(t)
			o.lasts(t, 0.5)
			first := harness.Scrape(t, o.agent.Telemetry).Count("otelcol_receiver_fpm_delivered", "signal", "logs")
			stop(t, o.agent)
			o.agent = harness.StartCollector(t, o.agent.Config)
			second := o.end(t)
			o.gateway.Stop(t)

			sent := o.engine.Sent(t)
			heard := heardOf(t, harness.Rows(t, o.gateway.traces), sent)
			assert.GreaterOrEqual(t, sentOf(heard), first+second, "rows lost")
			assert.Less(t, sentOf(heard), sentOf(sent), "the agent was never away")
			passes := o.gateway.behind.passes()
			if name == "stopped" {
				assert.Equal(t, passesOf(heard), passes)
				return
			}
			// The queues of metrics and of logs ended within a batch of each other.
			for rank, want := range passesOf(heard) {
				assert.InDelta(t, want, passes[rank], outageRate/2, "passes of rank %d", rank)
			}
		})
	}
}

// heardOf are the messages that two processes of an agent heard: the rows of
// each rank are those of its messages, byte for byte and each once, and lack one
// stretch of them. A batch that was on its way when the first process ended is
// sent again at the end, so rows come in another order.
func heardOf(t *testing.T, rows []harness.Row, sent map[int][]harness.Sent) map[int][]harness.Sent {
	t.Helper()
	heard := map[int][]harness.Sent{}
	slices.SortStableFunc(rows, func(a, b harness.Row) int {
		return int(a.Record(t).CounterID - b.Record(t).CounterID)
	})
	gaps := map[int]int{}
	next := map[int]int64{}
	for i := range rows {
		record := rows[i].Record(t)
		rank, counter := record.DPRank, record.CounterID
		require.GreaterOrEqual(t, counter, next[rank], "row %d of rank %d came twice", counter, rank)
		require.Equal(t, string(sent[rank][counter].FPM), string(rows[i].Event.FPM), "row %d of rank %d", counter, rank)
		if counter > next[rank] {
			gaps[rank]++
		}
		next[rank] = counter + 1
		heard[rank] = append(heard[rank], sent[rank][counter])
	}
	for rank, messages := range sent {
		assert.Equal(t, int64(len(messages)), next[rank], "the last rows of rank %d are missing", rank)
		assert.LessOrEqual(t, gaps[rank], 1, "rows of rank %d are missing", rank)
	}
	return heard
}

func sentOf(sent map[int][]harness.Sent) (n int) {
	for _, messages := range sent {
		n += len(messages)
	}
	return n
}
