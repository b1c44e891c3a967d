// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package fpmreceiver

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// address is one rank's endpoint, or the base of a block of them.
type address struct {
	// network is tcp or unix, as package net has it.
	network string
	// host and port are of a tcp address; path of a unix one.
	host string
	port int
	path string
}

const (
	schemeTCP = "tcp://"
	schemeIPC = "ipc://"

	maxPort = 65535
	// maxIPCPath is what fits the kernel's socket address.
	maxIPCPath = 107
)

// parseEndpoint reads the endpoint of rank 0. The scheme is optional: tcp. The
// error says what is allowed.
func parseEndpoint(text string) (address, error) {
	if path, ok := strings.CutPrefix(text, schemeIPC); ok {
		if path == "" {
			return address{}, errors.New("a path after ipc://")
		}
		return address{network: "unix", path: path}, nil
	}
	hostPort, ok := strings.CutPrefix(text, schemeTCP)
	if !ok && strings.Contains(text, "://") {
		return address{}, errors.New("tcp://host:port, host:port or ipc://path")
	}
	host, portText, err := net.SplitHostPort(hostPort)
	if err != nil {
		return address{}, errors.New("tcp://host:port, host:port or ipc://path")
	}
	switch host {
	case "":
		return address{}, errors.New("a host before the port")
	case "*":
		return address{}, errors.New("a host to connect to (* is what an engine binds)")
	}
	port, err := strconv.Atoi(portText)
	if err != nil || port < 1 || port > maxPort {
		return address{}, fmt.Errorf("a port in 1 to %d", maxPort)
	}
	return address{network: "tcp", host: host, port: port}, nil
}

// expand lists the addresses of a block: tcp ports base + start … base + start
// + size − 1, or ipc paths with the rank as suffix, for rank 0 too. The error
// says what is allowed.
func (a address) expand(start, size int) ([]address, error) {
	// Ranks over the largest port are bounded first, so that no sum overflows.
	switch last := start + size - 1; {
	case start > maxPort || size > maxPort:
		return nil, fmt.Errorf("dp_start_rank and dp_size of at most %d", maxPort)
	case a.network == "tcp" && a.port+last > maxPort:
		return nil, fmt.Errorf("ports up to %d (the last is %d)", maxPort, a.port+last)
	case a.network == "unix" && len(a.rank(last).path) > maxIPCPath:
		return nil, fmt.Errorf("an ipc path, with the rank behind it, of at most %d bytes (%d)", maxIPCPath, len(a.rank(last).path))
	}
	addresses := make([]address, size)
	for i := range addresses {
		addresses[i] = a.rank(start + i)
	}
	return addresses, nil
}

// rank is the address of a rank in the block that begins here.
func (a address) rank(n int) address {
	if a.network == "tcp" {
		a.port += n
	} else {
		a.path += "." + strconv.Itoa(n)
	}
	return a
}

// dial is the address as package net takes it.
func (a address) dial() string {
	if a.network == "unix" {
		return a.path
	}
	return net.JoinHostPort(a.host, strconv.Itoa(a.port))
}

// String is the address with its scheme, as in logs and attributes.
func (a address) String() string {
	if a.network == "unix" {
		return schemeIPC + a.path
	}
	return schemeTCP + a.dial()
}

// identity is equal for addresses that lead to the same socket, as far as the
// text tells.
func (a address) identity() string {
	if a.network == "tcp" {
		a.host = strings.ToLower(a.host)
		if a.host == "localhost" {
			a.host = "127.0.0.1"
		}
	}
	return a.String()
}

// loopback reports an address on this host's loopback interface.
func (a address) loopback() bool {
	if strings.EqualFold(a.host, "localhost") {
		return true
	}
	ip := net.ParseIP(a.host)
	return ip != nil && ip.IsLoopback()
}

// instance names the engine behind a base address when it does not name itself:
// the endpoint without scheme and rank, with the host's name in place of a
// loopback address.
func (a address) instance(hostname string) string {
	switch {
	case a.network == "unix":
		return hostname + ":" + a.path
	case a.loopback():
		return net.JoinHostPort(hostname, strconv.Itoa(a.port))
	default:
		return a.dial()
	}
}
