// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"errors"
	"fmt"

	"github.com/otelcol-fpm/otelcol-fpm/internal/benchmark/document"
)

// Reason is why a file is no artifact; it is the attribute of one counter.
type Reason string

// The reasons. Read gives the first three, package load the next two.
const (
	// ReasonJSON: the file is not one JSON value in UTF-8, or nests too deep.
	ReasonJSON Reason = "json"
	// ReasonNotFinite: the file has NaN, Infinity or a number beyond a double.
	ReasonNotFinite Reason = "not_finite"
	// ReasonSchema: the file is JSON, and no artifact of a known version.
	ReasonSchema Reason = "schema"
	// ReasonSize: the file is larger than the limit; it was not read.
	ReasonSize Reason = "size"
	// ReasonUnreadable: the file cannot be read, or is no regular file.
	ReasonUnreadable Reason = "unreadable"
	// ReasonSidecarRun: the sidecar is of another run than the artifacts that it
	// was found with.
	ReasonSidecarRun Reason = "sidecar_run_id"
)

// ReadError says what was wrong with a file: where, what was found, and what is
// allowed there.
type ReadError struct {
	Reason Reason
	// Field is the key, dotted below the top; a place in the text when it is no
	// JSON.
	Field     string
	Got, Want string
}

func (e *ReadError) Error() string {
	return fmt.Sprintf("%s: %s: got %s, want %s", e.Reason, e.Field, e.Got, e.Want)
}

func notDocument(err error) error {
	var wrong *document.Error
	if !errors.As(err, &wrong) {
		return err
	}
	reason := ReasonJSON
	if wrong.NotFinite {
		reason = ReasonNotFinite
	}
	return &ReadError{
		Reason: reason, Field: fmt.Sprintf("line %d, column %d", wrong.Line, wrong.Column),
		Got: wrong.Got, Want: wrong.Want,
	}
}

func notArtifact(field string, got document.Value, want string) error {
	return &ReadError{Reason: ReasonSchema, Field: field, Got: got.Short(), Want: want}
}
