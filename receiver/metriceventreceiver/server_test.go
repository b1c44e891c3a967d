// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// exhausted is a listener that now and then finds no file to open.
type exhausted struct {
	net.Listener
	refusals atomic.Int64
}

func (l *exhausted) Accept() (net.Conn, error) {
	if l.refusals.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

func TestAcceptSurvivesTheLimitOfOpenFiles(t *testing.T) {
	g := newRig(t, &sink{})
	g.startWithoutServer()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listener := &exhausted{Listener: inner}
	listener.refusals.Store(4)
	served := make(chan struct{})
	g.receiver.server.start(listener, func(net.Conn) { close(served) })
	began := time.Now()
	g.dial()
	select {
	case <-served:
	case <-time.After(patience):
		t.Fatal("no connection is served")
	}
	assert.GreaterOrEqual(t, time.Since(began), 5*time.Millisecond, "it does not spin")
	assert.Len(t, g.said("Cannot accept a connection; trying again"), 1)
	g.ended(0)
}

func TestServerClosesWhileItWaitsToAccept(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listener := &exhausted{Listener: inner}
	listener.refusals.Store(1 << 60)
	s := newServer(address{"tcp", inner.Addr().String()}, 1, ledger{}, &log{logger: zap.NewNop()})
	s.start(listener, func(net.Conn) {})
	require.Eventually(t, func() bool { return listener.refusals.Load() < 1<<60-3 }, patience, time.Millisecond)
	listener.refusals.Store(0)
	s.close()
}
