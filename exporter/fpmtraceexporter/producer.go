// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtraceexporter

import (
	"time"

	"github.com/otelcol-fpm/otelcol-fpm/internal/segment"
)

// producer writes the rows of one producer id, from one goroutine.
type producer struct {
	id   string
	lane lane
	// began is the zero of the rows' timestamps.
	began time.Time
	// after is closed when the id's writer before this one has ended; nil when
	// there is none.
	after  <-chan struct{}
	writer *segment.Writer

	wake chan struct{}
	stop chan struct{}
	done chan struct{}

	newer, older *producer
}

// nudge asks for a flush now.
func (p *producer) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (e *traceExporter) runProducer(p *producer) {
	defer e.endProducer(p)
	if p.after != nil {
		<-p.after
		e.mu.Lock()
		var t tally
		e.openWriter(p, &t)
		e.mu.Unlock()
		e.settle(&t)
	}
	ticker := time.NewTicker(e.cfg.FlushInterval)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-p.stop:
			return
		case <-p.wake:
			if failing {
				continue // the next attempt is due at the tick
			}
			ticker.Reset(e.cfg.FlushInterval) // no row that waits is older than this flush
		case <-ticker.C:
		}
		failing = !e.flush(p)
		e.sealIdle(p)
	}
}

// flush writes the rows that wait when it is called, a member at a time; false
// when that failed. Rows that come meanwhile make a member of their own later.
func (e *traceExporter) flush(p *producer) bool {
	e.mu.Lock()
	due := p.lane.bytes
	select {
	case <-p.wake: // for rows that are due now
	default:
	}
	e.mu.Unlock()
	for due > 0 && !e.aborted.Load() {
		written, err := e.writeMember(p)
		if err != nil {
			e.telemetry.writeFailed(err)
			e.status.fails(p, err)
			return false
		}
		if written == 0 {
			break // dropped meanwhile
		}
		due -= written
	}
	e.status.works(p)
	return true
}

// writeMember writes the oldest rows and returns their size.
func (e *traceExporter) writeMember(p *producer) (written int64, err error) {
	e.mu.Lock()
	chunks := e.queue.take(&p.lane, flushBytes)
	e.mu.Unlock()
	if len(chunks) == 0 {
		return 0, nil
	}
	packer := <-e.packers
	packer.batch = packer.batch[:0]
	for _, c := range chunks {
		packer.batch = append(packer.batch, c.text()...)
	}
	report, err := p.writer.Write(packer.compressor, packer.batch, time.Now())
	if cap(packer.batch) > 4*flushBytes {
		packer.batch = nil
	}
	e.packers <- packer

	e.mu.Lock()
	e.queue.landed(&p.lane, report.Text)
	e.mu.Unlock()
	e.reportWrite(p, &report)
	return report.Text, err
}

func (e *traceExporter) reportWrite(p *producer, report *segment.Report) {
	e.telemetry.report(p.id, report)
	for _, closed := range report.Closed {
		e.closed <- closed
	}
	if report.Rolls > 0 {
		select {
		case e.rolled <- struct{}{}:
		default:
		}
	}
}

// sealIdle ends a segment that was not written to for max_age, so that it can
// be removed although its producer still has a writer.
func (e *traceExporter) sealIdle(p *producer) {
	since, open := p.writer.Idle()
	if e.cfg.MaxAge <= 0 || !open || time.Since(since) <= e.cfg.MaxAge {
		return
	}
	var report segment.Report
	p.writer.Seal(&report)
	e.reportWrite(p, &report)
}

// endProducer makes the last flush. What cannot be written now is lost: there
// is nobody to try again.
func (e *traceExporter) endProducer(p *producer) {
	defer close(p.done)
	e.flush(p)
	report := p.writer.Close()
	e.reportWrite(p, &report)
	e.status.works(p)
	reason := reasonWriteError
	if e.aborted.Load() {
		reason = reasonShutdown
	}
	var t tally
	e.mu.Lock()
	if rows := e.queue.dropAll(&p.lane); rows > 0 {
		t.drop(reason, p.id, rows)
	}
	e.producers.ended(p)
	e.mu.Unlock()
	e.settle(&t)
}
