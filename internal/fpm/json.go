// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"fmt"
)

// ReasonSchema: the row is of another kind than Schema.
const ReasonSchema Reason = "schema"

// Row is one line of a trace, read.
type Row struct {
	// Envelope is what the row says around its record; zero when it is flat.
	Envelope
	// Flat marks a line that is a record and nothing else, as tools write it.
	Flat bool
	// Record satisfies the invariants of one that Decode returned.
	Record Record
}

// RowReader reads lines of traces: rows as AppendRow writes them, in any order
// of keys, and records without an envelope. It reuses its buffers and remembers
// the last names, so it belongs to one goroutine. The zero RowReader is ready
// for use and must not be copied after that.
type RowReader struct {
	text    transcoder
	decoder Decoder
	source  Source
}

// The keys of a row around its record, by level.
const keyEvent = "event"

var (
	rowKeys    = []string{keyEvent}
	eventKeys  = []string{"schema", "source", "capture_mode", "observed_at_unix_ms", "fpm"}
	sourceKeys = []string{"namespace", "component", "producer_id"}
)

// maxObservedAt is the last millisecond whose nanoseconds fit an int64, in the
// year 2262.
const maxObservedAt = 9223372036854

// Read reads one line, with or without its newline. The record's payload is
// appended to dst, which is returned; the record keeps that part of it, and no
// part of line. Errors are of type *RejectError, whose Field is the path in the
// row: event.fpm.wall_time.
func (r *RowReader) Read(dst, line []byte) (Row, []byte, error) {
	r.text.reset(line)
	r.text.values = 0
	row, dst, rejected := r.row(dst)
	if rejected != nil {
		if rejected.Field == "" {
			rejected.Field = "row"
		}
		return Row{}, dst, rejected
	}
	return row, dst, nil
}

func (r *RowReader) row(dst []byte) (row Row, grown []byte, rejected *RejectError) {
	start := len(dst)
	if r.text.next() == 0 && r.text.at == len(r.text.text) {
		return row, dst, unexpected("an empty line", "a JSON object")
	}
	// A flat record is skipped at first, like the timestamp of a row.
	seen, rejected := r.text.fields(1, rowKeys, func(int) *RejectError {
		var rejected *RejectError
		dst, rejected = r.event(dst, &row)
		return rejected
	})
	if rejected == nil {
		rejected = r.text.ends()
	}
	if row.Flat = seen == 0; row.Flat && rejected == nil {
		r.text.at = 0
		dst, rejected = r.text.object(dst, 1)
	}
	if rejected == nil {
		rejected = r.decode(dst[start:len(dst):len(dst)], &row)
	}
	return row, dst, rejected
}

// decode judges the payload.
func (r *RowReader) decode(payload []byte, row *Row) *RejectError {
	var err error
	if row.Record, err = r.decoder.Decode(payload, 0); err == nil {
		return nil
	}
	rejected := err.(*RejectError) //nolint:errorlint // Decode says so
	if rejected.Reason == ReasonUnsupportedVersion {
		rejected.Want = "1"
	}
	if rejected.Field == "payload" {
		rejected.Field = ""
	}
	if !row.Flat {
		rejected.under("fpm").under(keyEvent)
	}
	return rejected
}

func (r *RowReader) event(dst []byte, row *Row) (grown []byte, rejected *RejectError) {
	seen, rejected := r.text.fields(2, eventKeys, func(i int) (rejected *RejectError) {
		switch i {
		case 0:
			rejected = r.schema()
		case 1:
			rejected = r.readSource()
			row.Source = r.source
		case 2:
			row.CaptureMode, rejected = r.captureMode()
		case 3:
			row.ObservedAt, rejected = r.observedAt()
		case 4:
			dst, rejected = r.text.object(dst, 1)
		}
		return rejected
	})
	if rejected != nil {
		return dst, rejected
	}
	if name, is := firstMissing(seen, eventKeys); is {
		rejected = missing(name)
		if seen&1 == 0 {
			rejected.Reason, rejected.Want = ReasonSchema, Schema
		}
	}
	return dst, rejected
}

// schema refuses a foreign one at once: everything else may be different there.
func (r *RowReader) schema() *RejectError {
	schema, rejected := r.text.str()
	if rejected == nil && string(schema) != Schema {
		rejected = &RejectError{Reason: ReasonSchema, Got: quoteShort(schema), Want: Schema}
	}
	return rejected
}

func (r *RowReader) readSource() *RejectError {
	names := [...]*string{&r.source.Namespace, &r.source.Component, &r.source.ProducerID}
	seen, rejected := r.text.fields(3, sourceKeys, func(i int) *RejectError { return r.remember(names[i]) })
	if name, is := firstMissing(seen, sourceKeys); is && rejected == nil {
		rejected = missing(name)
	}
	return rejected
}

// remember reads a name that is nearly always the same as in the row before,
// and then costs no allocation.
func (r *RowReader) remember(last *string) *RejectError {
	text, rejected := r.text.str()
	if rejected != nil {
		return rejected
	}
	if len(text) > maxIdentityBytes {
		return unexpected(fmt.Sprintf("%d bytes", len(text)), fmt.Sprintf("at most %d bytes", maxIdentityBytes))
	}
	if string(text) != *last {
		*last = string(text)
	}
	return nil
}

func (r *RowReader) captureMode() (string, *RejectError) {
	mode, rejected := r.text.str()
	if rejected != nil {
		return "", rejected
	}
	switch string(mode) {
	case CaptureSampled:
		return CaptureSampled, nil
	case CaptureFull:
		return CaptureFull, nil
	}
	return "", unexpected(quoteShort(mode), CaptureSampled+" or "+CaptureFull)
}

func (r *RowReader) observedAt() (int64, *RejectError) {
	if c := r.text.next(); c != '-' && (c < '0' || c > '9') {
		return 0, r.text.wrongKind("an integer")
	}
	text, integer, rejected := r.text.number()
	if rejected != nil {
		return 0, rejected
	}
	if !integer {
		return 0, unexpected(shortNumber(text), "an integer")
	}
	value, ok := parseInt(text)
	if !ok || value < 1 || value > maxObservedAt {
		return 0, &RejectError{
			Reason: ReasonOutOfRange, Got: shortNumber(text),
			Want: fmt.Sprintf("1 to %d milliseconds since 1970", int64(maxObservedAt)),
		}
	}
	return value, nil
}
