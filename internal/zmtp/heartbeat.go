// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

const (
	pingName = "\x04PING"
	pongName = "\x04PONG"

	pingTTLLen        = 2
	maxPingContextLen = 16
	// keptCommandBytes is how much of a command after the handshake anybody looks at: a PING with the longest context.
	keptCommandBytes = len(pingName) + pingTTLLen + maxPingContextLen
)

// pingBody is our PING: TTL 0 (the peer shall set no timer on us: we ask only when it is silent) and no context.
const pingBody = pingName + "\x00\x00"

// pongBody returns the PONG that answers the command, and whether it is a PING at all. The context of a PING comes back in
// its PONG (spec 37, section Connection Heartbeating); a context over the 16 bytes allowed is answered with its first 16.
// command holds the first keptCommandBytes of the body, or all of a shorter one.
func pongBody(command []byte) (string, bool) {
	if len(command) < len(pingName) || string(command[:len(pingName)]) != pingName {
		return "", false
	}
	context := command[min(len(command), len(pingName)+pingTTLLen):]
	return pongName + string(context), true
}
