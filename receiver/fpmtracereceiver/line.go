// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmtracereceiver

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/otelcol-fpm/otelcol-fpm/internal/fpm"
)

// The namespace and component of rows that do not name any: those of receiver
// fpm.
const (
	defaultNamespace = "default"
	defaultComponent = "backend"
)

// line takes a line of a file into the batch. behind is the position behind it,
// number its number in the file, or 0. Of a line over maxRowBytes there is only
// the size.
func (r *reader) line(p *place, line []byte, size, number int64, behind position) {
	f := p.file
	f.cursor = behind
	r.batch.touch(f)
	if size > maxRowBytes {
		r.reject(f, number, rejectedOversize, fmt.Errorf("oversize: row: got %d bytes, want at most %d", size, maxRowBytes))
		return
	}
	row, payload, err := r.rows.Read(r.batch.payload, line)
	if err != nil {
		reason := fpm.ReasonMalformed
		var rejected *fpm.RejectError
		if errors.As(err, &rejected) {
			reason = rejected.Reason
		}
		r.reject(f, number, string(reason), err)
		return
	}
	r.batch.payload = payload
	own := pcommon.Timestamp(row.ObservedAt * int64(time.Millisecond))
	if row.Flat {
		own = pcommon.NewTimestampFromTime(p.now)
		row.Source = flatSource(&row.Record, f.path)
	}
	rank := r.ranks.of(rankKey{
		workerKey:      workerKey{Source: row.Source, workerID: row.Record.WorkerID},
		RankAttributes: row.Record.Attributes(),
	})
	e, back := rank.admit(row, own)
	if back > fpm.MaxAhead {
		r.warn(f.path, "time", "Rows are older than the ones before of the same rank: their points get the time of the latest",
			zap.Int64("line", number), zap.Time("time", own.AsTime()), zap.Duration("older_by", time.Duration(back)))
	}
	for s := range r.pipes {
		e.to[s] = r.pipes[s] != nil && f.taken[s].before(behind)
	}
	r.batch.add(e)
}

// flatSource names the producer of a record without an envelope.
func flatSource(record *fpm.Record, path string) fpm.Source {
	producer := record.WorkerID
	if producer == "" {
		producer = strings.TrimSuffix(filepath.Base(path), ".jsonl.gz")
	}
	return fpm.Source{Namespace: defaultNamespace, Component: defaultComponent, ProducerID: producer}
}

func (r *reader) reject(f *file, number int64, reason string, err error) {
	r.batch.tally.reject(reason)
	fields := []zap.Field{zap.Error(err)}
	if number > 0 {
		fields = append(fields, zap.Int64("line", number))
	} else {
		fields = append(fields, zap.Int64("member_offset", f.cursor.Offset), zap.Int64("line_of_member", f.cursor.Lines))
	}
	r.warn(f.path, reason, "A line is no row and is skipped", fields...)
}
