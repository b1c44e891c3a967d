// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// subscribers counts the subscriptions that are up in this process, gathering or not.
var subscribers atomic.Int64

// maxLooks is how many looks at an empty socket at most are worth a wake-up: on a busy machine that costs less.
const maxLooks = 8

// looks is how many times a socket may be looked at for each message. A look where nobody else looks costs a wake-up,
// as waiting for the message would; where many look at the same moment it costs a system call.
func looks() int { return int(min(max(subscribers.Load()+1, 2), maxLooks)) }

// gathers tells whether the next read may wait for more messages to come together. It never does while bytes lie in the
// socket, as far as the last read tells, nor within a message: a burst is read as fast as it comes. Nor does it for a peer
// whose messages are so far apart, as the last two reads tell, that too many looks would find nothing.
func (g *guard) gathers() bool {
	every := g.gatherer.every
	return every > 0 && g.emptied && g.live.messageStart.IsZero() && g.at.Sub(g.before) <= every*time.Duration(looks())
}

// look reads from the socket at the moments that all connections share, as long as that is worth it. When it brings
// nothing the socket is loud, and to be waited for.
func (g *guard) look(p []byte) int {
	socket := &g.gatherer
	if g.gathers() {
		for range looks() {
			time.Sleep(socket.pause(time.Now(), g.moments()))
			if n := socket.read(p); n > 0 {
				return n
			} else if n == 0 {
				break
			}
		}
	} else if n := socket.read(p); n > 0 {
		return n
	}
	if socket.quiet {
		socket.setQuiet(false)
	}
	return 0
}

// moments tells which of the moments a peer is read at: 2 is every second one. Each read costs the kernel an answer to the
// peer; who sends more than one message from moment to moment has several served by each read still.
func (g *guard) moments() int {
	n := g.gatherer.messages
	if n > 1 && time.Duration(n)*g.gatherer.every > g.at.Sub(g.before) {
		return 2
	}
	return 1
}

// quietBytes is how many bytes may come before the kernel tells of them while we would look anyway.
const quietBytes = 32 << 10

// gatherer lets the messages of a busy peer come together, since being woken for a message costs more than all that is
// done with it. Two things make for fewer wake-ups: connections pause until the same moments, so that one wake-up serves
// them all; and the socket is quiet meanwhile (SO_RCVLOWAT), since the runtime's poller is woken by every arrival else,
// whether anybody reads or not.
//
// Invariant (TestQuietSocketsLoseNoWakeUp): nobody waits for a quiet socket. Who stops looking makes it loud first.
type gatherer struct {
	every time.Duration // 0: does not gather
	// raw is the socket, nil where there is none or it cannot be quiet.
	raw   syscall.RawConn
	quiet bool
	// messages is how many ended with what the last read brought.
	messages int

	// Of the read under way:
	p     []byte
	n     int
	tryFD func(fd uintptr) bool
}

func newGatherer(nc net.Conn, every time.Duration) gatherer {
	g := gatherer{every: every}
	if socket, ok := nc.(syscall.Conn); ok && every > 0 {
		if raw, err := socket.SyscallConn(); err == nil {
			g.raw = raw
		}
	}
	return g
}

// pause is how long it is from now until the next moment at which connections read, all or every second one. Until then the
// socket is quiet.
func (g *gatherer) pause(now time.Time, moments int) time.Duration {
	if g.raw != nil && !g.quiet {
		g.setQuiet(true)
	}
	every := g.every * time.Duration(moments)
	return every - time.Duration(now.UnixNano()%int64(every))
}

// read reads what lies in a quiet socket: below 0 when nothing came yet, 0 at the end, after an error, and for a socket that
// is not quiet.
func (g *gatherer) read(p []byte) int {
	if !g.quiet {
		return 0
	}
	if g.tryFD == nil {
		g.tryFD = func(fd uintptr) bool {
			g.n = readNow(fd, g.p)
			return true // do not wait
		}
	}
	g.p, g.n = p, 0
	if err := g.raw.Read(g.tryFD); err != nil {
		g.n = 0
	}
	g.p = nil
	return g.n
}

// setQuiet changes how many bytes have to come before the kernel tells of them. A socket that cannot do that is left alone
// from then on.
func (g *gatherer) setQuiet(quiet bool) {
	bytes := 1
	if quiet {
		bytes = quietBytes
	}
	var failed error
	err := g.raw.Control(func(fd uintptr) { failed = setLowWater(fd, bytes) })
	if err != nil || failed != nil {
		// Closed, or not to be had here. A socket that was made quiet can be made loud.
		g.raw, g.quiet = nil, false
		return
	}
	g.quiet = quiet
}
