// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/otelcol-fpm/otelcol-fpm/test/ports"
)

func TestNobodyListens(t *testing.T) {
	address := fmt.Sprintf("127.0.0.1:%d", ports.One(t))
	e := newEvents()
	runSubscriber(t, NewSubscriber(subscriberConfig(address), e))
	err := wait(t, "refusal", e.disconnected, time.Second)
	var de *DialError
	require.ErrorAs(t, err, &de)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.ErrorContains(t, err, address)
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fpm.0")
	cfg := subscriberConfig(path)
	cfg.Network = "unix"
	e := newEvents()
	runSubscriber(t, NewSubscriber(cfg, e))
	err := wait(t, "absent file", e.disconnected, time.Second)
	require.ErrorIs(t, err, os.ErrNotExist)
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	servePeers(t, l, send(append(publisherHandshake(), message([]byte("m"))...)))
	wait(t, "connection", e.connected, 5*time.Second)
	require.Equal(t, "m", string(wait(t, "message", e.messages, 5*time.Second).frames[0]))
}

func TestKeepAliveIsOn(t *testing.T) {
	address := startPeer(t, send(publisherHandshake()))
	s := NewSubscriber(subscriberConfig(address), newEvents())
	nc, err := s.dial(t.Context(), "tcp", address)
	require.NoError(t, err)
	defer nc.Close()
	raw, err := nc.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	var on int
	require.NoError(t, raw.Control(func(fd uintptr) {
		on, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE)
	}))
	require.NoError(t, err)
	require.NotZero(t, on)
}

// A path that goes deaf without closing: no FIN, no RST, and the kernel keeps acknowledging.
func TestProxyThatStopsForwarding(t *testing.T) {
	upstream := startPeer(t, func(nc net.Conn) {
		_, _ = nc.Write(publisherHandshake())
		for {
			if _, err := nc.Write(message([]byte("m"))); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	var deaf atomic.Bool
	proxy := startPeer(t, func(nc net.Conn) {
		up, err := net.Dial("tcp", upstream)
		if err != nil {
			return
		}
		defer up.Close()
		go func() { _, _ = io.Copy(up, nc) }()
		p := make([]byte, 4096)
		for {
			n, err := up.Read(p)
			if err != nil {
				return
			}
			if deaf.Load() {
				drain(nc)
				return
			}
			if _, err := nc.Write(p[:n]); err != nil {
				return
			}
		}
	})
	e := newEvents()
	cfg := subscriberConfig(proxy)
	cfg.StaleAfter = 300 * time.Millisecond
	runSubscriber(t, NewSubscriber(cfg, e))
	wait(t, "message", e.messages, 5*time.Second)
	deaf.Store(true)
	start := time.Now()
	err := wait(t, "disconnection", e.disconnected, 5*time.Second)
	var te *TimeoutError
	require.ErrorAs(t, err, &te)
	require.GreaterOrEqual(t, time.Since(start), 500*time.Millisecond)
	deaf.Store(false)
	wait(t, "connection", e.connected, 5*time.Second)
	wait(t, "another connection", e.connected, 5*time.Second)
	for len(e.messages) > 0 {
		<-e.messages
	}
	wait(t, "message", e.messages, 5*time.Second)
}
