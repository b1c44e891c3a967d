// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"strings"
	"testing"

	"github.com/go-zeromq/zmq4"
	"github.com/stretchr/testify/require"
)

func TestCheckReady(t *testing.T) {
	ready := func(data ...[]byte) []byte { return commandBody("READY", data...) }
	pub := property("Socket-Type", "PUB")
	for _, tt := range []struct {
		name   string
		ours   zmq4.SocketType
		in     []byte
		reason Reason // "" for accepted
		says   string
	}{
		{"PUB", zmq4.Sub, ready(pub), "", ""},
		{"XPUB", zmq4.Sub, ready(property("Socket-Type", "XPUB")), "", ""},
		{"PUSH to a PULL", zmq4.Pull, ready(property("Socket-Type", "PUSH")), "", ""},
		{"with identity", zmq4.Sub, ready(pub, property("Identity", "abc")), "", ""},
		{"name in lower case", zmq4.Sub, ready(property("socket-type", "PUB")), "", ""},
		{"name in upper case", zmq4.Sub, ready(property("SOCKET-TYPE", "PUB")), "", ""},
		{"properties of an application, names not ASCII", zmq4.Sub, ready(property("X-\xff\xfeß", "v"), pub), "", ""},

		{"no properties", zmq4.Sub, ready(), ReasonReady, "missing"},
		{"no Socket-Type", zmq4.Sub, ready(property("Identity", "")), ReasonReady, "missing"},
		{"empty Socket-Type", zmq4.Sub, ready(property("Socket-Type", "")), ReasonReady, "empty"},
		{"Socket-Type twice", zmq4.Sub, ready(pub, property("socket-TYPE", "XPUB")), ReasonReady, "twice"},
		{"empty name", zmq4.Sub, ready(pub, property("", "v")), ReasonReady, "name length of property 2 is 0"},
		{"cut in a name", zmq4.Sub, ready(pub[:6]), ReasonReady, "name length of property 1 is 11 with 5 bytes left"},
		{"cut after a name", zmq4.Sub, ready(pub[:12]), ReasonReady, `value length of property "Socket-Type" has 0 bytes`},
		{"value length cut short", zmq4.Sub, ready(pub[:14]), ReasonReady, `value length of property "Socket-Type" has 2 bytes`},
		{"cut in a value", zmq4.Sub, ready(pub[:17]), ReasonReady, "is 3 bytes long with 1 left"},
		{"cut in the second property", zmq4.Sub, ready(pub, property("Identity", "abc")[:3]), ReasonReady, "property 2"},
		{"a value of 4 GiB", zmq4.Sub, ready([]byte("\x0bSocket-Type\xff\xff\xff\xffPUB")), ReasonReady, "4294967295 bytes long with 3 left"},
		{"name length over everything", zmq4.Sub, ready([]byte{255}), ReasonReady, "is 255 with 0 bytes left"},
		{"command name cut short", zmq4.Sub, []byte("\x09READY"), ReasonReady, "command name of 9 bytes"},
		{"another command", zmq4.Sub, commandBody("PING", []byte{0, 0}), ReasonReady, `first command is "PING", want "READY"`},
		{"name without regard to case is another", zmq4.Sub, commandBody("ready", pub), ReasonReady, `"ready"`},
		{"refused by the peer", zmq4.Sub, commandBody("ERROR", []byte("\x0cUnauthorized")), ReasonPeerError, `"Unauthorized"`},
		{"refused, reason cut short", zmq4.Sub, commandBody("ERROR", []byte("\x0cUn")), ReasonPeerError, `"Un"`},
		{"refused without a reason", zmq4.Sub, commandBody("ERROR"), ReasonPeerError, `""`},
		{"ROUTER", zmq4.Sub, ready(property("Socket-Type", "ROUTER")), ReasonSocketType, "ROUTER"},
		{"SUB", zmq4.Sub, ready(property("Socket-Type", "SUB")), ReasonSocketType, "SUB"},
		{"a type of the future", zmq4.Sub, ready(property("Socket-Type", "RADIO")), ReasonSocketType, "RADIO"},
		{"type in lower case", zmq4.Sub, ready(property("Socket-Type", "pub")), ReasonSocketType, "pub"},
		{"type of 4000 bytes", zmq4.Sub, ready(property("Socket-Type", strings.Repeat("P", 4000))), ReasonSocketType, "PPP"},
		{"PUB to a PULL", zmq4.Pull, ready(pub), ReasonSocketType, "PUB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := checkReady(tt.in, tt.ours)
			if tt.reason == "" {
				require.NoError(t, err)
				require.True(t, tt.ours.IsCompatible(got))
				return
			}
			he := requireHandshakeError(t, err, tt.reason)
			require.ErrorContains(t, err, tt.says)
			require.Less(t, len(err.Error()), 300, "an error is one line of a log")
			if tt.reason == ReasonSocketType {
				require.Contains(t, he.PeerSocketType, tt.says)
			}
		})
	}
}

func commandBody(name string, data ...[]byte) []byte {
	return commandFrameBody(commandFrame(name, data...))
}

// commandFrameBody cuts the header off a frame.
func commandFrameBody(b []byte) []byte {
	if b[0]&flagLong != 0 {
		return b[longHeaderLen:]
	}
	return b[shortHeaderLen:]
}

// What go-zeromq is given must be what it reads the socket type from.
func TestReadyFrameIsRead(t *testing.T) {
	for _, socketType := range []zmq4.SocketType{zmq4.Pub, zmq4.XPub, zmq4.Push} {
		var md zmq4.Metadata = map[string]string{}
		body := commandFrameBody(readyFrame(socketType))
		name, data, ok := cutCommandName(body)
		require.True(t, ok)
		require.Equal(t, zmq4.CmdReady, name)
		require.NoError(t, md.UnmarshalZMTP(data))
		require.Equal(t, zmq4.Metadata{"Socket-Type": string(socketType)}, md)
	}
}
