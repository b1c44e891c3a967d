// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package pub

import (
	"encoding/binary"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func listen(t *testing.T) *Publisher {
	t.Helper()
	p, err := Listen("tcp://127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close(0) })
	return p
}

func dial(t *testing.T, p *Publisher) net.Conn {
	t.Helper()
	addr := p.listener.Addr()
	conn, err := net.Dial(addr.Network(), addr.String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	return conn
}

// open dials and makes the handshake, without a subscription.
func open(t *testing.T, p *Publisher) *zmq4.Conn {
	t.Helper()
	c, err := zmq4.Open(dial(t, p), null.Security(), zmq4.Sub, nil, false, nil)
	require.NoError(t, err)
	return c
}

func subscribe(t *testing.T, p *Publisher) *zmq4.Conn {
	t.Helper()
	before := p.Subscribers()
	c := open(t, p)
	require.NoError(t, c.SendMsg(zmq4.NewMsg([]byte{1})))
	waitSubscribers(t, p, before+1)
	return c
}

func waitSubscribers(t *testing.T, p *Publisher, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return p.Subscribers() == n }, 10*time.Second, time.Millisecond)
}

// receive reads messages until the publisher hangs up, and then hangs up too.
// It reads in a goroutine of its own; the channel gives all it got.
func receive(c *zmq4.Conn) <-chan received {
	done := make(chan received, 1)
	go func() {
		defer func() { _ = c.Close() }()
		var got received
		for {
			msg, err := c.RecvMsg()
			if err != nil {
				got.end = err
				done <- got
				return
			}
			if len(msg.Frames) != 3 || len(msg.Frames[0]) != 0 || len(msg.Frames[1]) != 8 {
				got.malformed++
				continue
			}
			got.sequences = append(got.sequences, binary.BigEndian.Uint64(msg.Frames[1]))
		}
	}()
	return done
}

type received struct {
	sequences []uint64
	malformed int
	end       error
}

// all checks that the publisher ended the connection in good order.
func (r received) all(t *testing.T) []uint64 {
	t.Helper()
	require.ErrorIs(t, r.end, io.EOF)
	require.Zero(t, r.malformed)
	return r.sequences
}

func publish(p *Publisher, n int, payload []byte) {
	for i := range n {
		p.Publish(uint64(i), payload)
	}
}

func TestCloseDrains(t *testing.T) {
	for _, size := range []int{0, 1, 255, 256, 70000} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			p := listen(t)
			c := subscribe(t, p)
			done := receive(c)
			publish(p, 100, make([]byte, size))
			require.NoError(t, p.Close(10*time.Second))
			got := (<-done).all(t)
			require.Len(t, got, 100)
			assert.IsIncreasing(t, got)
			assert.Zero(t, p.Dropped())
		})
	}
}

// Two subscribers, one of which reads nothing: it loses the newest messages,
// each is counted, and the other loses none.
func TestLedger(t *testing.T) {
	p := listen(t)
	slow, good := subscribe(t, p), subscribe(t, p)
	const n = 20000
	payload := make([]byte, 4000)
	arrived := make(chan uint64, n)
	go func() {
		for {
			msg, err := good.RecvMsg()
			if err != nil {
				close(arrived)
				_ = good.Close()
				return
			}
			arrived <- binary.BigEndian.Uint64(msg.Frames[1])
		}
	}()
	for i := range uint64(n) {
		p.Publish(i, payload)
		require.Equal(t, i, <-arrived)
	}
	dropped := p.Dropped()
	assert.Positive(t, dropped)

	done := receive(slow)
	require.NoError(t, p.Close(10*time.Second))
	got := (<-done).all(t)
	assert.Equal(t, dropped, p.Dropped())
	require.Len(t, got, n-int(dropped))
	for i, sequence := range got {
		require.EqualValues(t, i, sequence, "not the newest were dropped")
	}
}

func TestCloseDoesNotWaitForAStuckSubscriber(t *testing.T) {
	p := listen(t)
	subscribe(t, p)
	publish(p, 5000, make([]byte, 10000))
	before := p.Dropped()
	start := time.Now()
	require.NoError(t, p.Close(100*time.Millisecond))
	assert.Less(t, time.Since(start), 5*time.Second)
	assert.Greater(t, p.Dropped(), before, "what was queued was not counted")
	assert.ErrorIs(t, p.Close(0), net.ErrClosed)
}

func TestSubscriptions(t *testing.T) {
	type step struct{ command, body string }
	message := func(body string) step { return step{body: body} }
	command := func(name, rest string) step { return step{name, rest} }
	for name, row := range map[string]struct {
		steps []step
		want  int
	}{
		"none":                   {nil, 0},
		"everything":             {[]step{message("\x01")}, 1},
		"a longer prefix":        {[]step{message("\x01topic")}, 0},
		"taken back":             {[]step{message("\x01"), message("\x00")}, 0},
		"twice, taken back once": {[]step{message("\x01"), message("\x01"), message("\x00")}, 1},
		"taken back first":       {[]step{message("\x00"), message("\x01")}, 1},
		"as a command":           {[]step{command("SUBSCRIBE", "")}, 1},
		"command taken back":     {[]step{command("SUBSCRIBE", ""), command("CANCEL", "")}, 0},
		"command to a prefix":    {[]step{command("SUBSCRIBE", "topic")}, 0},
		"unknown command":        {[]step{command("HELLO", "")}, 0},
		"unknown message":        {[]step{message("\x07"), message("")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := listen(t)
			c := open(t, p)
			for _, s := range row.steps {
				if s.command != "" {
					require.NoError(t, c.SendCmd(s.command, []byte(s.body)))
				} else {
					require.NoError(t, c.SendMsg(zmq4.NewMsg([]byte(s.body))))
				}
			}
			// The PONG says that all before it was read.
			require.NoError(t, c.SendCmd("PING", []byte("\x00\x00")))
			_, err := c.RecvCmd()
			require.NoError(t, err)
			assert.Equal(t, row.want, p.Subscribers())
		})
	}
}

func TestPingIsAnsweredWithItsContext(t *testing.T) {
	for ping, pong := range map[string]string{
		"\x00\x0acontext": "context",
		"\x00\x0a":        "",
		"":                "",
	} {
		p := listen(t)
		c := open(t, p)
		require.NoError(t, c.SendCmd("PING", []byte(ping)))
		cmd, err := c.RecvCmd()
		require.NoError(t, err)
		assert.Equal(t, "PONG", cmd.Name)
		assert.Equal(t, pong, string(cmd.Body))
	}
}

// A peer that breaks the protocol is hung up on; the others do not notice.
func TestHostilePeers(t *testing.T) {
	greeting := "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00NULL" + strings.Repeat("\x00", 48)
	require.Len(t, greeting, greetingSize)
	ready := func(properties string) string {
		return "\x04" + string(rune(6+len(properties))) + "\x05READY" + properties
	}
	sub := ready("\x0bSocket-Type\x00\x00\x00\x03SUB")
	for name, sent := range map[string]string{
		"http":                 "GET / HTTP/1.1\r\nHost: x\r\n\r\n" + strings.Repeat("x", 100),
		"half a greeting":      greeting[:20],
		"huge READY":           greeting + "\x06\x00\x00\x01\x00\x00\x00\x00\x00",
		"READY of more frames": greeting + "\x05" + sub[1:],
		"no socket type":       greeting + ready(""),
		"wrong socket type":    greeting + ready("\x0bSocket-Type\x00\x00\x00\x04PULL"),
		"unknown socket type":  greeting + ready("\x0bSocket-Type\x00\x00\x00\x03ABC"),
		"cut property":         greeting + ready("\x0bSocket"),
		"cut value length":     greeting + ready("\x0bSocket-Type\x00"),
		"huge frame":           greeting + sub + "\x02\x7f\xff\xff\xff\xff\xff\xff\xff",
	} {
		t.Run(name, func(t *testing.T) {
			p := listen(t)
			good := subscribe(t, p)
			bad := dial(t, p)
			_, err := io.WriteString(bad, sent)
			require.NoError(t, err)
			if name == "half a greeting" {
				require.NoError(t, bad.(*net.TCPConn).CloseWrite())
			}
			_, _ = io.Copy(io.Discard, bad) // until it hangs up
			p.Publish(7, []byte("x"))
			msg, err := good.RecvMsg()
			require.NoError(t, err)
			assert.Equal(t, []byte("x"), msg.Frames[2])
		})
	}
}

func TestListen(t *testing.T) {
	t.Run("bad endpoint", func(t *testing.T) {
		for _, endpoint := range []string{"", "127.0.0.1:1", "udp://127.0.0.1:1", "ipc://", "tcp://"} {
			_, err := Listen(endpoint)
			assert.ErrorContains(t, err, "must be tcp://host:port or ipc://path", endpoint)
		}
	})
	t.Run("all interfaces", func(t *testing.T) {
		p, err := Listen("tcp://*:0")
		require.NoError(t, err)
		require.NoError(t, p.Close(0))
	})
	t.Run("ipc", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "fpm.0")
		dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
		require.NoError(t, err)
		dead.SetUnlinkOnClose(false)
		require.NoError(t, dead.Close())

		p, err := Listen("ipc://" + path)
		require.NoError(t, err, "a dead socket file was not replaced")
		_, err = Listen("ipc://" + path)
		require.ErrorContains(t, err, "cannot publish at ipc://"+path)
		require.NoError(t, subscribe(t, p).Close())
		require.NoError(t, p.Close(time.Second))
		assert.NoFileExists(t, path)
	})
}
