// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

// Package zmtp keeps one ZMTP connection (ZeroMQ's wire protocol, https://rfc.zeromq.org/spec/37/, NULL mechanism), safe
// against whatever the peer sends and quick to notice that it has gone. It knows nothing of what the messages mean.
//
//	Subscriber.Run   dial, hand over to Open, subscribe, read until an error, back off with jitter, again
//	   Conn.Recv     one whole message and the time it left the socket
//	   zmq4.Open     go-zeromq's handshake: greeting and READY, of which it sees only bytes that the guard has checked
//	   guard         buffered reads; takes messages apart, answers and sends heartbeats
//	     greeting, ready, framer   what a peer may send, byte by byte (pure)
//	     liveness                  when to ask for a sign of life, when to give up (pure; time comes as an argument)
//	   net.Conn      TCP with keep-alive, or a Unix socket; a polledConn where a Poller serves many together
//
// Every bound is the guard's: a frame is refused on its header, before anything of its size is allocated. One goroutine
// serves a connection, woken by the runtime or a Poller; while it waits for a Subscriber's next message it lends the reading
// to the Poller, which wakes nobody for a message that comes whole (lend.go). There is no timer and no deadline call for a
// single message.
//
// Accepted peers: ZMTP 3.0 and later (a later version steps down to the 3.0 we announce), mechanism NULL. ZMTP 1.0 and 2.0
// (libzmq before 4.0) are refused with the first byte that tells.
//
// A silent peer is sent a PING, which libzmq answers since 4.2, whatever its socket does. Sockets of go-zeromq do not: such a
// publisher is dialled anew whenever it has nothing to say for twice StaleAfter.
package zmtp
