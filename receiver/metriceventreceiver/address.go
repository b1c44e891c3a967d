// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path"
	"strconv"
	"strings"
)

// address is what the receiver binds.
type address struct {
	// network is tcp or unix, as package net has it.
	network string
	// bind is host:port, the host empty for every interface, or a path.
	bind string
}

const (
	schemeTCP = "tcp://"
	schemeIPC = "ipc://"

	maxPort = 65535
	// maxIPCPath is what fits the kernel's socket address.
	maxIPCPath = 107
)

// parseEndpoint reads tcp://host:port, the scheme optional, or ipc:///path.
// Port 0 lets the system choose. The error says what is allowed.
func parseEndpoint(text string) (address, error) {
	if file, ok := strings.CutPrefix(text, schemeIPC); ok {
		switch {
		case !path.IsAbs(file) || path.Clean(file) == "/" || strings.Contains(file, "\x00"):
			return address{}, errors.New("an absolute path after ipc://, such as ipc:///run/otelcol/events.sock")
		case len(file) > maxIPCPath:
			return address{}, fmt.Errorf("an ipc path of at most %d bytes (%d)", maxIPCPath, len(file))
		}
		return address{network: "unix", bind: file}, nil
	}
	hostPort, ok := strings.CutPrefix(text, schemeTCP)
	if !ok && strings.Contains(text, "://") {
		return address{}, errors.New("tcp://host:port or ipc:///path")
	}
	host, portText, err := net.SplitHostPort(hostPort)
	if err != nil {
		return address{}, errors.New("tcp://host:port or ipc:///path")
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return address{}, fmt.Errorf("a port in 0 to %d", maxPort)
	}
	switch host {
	case "":
		return address{}, errors.New("a host before the port (* for every interface)")
	case "*":
		host = ""
	}
	return address{network: "tcp", bind: net.JoinHostPort(host, strconv.FormatUint(port, 10))}, nil
}

// String is the address with its scheme, as in logs.
func (a address) String() string {
	switch {
	case a.network == "unix":
		return schemeIPC + a.bind
	case strings.HasPrefix(a.bind, ":"):
		return schemeTCP + "*" + a.bind
	default:
		return schemeTCP + a.bind
	}
}

// parsePermissions reads octal file permissions. The error says what is
// allowed.
func parsePermissions(text string) (fs.FileMode, error) {
	mode, err := strconv.ParseUint(text, 8, 32)
	if err != nil || mode > 0o777 || len(text) < 3 || len(text) > 4 {
		return 0, errors.New(`octal permissions in quotes, "000" to "0777"`)
	}
	return fs.FileMode(mode), nil
}
