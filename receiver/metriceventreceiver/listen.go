// Copyright The otelcol-fpm Authors
// SPDX-License-Identifier: Apache-2.0

package metriceventreceiver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"
)

// probeTimeout bounds how long a socket file may take to show that somebody
// listens behind it.
const probeTimeout = time.Second

// listen binds an address. The file of an ipc socket gets the permissions, and
// goes when the listener is closed. The error names the address.
func listen(ctx context.Context, a address, permissions fs.FileMode) (net.Listener, error) {
	if a.network == "unix" {
		if err := clearSocket(ctx, a.bind); err != nil {
			return nil, fmt.Errorf("cannot listen at %s: %w", a, err)
		}
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, a.network, a.bind)
	if err != nil {
		return nil, fmt.Errorf("cannot listen at %s: %w", a, cause(err))
	}
	if a.network == "unix" {
		if err := os.Chmod(a.bind, permissions); err != nil {
			listener.Close()
			return nil, fmt.Errorf("cannot listen at %s: %w", a, err)
		}
	}
	return listener, nil
}

// clearSocket removes the file of a socket behind which nobody listens any
// more, as a killed process leaves it. Any other file is an error.
func clearSocket(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s is no socket (mode %s) and is left as it is", path, info.Mode())
	}
	dialer := net.Dialer{Timeout: probeTimeout}
	conn, err := dialer.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		conn.Close()
		return fmt.Errorf("another process listens at the socket %s", path)
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(path)
	default:
		return fmt.Errorf("cannot tell whether another process listens at the socket %s: %w", path, cause(err))
	}
}

// cause leaves out what package net says of the address, which is in the text
// already.
func cause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}
