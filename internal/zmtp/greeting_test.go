// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckGreeting(t *testing.T) {
	edit := func(at int, b byte) []byte {
		g := goodGreeting()
		g[at] = b
		return g
	}
	for _, tt := range []struct {
		name   string
		in     []byte
		reason Reason // "" for accepted
		says   string
	}{
		{"nothing yet", nil, "", ""},
		{"first byte", []byte{0xff}, "", ""},
		{"signature of libzmq, whose ignored bytes are not all zero", edit(8, 1)[:10], "", ""},
		{"cut at 63", goodGreeting()[:63], "", ""},
		{"3.0", greeting(3, 0, "NULL"), "", ""},
		{"3.1", greeting(3, 1, "NULL"), "", ""},
		{"4.0 steps down to us", greeting(4, 0, "NULL"), "", ""},
		{"as-server", edit(asServerAt, 1), "", ""},
		{"filler is ignored", edit(63, 7), "", ""},

		{"2.0 as an old libzmq sends it: 12 bytes and an identity", append(greeting(1, 2, "")[:12], 0, 0), ReasonVersion, "ZMTP 2.0"},
		{"2.0, the byte that tells", greeting(1, 0, "")[:11], ReasonVersion, "version byte is 1"},
		{"1.0 announced by a later one", greeting(0, 0, "")[:11], ReasonVersion, "ZMTP 1.0"},
		{"1.0, a bare identity", []byte{1, 0}, ReasonSignature, "0xff"},
		{"1.0, a long first frame", append([]byte{0xff, 0, 0, 0, 0, 0, 0, 1, 0}, 0), ReasonSignature, "byte 9"},
		{"HTTP", []byte("HTTP/1.1 400 Bad Request\r\n"), ReasonSignature, "HTTP server"},
		{"TLS alert", []byte{0x15, 3, 1, 0, 2, 2, 0x46}, ReasonSignature, "TLS server"},
		{"SSH", []byte("SSH-2.0-OpenSSH"), ReasonSignature, `"SSH-2.0-OpenSSH"`},
		{"PLAIN", greeting(3, 0, "PLAIN"), ReasonMechanism, `"PLAIN"`},
		{"CURVE", greeting(3, 1, "CURVE"), ReasonMechanism, `"CURVE"`},
		{"no mechanism", greeting(3, 1, ""), ReasonMechanism, `""`},
		{"mechanism with a zero inside", greeting(3, 1, "NULL\x00x"), ReasonMechanism, `"NULL\x00x"`},
		{"mechanism told before the end", greeting(3, 1, "CURVE")[:32], ReasonMechanism, `"CURVE"`},
		{"as-server of 2", edit(asServerAt, 2), ReasonMechanism, "as-server"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := checkGreeting(tt.in)
			if tt.reason == "" {
				require.NoError(t, err)
				return
			}
			requireHandshakeError(t, err, tt.reason)
			require.ErrorContains(t, err, tt.says)
		})
	}
}
