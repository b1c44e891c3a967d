// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"bytes"
	"fmt"
)

// Layout of the 64 bytes both sides send first (https://rfc.zeromq.org/spec/37/, section Version Negotiation): signature 10
// (0xff, 8 ignored, 0x7f), version 2 (major, minor), mechanism 20 (name, zero padded), as-server 1, filler 31.
const (
	greetingLen       = 64
	signatureFooterAt = 9
	versionMajorAt    = 10
	versionMinorAt    = 11
	mechanismAt       = 12
	asServerAt        = 32

	signatureHeader = 0xff
	signatureFooter = 0x7f
	minMajorVersion = 3
	mechanismNull   = "NULL"
)

// checkGreeting checks as much of a peer's greeting as has come, at most greetingLen bytes. It returns an error as soon as
// a byte tells: an older peer or another protocol would never send all 64, and must not cost the whole dial timeout.
func checkGreeting(b []byte) error {
	if len(b) > 0 && b[0] != signatureHeader {
		return &HandshakeError{Reason: ReasonSignature, Detail: fmt.Sprintf("peer sent %s, a ZMTP greeting begins with 0xff%s", quoteStart(b), guessProtocol(b))}
	}
	if len(b) > signatureFooterAt && b[signatureFooterAt] != signatureFooter {
		return &HandshakeError{Reason: ReasonSignature, Detail: fmt.Sprintf("byte 9 of the greeting is 0x%02x, want 0x7f", b[signatureFooterAt])}
	}
	if len(b) > versionMajorAt && b[versionMajorAt] < minMajorVersion {
		return &HandshakeError{Reason: ReasonVersion, Detail: fmt.Sprintf("peer's version byte is %d (%s), want 3 or higher (ZMTP 3.0, libzmq 4)", b[versionMajorAt], oldVersion(b[versionMajorAt]))}
	}
	if len(b) >= asServerAt {
		mechanism := bytes.TrimRight(b[mechanismAt:asServerAt], "\x00")
		if string(mechanism) != mechanismNull {
			return &HandshakeError{Reason: ReasonMechanism, Detail: fmt.Sprintf("peer's mechanism is %q, only %q is supported", mechanism, mechanismNull)}
		}
	}
	if len(b) > asServerAt && b[asServerAt] > 1 {
		return &HandshakeError{Reason: ReasonMechanism, Detail: fmt.Sprintf("as-server byte of the greeting is %d, want 0 or 1", b[asServerAt])}
	}
	return nil
}

// oldVersion names the protocol of a version byte below 3.
func oldVersion(b byte) string {
	if b == 0 {
		return "ZMTP 1.0"
	}
	return "ZMTP 2.0"
}

// quoteStart shows the first bytes a peer sent, printable or escaped.
func quoteStart(b []byte) string {
	return fmt.Sprintf("%q", b[:min(len(b), 16)])
}

// guessProtocol helps with the two servers found most often behind a wrong port.
func guessProtocol(b []byte) string {
	switch {
	case bytes.HasPrefix(b, []byte("HTTP/")):
		return " (an HTTP server)"
	case len(b) >= 2 && (b[0] == 0x15 || b[0] == 0x16) && b[1] == 0x03: // TLS record: alert or handshake, version 3.x
		return " (a TLS server)"
	default:
		return ""
	}
}
