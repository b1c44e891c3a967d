// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"time"
)

const (
	// closedBacklog is how many closed segments may wait for their sync before
	// producers wait too.
	closedBacklog = 64
	// retainInterval is how often max_age and max_total_bytes are looked after,
	// beside after each roll.
	retainInterval = time.Minute
	// prepareInterval is how often an unwritable path is tried again when
	// nothing is written.
	prepareInterval = 5 * time.Second
)

// sample hands on what the sampler holds at each interval. A late tick is not
// made up for.
func (e *traceExporter) sample() {
	ticker := time.NewTicker(e.cfg.SampleInterval)
	defer ticker.Stop()
	for {
		select {
		case <-e.stop:
			return
		case <-ticker.C:
			e.handOnSamples()
		}
	}
}

func (e *traceExporter) handOnSamples() {
	var t tally
	e.mu.Lock()
	if e.sampler != nil {
		e.sampler.tick(func(key *sampleKey, event []byte) { e.push(key.ProducerID, event, &t) })
		e.trim(&t)
	}
	e.mu.Unlock()
	e.settle(&t)
}

// keepHouse finds out early whether the path can be written to, and keeps
// max_age and max_total_bytes.
func (e *traceExporter) keepHouse() {
	for {
		err := e.segments.Prepare()
		if err == nil {
			break
		}
		e.telemetry.writeFailed(err)
		e.status.fails(e, err)
		select {
		case <-e.stop:
			return
		case <-time.After(prepareInterval):
		}
	}
	e.status.works(e)
	limits := e.cfg.retention()
	ticker := time.NewTicker(retainInterval)
	defer ticker.Stop()
	for {
		removed, err := e.segments.Retain(limits, time.Now())
		e.telemetry.pruned(removed)
		if err != nil {
			e.telemetry.trouble("retention", err)
		}
		select {
		case <-e.stop:
			return
		case <-ticker.C:
		case <-e.rolled:
		}
	}
}

// finishSegments syncs and closes segments, off the way of those who write.
func (e *traceExporter) finishSegments() {
	for closed := range e.closed {
		if err := closed.Finish(); err != nil {
			e.telemetry.trouble(closed.Path(), err)
		}
	}
}
