// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pusher is a peer on the wire, byte by byte: what a library would not send too.
type pusher struct {
	t  *testing.T
	nc net.Conn
}

// dial connects to the receiver and says nothing.
func (g *rig) dial() *pusher {
	g.t.Helper()
	network, address := g.address()
	return dial(g.t, network, address)
}

func dial(t *testing.T, network, address string) *pusher {
	t.Helper()
	nc, err := net.Dial(network, address)
	require.NoError(t, err)
	t.Cleanup(func() { nc.Close() })
	return &pusher{t, nc}
}

// push connects and shakes hands as a PUSH socket.
func (g *rig) push() *pusher {
	g.t.Helper()
	p := g.dial()
	require.NoError(p.t, p.begin())
	return p
}

// begin shakes hands as a PUSH socket. The error is that of a receiver that does
// not answer.
func (p *pusher) begin() error {
	p.t.Helper()
	p.handshake("PUSH")
	require.NoError(p.t, p.nc.SetReadDeadline(time.Now().Add(patience)))
	answer := make([]byte, 64)
	if _, err := io.ReadFull(p.nc, answer); err != nil {
		return err
	}
	if _, err := io.ReadFull(p.nc, answer[:2]); err != nil {
		return err
	}
	_, err := io.ReadFull(p.nc, make([]byte, answer[1]))
	return err
}

func (p *pusher) handshake(socketType string) {
	greeting := make([]byte, 64)
	greeting[0], greeting[9], greeting[10], greeting[11] = 0xff, 0x7f, 3, 1
	copy(greeting[12:], "NULL")
	ready := binary.BigEndian.AppendUint32([]byte("\x05READY\x0bSocket-Type"), uint32(len(socketType)))
	ready = append(ready, socketType...)
	p.write(append(append(greeting, 4, byte(len(ready))), ready...))
}

func (p *pusher) write(b []byte) {
	p.t.Helper()
	_, err := p.nc.Write(b)
	require.NoError(p.t, err)
}

// send sends frames as one message.
func (p *pusher) send(frames ...[]byte) {
	p.t.Helper()
	p.write(wireFrames(frames...))
}

func wireFrames(frames ...[]byte) []byte {
	var b []byte
	for i, frame := range frames {
		flags := byte(2) // long
		if i < len(frames)-1 {
			flags |= 1 // more
		}
		b = binary.BigEndian.AppendUint64(append(b, flags), uint64(len(frame)))
		b = append(b, frame...)
	}
	return b
}

// says sends events of a producer.
func (p *pusher) says(pid int, seq int64, events ...any) {
	p.t.Helper()
	p.send(framesOf(wireMessage(pid, seq, 0, events...))...)
}

// isClosed waits until the receiver closes the connection.
func (p *pusher) isClosed() {
	p.t.Helper()
	require.NoError(p.t, p.nc.SetReadDeadline(time.Now().Add(patience)))
	_, err := io.Copy(io.Discard, p.nc)
	require.NotErrorIs(p.t, err, os.ErrDeadlineExceeded, "the connection is still open")
}
