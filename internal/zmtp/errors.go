// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"fmt"
	"time"
)

// DialError says that no connection to the endpoint came about: nobody listens, no route, no such file, or no answer
// within the dial timeout.
type DialError struct {
	Err error // what package net said; it names network and address
}

func (e *DialError) Error() string { return "zmtp: cannot connect: " + e.Err.Error() }

// Unwrap returns the error of package net.
func (e *DialError) Unwrap() error { return e.Err }

// Reason names the step at which a handshake failed; stable, fit for an attribute of a counter.
type Reason string

// The reasons of a HandshakeError.
const (
	ReasonTimeout    Reason = "timeout"     // not finished within the dial timeout
	ReasonClosed     Reason = "closed"      // the peer closed or reset the connection
	ReasonSignature  Reason = "signature"   // the first ten bytes are not ZMTP's: no ZeroMQ peer
	ReasonVersion    Reason = "version"     // a ZMTP older than 3.0
	ReasonMechanism  Reason = "mechanism"   // a security mechanism other than NULL
	ReasonReady      Reason = "ready"       // no READY command where one belongs, or a broken one
	ReasonSocketType Reason = "socket_type" // a socket that does not go with ours, HandshakeError.PeerSocketType
	ReasonPeerError  Reason = "peer_error"  // the peer refused us with an ERROR command
	ReasonInternal   Reason = "internal"    // a panic or error of the library that the guard should have prevented
)

// HandshakeError says why a peer that accepted the connection is not one to read messages from.
type HandshakeError struct {
	Reason         Reason
	PeerSocketType string // the peer's Socket-Type when Reason is ReasonSocketType: "ROUTER" is a request port, not a publisher
	Detail         string // what came and what is allowed
	Err            error  // the cause when there is one: *OversizeError, an I/O error; may be nil
}

func (e *HandshakeError) Error() string {
	s := fmt.Sprintf("zmtp: handshake failed (%s): %s", e.Reason, e.Detail)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause, or nil.
func (e *HandshakeError) Unwrap() error { return e.Err }

// Part names what an OversizeError measured.
type Part string

// The parts that have a limit.
const (
	PartMessage Part = "message bytes"    // frame bodies of a message together; Limits.MaxMessageBytes
	PartFrames  Part = "frames a message" // Limits.MaxFrames
	PartCommand Part = "command bytes"    // one command; fixed, 8192
)

// OversizeError says that the peer announced more than a limit allows. Nothing of that size was read or allocated.
type OversizeError struct {
	Part  Part
	Size  uint64 // announced, the frames before in the same message included
	Limit uint64
}

func (e *OversizeError) Error() string {
	return fmt.Sprintf("zmtp: peer announced %d %s, at most %d are allowed", e.Size, e.Part, e.Limit)
}

// ProtocolError says that what came after the handshake is no ZMTP framing.
type ProtocolError struct {
	Detail string
}

func (e *ProtocolError) Error() string { return "zmtp: protocol violated: " + e.Detail }

// Wait names what a TimeoutError waited for.
type Wait string

// What can take too long after the handshake. (A handshake that does is a HandshakeError with ReasonTimeout.)
const (
	WaitMessage Wait = "rest of a message" // began and was not whole in time
	WaitAnswer  Wait = "answer to a PING"  // no byte of any kind came
	WaitWrite   Wait = "write"             // the peer takes no bytes from us
)

// TimeoutError says that the peer was given up after a wait.
type TimeoutError struct {
	Wait  Wait
	After time.Duration // the StaleAfter that passed without it
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("zmtp: peer given up: %s took longer than %v", e.Wait, e.After)
}

// Timeout is true, as for the timeouts of package net.
func (e *TimeoutError) Timeout() bool { return true }
