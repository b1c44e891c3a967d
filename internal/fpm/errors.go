// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import (
	"fmt"
	"strconv"
)

// Reason is why a message was rejected; it is the attribute of one counter.
type Reason string

// The reasons that this package gives.
const (
	// ReasonEnvelope: the frames around the payload are not FPM's.
	ReasonEnvelope Reason = "envelope"
	// ReasonMalformed: the payload is not a version 1 record.
	ReasonMalformed Reason = "malformed"
	// ReasonOutOfRange: an integer is above 2⁶³−1, which pdata cannot hold.
	ReasonOutOfRange Reason = "out_of_range"
	// ReasonUnsupportedVersion: the payload says it is not version 1.
	ReasonUnsupportedVersion Reason = "unsupported_version"
)

// RejectError says what was wrong with a message: where, what was found, and
// what is allowed there.
type RejectError struct {
	Reason Reason
	// Field is the wire field, dotted below a group; "payload" or "frames" for
	// the whole.
	Field string
	Got   string
	Want  string
}

func (e *RejectError) Error() string {
	return fmt.Sprintf("%s: %s: got %s, want %s", e.Reason, e.Field, e.Got, e.Want)
}

// under puts the error one key further down: its Field is a field of key, or
// key itself.
func (e *RejectError) under(key string) *RejectError {
	if e.Field == "" {
		e.Field = key
	} else {
		e.Field = key + "." + e.Field
	}
	return e
}

// unexpected is malformed for a value whose key the caller adds.
func unexpected(got, want string) *RejectError { return malformed("", got, want) }

func malformed(field, got, want string) *RejectError {
	return &RejectError{Reason: ReasonMalformed, Field: field, Got: got, Want: want}
}

func outOfRange(field string, value uint64) *RejectError {
	return &RejectError{
		Reason: ReasonOutOfRange, Field: field,
		Got: strconv.FormatUint(value, 10), Want: "at most 9223372036854775807",
	}
}

// quoteShort quotes text from the wire for an error: escaped, so that a log
// line stays one line, and cut, so that it stays short.
func quoteShort(text []byte) string {
	const most = 40
	if len(text) > most {
		return fmt.Sprintf("%q… (%d bytes)", text[:most], len(text))
	}
	return fmt.Sprintf("%q", text)
}

// fieldName makes a key from the wire fit for an error: as it stands when it
// is plain, else as quoteShort.
func fieldName(key []byte) string {
	const most = 64
	if len(key) == 0 || len(key) > most {
		return quoteShort(key)
	}
	for _, c := range key {
		if c <= ' ' || c == '"' || c == '\\' || c > '~' {
			return quoteShort(key)
		}
	}
	return string(key)
}
