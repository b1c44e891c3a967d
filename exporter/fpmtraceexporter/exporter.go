// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-fpm/otelcol-fpm/internal/lograte"
	"github.com/otelcol-fpm/otelcol-fpm/internal/segment"
)

// traceExporter takes forward passes from both signals and has them written.
type traceExporter struct {
	cfg       *Config
	settings  exporter.Settings
	mode      string
	telemetry *telemetry // nil before start
	status    status
	intakes   sync.Pool
	// calls are the consumers' calls under way. None begins after running is false.
	calls sync.WaitGroup

	segments *segment.Set
	// packers are the compressors, handed from producer to producer.
	packers     chan *packer
	releasePath func()
	fs          segment.FS // nil but in tests
	// sampling is the goroutine of sampled mode, which never touches the disk;
	// background are those that keep house and finish segments.
	sampling, background sync.WaitGroup
	// stop ends sampling and housekeeping.
	stop chan struct{}
	// rolled wakes the housekeeping.
	rolled chan struct{}
	// closed are segments to be finished.
	closed chan segment.Closed
	// aborted tells producers that the time of the shutdown is over.
	aborted atomic.Bool

	mu        sync.Mutex
	running   bool
	queue     queue
	sampler   *sampler // nil in full mode
	producers producers
}

// packer compresses batches for one producer at a time.
type packer struct {
	compressor *segment.Compressor
	batch      []byte
}

var errNotRunning = errors.New("fpm_trace is not running: it was not started, or is shutting down")

func newTraceExporter(set exporter.Settings, cfg *Config) *traceExporter {
	e := &traceExporter{cfg: cfg, settings: set, mode: cfg.mode()}
	e.intakes.New = func() any { return newIntake() }
	return e
}

// start makes the goroutines. An unwritable path is a status, not an error.
func (e *traceExporter) start() error {
	var err error
	if e.telemetry, err = newTelemetry(e.settings.TelemetrySettings); err != nil {
		return err
	}
	if !e.cfg.Enabled {
		e.settings.Logger.Info("Writes no trace: enabled is off, so records are taken and let go")
		e.mu.Lock()
		defer e.mu.Unlock()
		e.running = true
		return nil
	}
	release, err := claimPath(e.cfg.Path, e.settings.ID)
	if err != nil {
		return err
	}
	e.packers = make(chan *packer, runtime.GOMAXPROCS(0))
	for range cap(e.packers) {
		compressor, err := segment.NewCompressor(e.cfg.CompressionLevel)
		if err != nil {
			release()
			return err
		}
		e.packers <- &packer{compressor: compressor}
	}
	err = e.telemetry.builder.RegisterExporterFpmTraceQueueLengthCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(int64(e.queueLength()))
		return nil
	})
	if err != nil {
		release()
		return err
	}
	e.releasePath = release
	options := e.cfg.segmentOptions()
	options.FS = e.fs
	e.segments = segment.NewSet(options)
	e.stop = make(chan struct{})
	e.rolled = make(chan struct{}, 1)
	e.closed = make(chan segment.Closed, closedBacklog)
	e.producers.init()

	e.mu.Lock()
	defer e.mu.Unlock()
	e.running = true
	e.background.Go(e.finishSegments)
	e.background.Go(e.keepHouse)
	if e.mode == modeSampled {
		e.sampler = newSampler(e.cfg.MaxKeys)
		e.sampling.Go(e.sample)
	}
	return nil
}

func (e *traceExporter) queueLength() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.queue.rows
	if e.sampler != nil {
		n += e.sampler.pending
	}
	return n
}

func (e *traceExporter) beginCall() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running {
		e.calls.Add(1)
	}
	return e.running
}

// accept takes a portion of a call. It never waits for the disk.
func (e *traceExporter) accept(in *intake) {
	var t tally
	e.mu.Lock()
	for i := range in.records {
		r := &in.records[i]
		if int64(r.end-r.start) > e.cfg.QueueBytes { // it would drive everything else out first
			t.drop(reasonQueueFull, r.key.ProducerID, 1)
			continue
		}
		if e.sampler == nil {
			e.push(r.key.ProducerID, in.event(r), &t)
			continue
		}
		superseded, evicted := e.sampler.offer(r.key, r.counter, in.event(r))
		if superseded {
			t.superseded++
		}
		if evicted {
			t.drop(reasonKeyLimit, r.key.ProducerID, 1)
		}
	}
	e.trim(&t)
	e.mu.Unlock()
	e.tellRefused(in)
	e.settle(&t)
}

// push queues a row, opening its producer if need be; mu is held.
func (e *traceExporter) push(producerID string, event []byte, t *tally) {
	p := e.producer(producerID, t)
	if p == nil {
		t.drop(reasonProducerLimit, producerID, 1)
		return
	}
	e.queue.push(&p.lane, time.Since(p.began).Milliseconds(), event)
	for p.lane.rows > e.cfg.QueueSize && e.queue.dropOldestOf(&p.lane) {
		t.drop(reasonQueueFull, producerID, 1)
	}
	if p.lane.waits() >= e.queue.share() || p.lane.rows > e.cfg.QueueSize/2 || e.queue.bytes > e.cfg.QueueBytes/2 {
		p.nudge()
	}
}

// trim keeps queue_bytes: the oldest rows go, and then the records of the keys
// heard longest ago; mu is held.
func (e *traceExporter) trim(t *tally) {
	for e.sampler == nil && e.queue.bytes > e.cfg.QueueBytes || e.sampler != nil && e.queue.bytes+e.sampler.bytes > e.cfg.QueueBytes {
		if l, ok := e.queue.dropOldest(); ok {
			t.drop(reasonQueueFull, l.producer.id, 1)
			continue
		}
		if e.sampler == nil || e.sampler.oldest == nil {
			return // the rest is being written
		}
		id := e.sampler.oldest.key.ProducerID
		if e.sampler.evict() {
			t.drop(reasonQueueFull, id, 1)
		}
	}
}

// tally collects what happened under the lock, to be told after it.
type tally struct {
	superseded int
	dropped    map[dropKey]int
	alike      []alikeIDs
}

type dropKey struct{ reason, producerID string }

func (t *tally) drop(reason, producerID string, records int) {
	if t.dropped == nil {
		t.dropped = map[dropKey]int{}
	}
	t.dropped[dropKey{reason, producerID}] += records
}

func (e *traceExporter) settle(t *tally) {
	e.telemetry.supersede(t.superseded)
	for key, records := range t.dropped {
		e.telemetry.drop(key.reason, key.producerID, records)
	}
	for _, alike := range t.alike {
		e.telemetry.warn(lograte.Key{Source: alike.id, Reason: "alike"}, "two producers have ids that give the same file name: one of them gets a name with a hash",
			zap.String("producer_id", alike.id), zap.String("other_producer_id", alike.other), zap.String("name", alike.name))
	}
}
