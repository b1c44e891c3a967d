// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"errors"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-fpm/otelcol-fpm/internal/zmtp"
)

const (
	// refusedLimit: one connection more than max_connections.
	refusedLimit = zmtp.Reason("limit")

	// Waits after the system refused to accept a connection.
	initialAcceptWait = 5 * time.Millisecond
	maxAcceptWait     = time.Second
)

// server accepts connections and serves each in a goroutine of its own.
//
// Invariant (TestConnectionsAreBounded): at most max connections are open, those
// that still shake hands included.
type server struct {
	endpoint string
	max      int
	ledger   ledger
	log      *log

	listener net.Listener // nil before start
	// serve serves a connection until it ends.
	serve   func(net.Conn)
	running sync.WaitGroup
	stop    chan struct{}

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

func newServer(endpoint address, limit int, ledger ledger, log *log) *server {
	return &server{
		endpoint: endpoint.String(), max: limit, ledger: ledger, log: log,
		stop: make(chan struct{}), open: make(map[net.Conn]struct{}),
	}
}

// start begins to accept. It owns the listener.
func (s *server) start(listener net.Listener, serve func(net.Conn)) {
	s.listener, s.serve = listener, serve
	s.running.Go(s.accept)
}

// close ends the listener and all connections, and waits for their goroutines.
func (s *server) close() {
	s.mu.Lock()
	s.closed = true
	for nc := range s.open {
		nc.Close()
	}
	s.mu.Unlock()
	close(s.stop)
	if s.listener != nil {
		s.listener.Close()
	}
	s.running.Wait()
}

func (s *server) accept() {
	wait := initialAcceptWait
	for {
		nc, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Too many open files, above all: it passes.
			s.log.warn(s.endpoint, "accept", "Cannot accept a connection; trying again", zap.String("endpoint", s.endpoint), zap.Error(err))
			select {
			case <-time.After(wait):
			case <-s.stop:
			}
			wait = min(2*wait, maxAcceptWait)
			continue
		}
		wait = initialAcceptWait
		if !s.add(nc) {
			nc.Close()
			continue
		}
		s.running.Go(func() {
			defer s.remove(nc)
			s.serve(nc)
		})
	}
}

// add takes a connection in. It is false when there is no place for it.
func (s *server) add(nc net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return false
	case len(s.open) >= s.max:
		s.ledger.refuse(refusedLimit)
		s.log.warn(s.endpoint, string(refusedLimit), "Connection refused: there are max_connections already",
			zap.String("endpoint", s.endpoint), zap.Stringer("peer", nc.RemoteAddr()), zap.Int("max_connections", s.max))
		return false
	}
	s.open[nc] = struct{}{}
	return true
}

func (s *server) remove(nc net.Conn) {
	nc.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, nc)
}

// connections is the number of open connections.
func (s *server) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}
