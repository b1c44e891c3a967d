// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"net"
	"sync"
	"syscall"
	"time"
)

// Poller serves many connections together, since waking somebody for a message costs several times what is done with it.
// While messages come one by one each is served at once; while they come in quick succession (another within some
// milliseconds) the poller looks at all connections every so often. In between nobody is woken by what arrives: the sockets
// lie in an epoll file of the poller's own and not in that of the runtime.
//
// Whole messages it reads and handles itself, one connection after the other, for readers that have lent it the reading
// (lend.go); all other readers it wakes. What is left over when that has taken several times as long as from look to look goes
// to its readers too, which have the other processors.
//
// It serves TCP and Unix sockets on Linux. Other connections are read as they are, at once.
//
// Invariant (TestPollerLosesNoWakeUp): a reader that found its socket empty is woken by what comes after, or that is read for
// it, mostly within two moments.
type Poller struct {
	rhythm rhythm // of run

	mu        sync.Mutex
	closed    bool
	ready     *readiness    // nil before the first connection
	conns     []*polledConn // by file descriptor
	done      chan struct{} // closed by run
	arrivals  []arrival
	deferred  []*polledConn // to be served by the next look
	wereLater []*polledConn // the room of those before

	// Of run:
	due   []*polledConn // to be served now
	room  []byte        // for what is read
	loans []loan        // that lie in room
	list  frameList     // of each message in turn
}

// The poller reads so many connections, or so many bytes, before it has what they brought handled: the code of either has to
// come into the caches once then, and not for each message.
const (
	loansAtOnce = 48
	roomBytes   = 4 * maxBufferBytes
)

// patience is how many times as long as between two looks the poller handles messages itself. Where all processors are busy
// it is slow as well, and waking readers would make it worse.
const patience = 5

// NewPoller returns a poller that looks every so often; messages are read that much later at most, or twice that from a peer
// that sends faster, and from others while all do. It has neither file nor goroutine before its first connection.
func NewPoller(every time.Duration) *Poller {
	return &Poller{rhythm: rhythm{every: every}}
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
	c.turn.Lock() // for the reader
	if more := fd + 1 - len(p.conns); more > 0 {
		p.conns = append(p.conns, make([]*polledConn, more)...)
	}
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
		p.ready, p.done, p.room = ready, make(chan struct{}), make([]byte, roomBytes)
		go p.run()
	}
	return true
}

// detach forgets the connection, before its file is closed.
func (p *Poller) detach(c *polledConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c.fd] = nil
	if !p.closed {
		p.ready.remove(c.fd)
	}
}

func (p *Poller) run() {
	defer close(p.done)
	for p.wait() {
		now := time.Now()
		quick := p.rhythm.quick(now)
		p.serve(now)
		for quick || len(p.deferred) > 0 {
			time.Sleep(p.rhythm.pause(time.Now()))
			now = time.Now()
			p.serve(now)
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

// serve looks, and serves all connections that are due.
func (p *Poller) serve(now time.Time) {
	p.look(now)
	room, late := p.room, now.Add(patience*p.rhythm.every)
	for i, c := range p.due {
		p.due[i] = nil
		if !now.Before(late) {
			c.signal()
			continue
		}
		l, ok := c.borrow(room[:maxBufferBytes])
		if !ok {
			c.signal()
		}
		if len(l.b) == 0 {
			continue
		}
		now = l.at
		p.loans = append(p.loans, l)
		if room = room[len(l.b):]; len(room) < maxBufferBytes || len(p.loans) == loansAtOnce {
			p.settle()
			room = p.room
		}
	}
	p.due = p.due[:0]
	p.settle()
}

// settle has all that was read handled.
func (p *Poller) settle() {
	for i := range p.loans {
		l := &p.loans[i]
		if !l.settle(&p.list) {
			l.conn.signal()
		}
		*l = loan{}
	}
	p.loans = p.loans[:0]
}

// look finds the connections to which something came: they are due, or deferred.
func (p *Poller) look(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		p.deferred = nil
		return
	}
	p.rhythm.look(now)
	later := p.deferred
	p.deferred = p.wereLater[:0]
	p.arrivals = p.ready.appendArrivals(p.arrivals[:0], len(p.conns))
	for _, a := range p.arrivals {
		c := p.conns[a.fd]
		switch {
		case c == nil, c.deferred && !a.ended:
		case !a.ended && p.rhythm.defers(c.served):
			c.deferred = true
			p.deferred = append(p.deferred, c)
		default:
			if a.ended {
				c.ended.Store(true)
			}
			p.isDue(c)
		}
	}
	for i, c := range later {
		// After the arrivals, which may be its own.
		c.deferred = false
		p.isDue(c)
		later[i] = nil
	}
	p.wereLater = later
	p.rhythm.looked(now, len(p.due), len(p.deferred))
}

func (p *Poller) isDue(c *polledConn) {
	c.served = p.rhythm.moment
	p.due = append(p.due, c)
}
