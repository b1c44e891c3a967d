// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpm

import "fmt"

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

func malformed(field, got, want string) *RejectError {
	return &RejectError{Reason: ReasonMalformed, Field: field, Got: got, Want: want}
}
