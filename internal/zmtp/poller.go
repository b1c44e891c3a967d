// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// Poller wakes the readers of many connections together, since being woken for a message costs several times what is done
// with it. While messages come one by one a reader is woken at once, by the first of them; while they come in quick
// succession (another within some milliseconds) the poller looks at all connections every so often. In between nobody is
// woken by what arrives: the sockets lie in an epoll file of the poller's own and not in that of the runtime.
//
// It serves TCP and Unix sockets on Linux. Other connections are read as they are, at once.
//
// Invariant (TestPollerLosesNoWakeUp): a reader that found its socket empty is woken by what comes after, mostly within two
// moments.
type Poller struct {
	rhythm rhythm // of run

	mu        sync.Mutex
	closed    bool
	ready     *readiness // nil before the first connection
	conns     map[int]*polledConn
	done      chan struct{} // closed by run
	arrivals  []arrival
	deferred  []*polledConn // to be woken by the next look
	wereLater []*polledConn // the room of those before
}

// NewPoller returns a poller that looks every so often; messages are read that much later at most, or twice that from a peer
// that sends faster, and from others while all do. It has neither file nor goroutine before its first connection.
func NewPoller(every time.Duration) *Poller {
	return &Poller{rhythm: rhythm{every: every}, conns: map[int]*polledConn{}}
}

// Close frees what the poller holds. Its connections must be closed before; later ones are read as they are. Closing twice
// is harmless.
func (p *Poller) Close() {
	p.mu.Lock()
	closed := p.closed
	p.closed = true
	p.mu.Unlock()
	if p.ready == nil || closed {
		return
	}
	p.ready.interrupt()
	<-p.done
	p.ready.close()
}

// attach takes nc over and returns what to use in its place: nc itself where the poller cannot serve it, which costs only
// time.
func (p *Poller) attach(nc net.Conn) net.Conn {
	// Not whatever has a socket: a wrapper may do more with it than read and write.
	var socket syscall.Conn
	switch nc := nc.(type) {
	case *net.TCPConn:
		socket = nc
	case *net.UnixConn:
		socket = nc
	default:
		return nc
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nc
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || !p.open() {
		return nc
	}
	fd, err := duplicate(raw)
	if err != nil {
		return nc
	}
	if err := p.ready.add(fd); err != nil {
		closeSocket(fd)
		return nc
	}
	// With its own file the connection leaves the runtime's poller.
	nc.Close()
	c := &polledConn{Conn: nc, poller: p, fd: fd, ready: make(chan struct{}, 1)}
	p.conns[fd] = c
	return c
}

// open makes files and goroutine if there are none yet.
func (p *Poller) open() bool {
	if p.ready == nil {
		ready, err := openReadiness()
		if err != nil {
			return false
		}
		p.ready, p.done = ready, make(chan struct{})
		go p.run()
	}
	return true
}

// detach forgets the connection, before its file is closed.
func (p *Poller) detach(c *polledConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c.fd)
	if !p.closed {
		p.ready.remove(c.fd)
	}
}

func (p *Poller) run() {
	defer close(p.done)
	for p.wait() {
		now := time.Now()
		quick := p.rhythm.quick(now)
		p.look(now)
		for quick || len(p.deferred) > 0 {
			time.Sleep(p.rhythm.pause(time.Now()))
			now = time.Now()
			p.look(now)
			quick = p.rhythm.quick(now)
		}
	}
}

// wait waits for something to come, and tells whether the poller goes on.
func (p *Poller) wait() bool {
	if err := p.ready.wait(); err != nil {
		time.Sleep(p.rhythm.every) // no error is known; looking without being woken is always right
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closed
}

// look wakes the readers of all connections to which something came, or defers it.
func (p *Poller) look(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		p.deferred = nil
		return
	}
	p.rhythm.look(now)
	due := p.deferred
	p.deferred = p.wereLater[:0]
	p.arrivals = p.ready.appendArrivals(p.arrivals[:0], len(p.conns))
	woken := len(due)
	for _, a := range p.arrivals {
		c := p.conns[a.fd]
		switch {
		case c == nil, c.deferred && !a.ended:
		case !a.ended && p.rhythm.defers(c.woken):
			c.deferred = true
			p.deferred = append(p.deferred, c)
		default:
			woken++
			c.wake(p.rhythm.moment, a.ended)
		}
	}
	for i, c := range due {
		// After the arrivals, which may be its own.
		c.deferred = false
		c.wake(p.rhythm.moment, false)
		due[i] = nil
	}
	p.wereLater = due
	p.rhythm.looked(now, woken, len(p.deferred))
}
