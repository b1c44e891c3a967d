// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/go-zeromq/zmq4"
)

const propertySocketType = "Socket-Type"

// checkReady reads the body of the first command of a peer, which must be READY (spec 37, section The NULL Security
// Mechanism: one byte name length, name, then properties of one byte name length, name, four bytes value length, value),
// and returns the peer's socket type when a socket of type ours may talk to it. It does not keep body.
func checkReady(body []byte, ours zmq4.SocketType) (zmq4.SocketType, error) {
	name, rest, ok := cutCommandName(body)
	if !ok {
		return "", readyErrorf("command name of %d bytes in a command of %d", body[0], len(body))
	}
	switch name {
	case zmq4.CmdReady:
	case zmq4.CmdError:
		return "", &HandshakeError{Reason: ReasonPeerError, Detail: fmt.Sprintf("peer refused us: %q", shown(peerErrorText(rest)))}
	default:
		return "", readyErrorf("first command is %q, want %q", shown(name), zmq4.CmdReady)
	}

	peer, err := socketTypeProperty(rest)
	if err != nil {
		return "", err
	}
	// Asked on our side, where an unknown type is merely not compatible: asked on the peer's it panics.
	if !ours.IsCompatible(zmq4.SocketType(peer)) {
		return "", &HandshakeError{
			Reason:         ReasonSocketType,
			PeerSocketType: shown(peer),
			Detail:         fmt.Sprintf("peer is a %q socket, which does not go with our %s", shown(peer), ours),
		}
	}
	return zmq4.SocketType(peer), nil
}

// socketTypeProperty walks all properties, so that a cut one is found wherever it is, and returns the value of Socket-Type.
// Property names are matched without regard to case, as the specification has it.
func socketTypeProperty(b []byte) (string, error) {
	var socketType string
	for n := 1; len(b) > 0; n++ {
		nameLen := int(b[0])
		if nameLen == 0 || nameLen > len(b)-1 {
			return "", readyErrorf("name length of property %d is %d with %d bytes left, want 1 to that", n, nameLen, len(b)-1)
		}
		name := string(b[1 : 1+nameLen])
		b = b[1+nameLen:]
		if len(b) < 4 {
			return "", readyErrorf("value length of property %q has %d bytes, want 4", shown(name), len(b))
		}
		valueLen := binary.BigEndian.Uint32(b)
		b = b[4:]
		if uint64(valueLen) > uint64(len(b)) {
			return "", readyErrorf("value of property %q is %d bytes long with %d left", shown(name), valueLen, len(b))
		}
		value := string(b[:valueLen])
		b = b[valueLen:]
		if !strings.EqualFold(name, propertySocketType) {
			continue
		}
		if value == "" {
			return "", readyErrorf("property Socket-Type is empty")
		}
		if socketType != "" {
			return "", readyErrorf("property Socket-Type is there twice (%q, %q)", shown(socketType), shown(value))
		}
		socketType = value
	}
	if socketType == "" {
		return "", readyErrorf("property Socket-Type is missing")
	}
	return socketType, nil
}

// readyFrame encodes a whole READY command with nothing but the socket type: what go-zeromq is given in place of the peer's
// own, so that its reading of properties never meets anything the check did not understand.
func readyFrame(socketType zmq4.SocketType) []byte {
	body := []byte("\x05READY\x0bSocket-Type")
	body = binary.BigEndian.AppendUint32(body, uint32(len(socketType)))
	body = append(body, socketType...)
	return append([]byte{flagCommand, byte(len(body))}, body...)
}

// cutCommandName splits a command body into its name and data; ok is false when the name is cut short. body is not empty
// (the framer refuses empty commands).
func cutCommandName(body []byte) (name string, data []byte, ok bool) {
	n := int(body[0])
	if n > len(body)-1 {
		return "", nil, false
	}
	return string(body[1 : 1+n]), body[1+n:], true
}

// peerErrorText returns the reason of an ERROR command (one byte length, text), as far as it is there.
func peerErrorText(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	return string(data[1:min(len(data), 1+int(data[0]))])
}

// shown cuts a peer's text to what an error message can bear.
func shown(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}

func readyErrorf(format string, args ...any) error {
	return &HandshakeError{Reason: ReasonReady, Detail: fmt.Sprintf(format, args...)}
}
