// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package pub

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxSubscribers bounds the connections of one endpoint; more are refused.
const maxSubscribers = 256

// Publisher is one bound endpoint. All methods may be called concurrently.
//
// Invariant (TestLedger): each message published to a subscriber was written
// to its connection, in order, or is counted by Dropped.
type Publisher struct {
	endpoint string
	listener net.Listener
	wg       sync.WaitGroup

	mu          sync.Mutex
	subscribers map[*subscriber]struct{}
	closed      bool

	dropped atomic.Uint64
}

// Listen binds an endpoint: tcp://host:port, where host * means all
// interfaces, or ipc://path. A socket file that nobody listens on is replaced.
func Listen(endpoint string) (*Publisher, error) {
	network, address, err := split(endpoint)
	if err != nil {
		return nil, err
	}
	if network == "unix" {
		removeDeadSocket(address)
	}
	listener, err := net.Listen(network, address)
	if err != nil {
		return nil, fmt.Errorf("cannot publish at %s: %w", endpoint, err)
	}
	p := &Publisher{endpoint: endpoint, listener: listener, subscribers: map[*subscriber]struct{}{}}
	p.wg.Go(p.accept)
	return p, nil
}

func split(endpoint string) (network, address string, err error) {
	scheme, rest, _ := strings.Cut(endpoint, "://")
	switch {
	case scheme == "ipc" && rest != "":
		return "unix", rest, nil
	case scheme == "tcp" && rest != "":
		return "tcp", strings.TrimPrefix(rest, "*"), nil
	}
	return "", "", fmt.Errorf("endpoint %q: must be tcp://host:port or ipc://path", endpoint)
}

// removeDeadSocket removes the socket file that a killed process left. Any
// other file stays, and binding fails.
func removeDeadSocket(path string) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&os.ModeSocket == 0 {
		return
	}
	if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
		_ = conn.Close()
		return
	}
	_ = os.Remove(path)
}

// Endpoint is what the publisher was bound to.
func (p *Publisher) Endpoint() string { return p.endpoint }

// Dropped counts messages that a subscriber did not get because its queue was
// full, or because it or the publisher left before they were written.
func (p *Publisher) Dropped() uint64 { return p.dropped.Load() }

// Subscribers counts the connections that have subscribed.
func (p *Publisher) Subscribers() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for s := range p.subscribers {
		if s.subscriptions.Load() > 0 {
			n++
		}
	}
	return n
}

// Publish queues a message for every subscriber and never waits. It keeps
// nothing of payload. Without subscribers a message goes nowhere, as it does
// with any PUB socket.
func (p *Publisher) Publish(sequence uint64, payload []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var message []byte
	for s := range p.subscribers {
		if s.subscriptions.Load() == 0 {
			continue
		}
		if message == nil {
			message = appendMessage(make([]byte, 0, len(payload)+32), sequence, payload)
		}
		if p.closed || !s.offer(message) {
			p.dropped.Add(1)
		}
	}
}

// Close stops listening, gives the subscribers until timeout to take what is
// queued, and ends all connections. What was left is counted as dropped.
func (p *Publisher) Close(timeout time.Duration) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return net.ErrClosed
	}
	p.closed = true
	err := p.listener.Close()
	for s := range p.subscribers {
		close(s.drain)
	}
	p.mu.Unlock()
	defer time.AfterFunc(timeout, p.hangUp).Stop()
	p.wg.Wait()
	return err
}

func (p *Publisher) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.subscribers {
		_ = s.conn.Close()
	}
}

func (p *Publisher) accept() {
	for {
		conn, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of file descriptors, or the peer has gone already
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if !p.serve(newSubscriber(conn)) {
			_ = conn.Close()
		}
	}
}

// serve runs a subscriber, unless the publisher is closed or full.
func (p *Publisher) serve(s *subscriber) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.subscribers) >= maxSubscribers {
		return false
	}
	p.subscribers[s] = struct{}{}
	p.wg.Go(func() {
		s.run()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.subscribers, s)
		p.dropped.Add(uint64(len(s.queue))) // nothing is queued any more
	})
	return true
}
